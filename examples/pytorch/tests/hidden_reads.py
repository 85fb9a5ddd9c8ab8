"""Stages that read on the host what their code does not name, or names in a way of its own, and that changes between epochs."""

import contextlib
import dataclasses
import functools
import operator

import torch
from torch import nn
from torch.nn import functional


class Setting:
    def __init__(self, **values):
        vars(self).update(values)


@dataclasses.dataclass
class Options:
    factor: float = 1.0


class Case:
    """A stage, what happens before each epoch, what is compared after it, and what is around it."""

    def __init__(self, stage, change=lambda epoch: None, found=lambda: None, around=lambda epoch: contextlib.nullcontext()):
        self.stage, self.change, self.found, self.around = stage, change, found, around


def of_setting(read):
    """A stage whose factor is `read(setting)`."""
    setting = Setting(factor=1.0, inner=Setting(factor=1.0))

    def change(epoch):
        setting.factor = setting.inner.factor = epoch + 0.5

    return Case(lambda x: x * read(setting), change)


PATHS, NAMES, WRITTEN = ["inner.factor"], ["factor"], ["last"]


def asdict():
    options = Options()

    def scaled(x, factor):
        return x * factor

    return Case(lambda x: scaled(x, **dataclasses.asdict(options)), lambda epoch: setattr(options, "factor", epoch + 0.5))


def descriptor():
    class Kept:
        value = 1.0

        def __get__(self, owner, kind=None):
            return self.value

        def __set__(self, owner, value):
            self.value = value

    class Owner:
        factor = Kept()

    owner = Owner()
    return Case(lambda x: x * owner.factor, lambda epoch: setattr(owner, "factor", epoch + 0.5))


def cleared_cache():
    setting = Setting(factor=1.0)
    cached = functools.lru_cache(lambda: setting.factor)

    def change(epoch):
        if epoch == 1:
            setting.factor = 5.0
        if epoch == 2:
            cached.cache_clear()

    return Case(lambda x: x * cached(), change)


def attribute_of_a_parameter():
    weight = nn.Parameter(torch.ones(2))

    def change(epoch):
        if epoch > 0:
            weight.factor = epoch + 0.5

    return Case(lambda x: (x * weight * getattr(weight, "factor", 1.0)).detach(), change)


# Writes that nothing of the stage reads.

def written(write):
    setting = Setting(last=torch.zeros(2))

    def stage(x):
        write(setting, x * 2)
        return x

    return Case(stage, found=lambda: setting.last.clone())


def written_global():
    known = {"__builtins__": __builtins__, "__name__": "a_program"}
    exec(compile("def stage(x):\n    global last\n    last = x * 2\n    return x", "/a_program.py", "exec"), known)
    return Case(known["stage"], found=lambda: known["last"].clone())


def written_by_name(setting, value):
    for name in WRITTEN:
        setattr(setting, name, value)


def written_to_a_parameter():
    weight = nn.Parameter(torch.ones(2))

    def stage(x):
        weight.last = (x * weight).detach()
        return x

    return Case(stage, found=lambda: weight.last.clone())


# Tensors.

def buffer_that_requires_a_gradient():
    weight, buffer = nn.Parameter(torch.ones(2)), torch.ones(2)

    def stage(x):
        weight.grad = None
        (weight * buffer * x).sum().backward()
        return weight.grad.clone()

    return Case(stage, lambda epoch: buffer.requires_grad_(epoch > 0), lambda: None if buffer.grad is None else buffer.grad.clone())


def of_matrix(change):
    matrix = nn.Parameter(torch.arange(4.0).view(2, 2), requires_grad=False)
    return Case(lambda x: x @ matrix, lambda epoch: epoch > 0 and change(matrix))


def transposed(matrix):
    matrix.data = matrix.data.t()


def gradient_that_is_asked_for():
    weight = nn.Parameter(torch.ones(2))

    def change(epoch):
        weight.grad = torch.ones(2) if epoch % 2 else None

    return Case(lambda x: x * (2 if weight.grad is None else 3), change)


# Hooks: another one in place of one.

def of_hook(register, make):
    layer, handles = nn.Linear(2, 2), []

    def stage(x):
        layer.weight.grad = None
        result = layer(x)
        result.sum().backward()
        return torch.cat([result.detach(), layer.weight.grad.flatten()])

    def change(epoch):
        for handle in handles:
            handle.remove()
        handles[:] = [register(layer, make(epoch + 2.0))]

    return Case(stage, change)


def of_gradients(factor):
    def hook(weight):
        weight.grad.mul_(factor)
    return hook


# PyTorch's layers, and classes derived from them.

def derived(base, name, values, **options):
    layer = type("Derived", (base,), {"__module__": __name__})(**options)

    def stage(x):
        return layer(x * torch.arange(6.0).view(3, 2)).detach()

    return Case(stage, lambda epoch: setattr(layer, name, values[epoch]), lambda: [held.clone() for held in layer.buffers()])


def class_of_a_layer():
    class Doubled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    layer = nn.Linear(2, 2)
    return Case(lambda x: layer(x).detach(), lambda epoch: setattr(layer, "__class__", Doubled if epoch % 2 else nn.Linear))


# Functions of PyTorch's that a program replaces, and puts back.

def replaced(owner, name, stage, begins=1):
    original = getattr(owner, name)

    def other(*args, **kwargs):
        return original(*args, **kwargs) * 2

    @contextlib.contextmanager
    def around(epoch):
        setattr(owner, name, other if (epoch + begins) % 2 == 0 else original)
        yield
        setattr(owner, name, original)

    return Case(stage, around=around)


def of_layer(layer):
    return lambda x: layer(x[None]).detach()


def method_of_tensors():
    @contextlib.contextmanager
    def around(epoch):
        torch.Tensor.scaled_by_a_test = lambda self: self * (epoch + 0.5)
        yield
        del torch.Tensor.scaled_by_a_test

    return Case(lambda x: x.scaled_by_a_test(), around=around)


def step_of_a_class():
    weight = nn.Parameter(torch.ones(2))
    optimizer, original = torch.optim.SGD([weight], lr=0.1), torch.optim.SGD.step

    def other(self, closure=None):
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.5)

    @contextlib.contextmanager
    def around(epoch):
        torch.optim.SGD.step = other if epoch % 2 else original
        yield
        torch.optim.SGD.step = original

    return Case(functools.partial(learn, weight, optimizer), around=around)


# Optimizers and schedulers.

def learn(weight, optimizer, x):
    optimizer.zero_grad()
    (weight * x * 1e-3).sum().backward()
    optimizer.step()
    return weight.detach().clone()


def of_state(change):
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    return Case(functools.partial(learn, weight, optimizer), lambda epoch: epoch > 0 and change(optimizer, weight))


def read_of_an_optimizer(read, change):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    return Case(lambda x: x * read(optimizer), lambda epoch: change(optimizer, epoch + 0.5))


def read_of_a_scheduler(read):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def change(epoch):
        optimizer.step()
        scheduler.step()

    return Case(lambda x: x * read(scheduler), change)


def disabled_scaler():
    weight, scaler = nn.Parameter(torch.ones(2)), torch.amp.GradScaler("cpu", enabled=False)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def stage(x):
        optimizer.zero_grad()
        scaler.scale((weight * x * 1e-3).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return weight.detach().clone()

    return Case(stage)


# Generators, and modes around the loop.

def saved_otherwise():
    weight = nn.Parameter(torch.ones(2))

    def stage(x):
        weight.grad = None
        (weight * x * 0.1).exp().sum().backward()
        return weight.grad.clone()

    return Case(stage, around=lambda epoch: torch.autograd.graph.saved_tensors_hooks(lambda t: t * (epoch + 1), lambda t: t))


class Counting(torch.overrides.TorchFunctionMode):
    count = 0

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        self.count += function is torch.relu
        return function(*args, **(kwargs or {}))


class CountingOperations(torch.utils._python_dispatch.TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        self.count += "relu" in str(function)
        return function(*args, **(kwargs or {}))


def counted(kind, first):
    modes = [kind() for _ in range(3)]
    return Case(lambda x: torch.relu(x), found=lambda: [mode.count for mode in modes],
                around=lambda epoch: modes[epoch] if epoch >= first else contextlib.nullcontext())


def of_device():
    return Case(lambda x: x * (2 if torch.get_default_device().type == "cpu" else 3),
                around=lambda epoch: torch.device("meta" if epoch % 2 else "cpu"))


def of_own_seed():
    generator = torch.Generator()
    return Case(lambda x: x * generator.initial_seed(), lambda epoch: generator.manual_seed(epoch + 3))


CASES = {
    "reduce": lambda: of_setting(lambda setting: functools.reduce(getattr, PATHS[0].split("."), setting)),
    "attrgetter": lambda: of_setting(lambda setting: operator.attrgetter(NAMES[0])(setting)),
    "map": lambda: of_setting(lambda setting: sum(map(getattr, [setting], NAMES))),
    "format": lambda: of_setting(lambda setting: float("{0.factor}".format(setting))),
    "asdict": asdict, "descriptor": descriptor, "cache": cleared_cache, "parameter": attribute_of_a_parameter,
    "written global": written_global, "written by name": lambda: written(written_by_name),
    "written past setattr": lambda: written(lambda setting, value: object.__setattr__(setting, WRITTEN[0], value)),
    "written to a parameter": written_to_a_parameter,
    "requires_grad": buffer_that_requires_a_gradient, "transposed": lambda: of_matrix(transposed),
    "in-place transposed": lambda: of_matrix(lambda matrix: matrix.t_()), "gradient": gradient_that_is_asked_for,
    "resized": lambda: of_matrix(lambda matrix: matrix.resize_(2, 1)),
    "forward hook": lambda: of_hook(nn.Linear.register_forward_hook, lambda factor: lambda layer, given, result: result * factor),
    "forward pre-hook": lambda: of_hook(nn.Linear.register_forward_pre_hook, lambda factor: lambda layer, given: given[0] * factor),
    "hook of a tensor": lambda: of_hook(lambda layer, hook: layer.weight.register_hook(hook), lambda factor: lambda g: g * factor),
    "hook after": lambda: of_hook(lambda layer, hook: layer.weight.register_post_accumulate_grad_hook(hook), of_gradients),
    "derived dropout": lambda: derived(nn.Dropout, "p", [0.0, 1.0, 0.0], p=0.0),
    "derived batch norm": lambda: derived(nn.BatchNorm1d, "momentum", [0.1, 0.5, 0.0], num_features=2),
    "derived layer norm": lambda: derived(nn.LayerNorm, "eps", [0.1, 0.5, 0.0001], normalized_shape=2),
    "class of a layer": class_of_a_layer,
    "forward": lambda: replaced(nn.Linear, "forward", of_layer(nn.Linear(2, 2))),
    "function": lambda: replaced(functional, "gelu", lambda x: functional.gelu(x)),
    "function of torch": lambda: replaced(torch, "sigmoid", lambda x: torch.sigmoid(x)),
    "function in a layer": lambda: replaced(functional, "gelu", of_layer(nn.GELU())),
    "function in a layer, from the first": lambda: replaced(functional, "gelu", of_layer(nn.GELU()), begins=0),
    "function of Python": lambda: replaced(functional, "dropout", of_layer(nn.Dropout(0.0))),
    "function by case": lambda: replaced(functional, "max_pool1d", of_layer(nn.MaxPool1d(2))),
    "method of tensors": method_of_tensors, "step of a class": step_of_a_class,
    "state": lambda: of_state(lambda optimizer, weight: optimizer.state[weight].update(momentum_buffer=torch.zeros(2))),
    "state of a parameter": lambda: of_state(
        lambda optimizer, weight: optimizer.state.update({weight: {"momentum_buffer": torch.zeros(2)}})),
    "state that is gone": lambda: of_state(lambda optimizer, weight: optimizer.state[weight].clear()),
    "rate": lambda: read_of_an_optimizer(lambda o: o.param_groups[0]["lr"], lambda o, rate: o.param_groups[0].update(lr=rate)),
    "default": lambda: read_of_an_optimizer(lambda o: o.defaults["lr"], lambda o, rate: o.defaults.update(lr=rate)),
    "last rate": lambda: read_of_a_scheduler(lambda scheduler: scheduler.get_last_lr()[0]),
    "epoch of a scheduler": lambda: read_of_a_scheduler(lambda scheduler: scheduler.last_epoch),
    "disabled scaler": disabled_scaler, "saved tensors": saved_otherwise,
    "function mode": lambda: counted(Counting, 0), "function mode that comes": lambda: counted(Counting, 1),
    "dispatch mode": lambda: counted(CountingOperations, 0),
    "device": of_device, "seed": of_own_seed,
    "version": lambda: (lambda weight: Case(lambda x: x * weight.add_(1)._version))(torch.ones(2)),
}
