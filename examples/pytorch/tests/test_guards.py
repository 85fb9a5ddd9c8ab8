"""Graphs beside plain loops, where something changes that a stage reads on the host. On the CPU by a device that freezes what a
GPU's graph freezes."""

import collections
import functools
import gc
import tempfile
import types

import pytest
import torch
from graphing_device import GraphingDevice

import sluice

pytestmark = pytest.mark.usefixtures("by_library")

SCHEDULES = ["graphed", "automatic"]
COUNT = 60  # `automatic` has chosen by then
SETTINGS = types.SimpleNamespace(factor=2.0, unused=0)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.fixture(autouse=True)
def choose_soon(monkeypatch):
    from sluice.pipelines import choice
    for name, batches in (("SETTLING", 2), ("TIMED", 2), ("CAPTURING", 6)):
        monkeypatch.setattr(choice, name, batches)


def graphing(device: str):
    return GraphingDevice() if device == "cpu" else device


def data(count: int = COUNT, device: str = "cpu") -> list:
    generator = torch.Generator().manual_seed(1)
    return [(torch.rand(5, 6, generator=generator).to(device), torch.rand(5, generator=generator).to(device)) for _ in range(count)]


class Training:
    """A model that learns in the second stage, from the same weights each time."""

    def __init__(self, device: str, optimizer=torch.optim.SGD, dropout: float = 0.0, **options) -> None:
        torch.manual_seed(3)
        self.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(dropout),
                                         torch.nn.Linear(8, 1)).to(device)
        self.optimizer = optimizer(self.model.parameters(), **{"lr": 0.05, **options})
        self.scheduler = None

    def encode(self, x, y):
        return self.encoder(x).relu(), y

    def train(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.model(x).squeeze(1) - y).square().mean()
        loss.backward()
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.detach()

    def loop(self, batches):
        for batch in batches:
            yield self.train(*self.encode(*batch))

    def weights(self):
        return [p.detach().cpu().clone() for p in self.model.parameters()]


def beside_a_plain_loop(device, schedule, make, epochs, between=lambda training, epoch: None, count=COUNT, stages=None):
    """The same losses and weights; returns the pipeline."""
    plain, piped = make(), make()
    two = stages or (lambda training: (training.encode, training.train))
    run = sluice.pipeline(*two(piped), schedule=schedule, device=graphing(device))
    for epoch in range(epochs):
        torch.manual_seed(epoch)
        expected = [loss.item() for loss in plain.loop(data(count, device))]
        torch.manual_seed(epoch)
        found = [loss.item() for loss in run(data(count))]
        assert found == expected, f"epoch {epoch}\n{run.report()}"
        between(plain, epoch)
        between(piped, epoch)
    assert all(torch.equal(a, b) for a, b in zip(plain.weights(), piped.weights())), str(run.report())
    return run


def replays(run, name="train"):
    return run.report().replays[name]


def smaller(weight):
    weight.grad.mul_(0.1)


def step_and_decay(training, x, y):
    loss = Training.train(training, x, y)
    training.optimizer.param_groups[0]["lr"].mul_(0.99)
    return loss


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestOptimizers:
    def test_a_rate_that_changes_in_each_batch(self, device, schedule):
        def make():
            training = Training(device)
            training.scheduler = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.99)
            return training

        run = beside_a_plain_loop(device, schedule, make, 2)
        assert replays(run) == 0 and "it changes" in run.report().refusals["train"]

    def test_a_rate_that_changes_now_and_then(self, device, schedule):
        def make():
            training = Training(device)
            training.scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 40, 0.5)
            return training

        beside_a_plain_loop(device, schedule, make, 2)

    def test_a_rate_that_changes_between_epochs(self, device, schedule):
        def between(training, epoch):
            training.optimizer.param_groups[0]["lr"] *= 0.5

        run = beside_a_plain_loop(device, schedule, lambda: Training(device, momentum=0.9), 4, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT and "['lr']" in str(run.report().changes["train"])

    @pytest.mark.parametrize("assign", [False, True])
    def test_states_that_are_loaded_between_epochs(self, device, schedule, assign):
        def between(training, epoch):
            if epoch == 0:
                training.saved = [{key: value.clone() for key, value in training.model.state_dict().items()},
                                  training.optimizer.state_dict()]
                training.saved[1]["state"] = {key: {name: value.clone() for name, value in state.items()}
                                              for key, state in training.saved[1]["state"].items()}
                return
            training.model.load_state_dict({key: value.clone() for key, value in training.saved[0].items()}, assign=assign)
            if assign:
                training.optimizer.param_groups[0]["params"] = list(training.model.parameters())
                training.optimizer.state.clear()
            else:
                training.optimizer.load_state_dict(training.saved[1])

        run = beside_a_plain_loop(device, schedule, lambda: Training(device, momentum=0.9), 4, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT

    @pytest.mark.parametrize("kind,options", [
        (torch.optim.Adam, {}), (torch.optim.AdamW, {"foreach": False}), (torch.optim.Adagrad, {}),
        (torch.optim.RMSprop, {"momentum": 0.5}), (torch.optim.SGD, {"nesterov": True, "momentum": 0.9}),
        (torch.optim.SGD, {"foreach": True, "momentum": 0.9})])
    def test_optimizers(self, device, schedule, kind, options):
        run = beside_a_plain_loop(device, schedule, lambda: Training(device, kind, **options), 2)
        if kind is torch.optim.Adam:
            assert replays(run) == 0 and "expected capturable=True" in run.report().refusals["train"]

    def test_a_rate_in_a_tensor(self, device, schedule):
        """It may change in each batch: only its memory is captured."""
        def make():
            training = Training(device, lr=torch.tensor(0.05, device=device))
            training.train = functools.partial(step_and_decay, training)
            return training

        def make_adam():
            training = Training(device, torch.optim.Adam, lr=torch.tensor(0.05, device=device), capturable=True)
            training.train = functools.partial(step_and_decay, training)
            return training

        run = beside_a_plain_loop(device, schedule, make, 2)  # reads the rate on the host
        assert replays(run, "partial") == 0
        if schedule == "graphed" and device == "cuda":
            run = beside_a_plain_loop(device, schedule, make_adam, 3)
            assert replays(run, "partial") > 2 * COUNT, str(run.report())

    def test_an_optimizer_that_is_made_anew(self, device, schedule):
        def between(training, epoch):
            training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.01 * (epoch + 1), momentum=0.5)

        beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)

    def test_accumulation(self, device, schedule):
        class Accumulating(Training):
            batches = 0

            def train(self, x, y):
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                self.batches += 1
                if self.batches % 4 == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                return loss.detach()

        run = beside_a_plain_loop(device, schedule, lambda: Accumulating(device), 2)
        assert replays(run) == 0

    def test_gradients_that_stay_in_place(self, device, schedule):
        class Keeping(Training):
            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=False)
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
                self.optimizer.step()
                return loss.detach()

        def between(training, epoch):
            training.optimizer.zero_grad(set_to_none=True)

        run = beside_a_plain_loop(device, schedule, lambda: Keeping(device), 3, between)
        if schedule == "graphed":
            assert replays(run) > COUNT

    def test_a_step_with_the_gradients_of_the_batch_before(self, device, schedule):
        class Late(Training):
            def train(self, x, y):
                self.optimizer.step()
                self.optimizer.zero_grad()
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                return loss.detach()

        beside_a_plain_loop(device, schedule, lambda: Late(device), 2)

    def test_a_step_in_a_stage_of_its_own(self, device, schedule):
        class Apart(Training):
            def backward(self, x, y):
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                return loss.detach()

            def step(self, loss):
                self.optimizer.step()
                self.optimizer.zero_grad()
                return loss * 1

            def loop(self, batches):
                for batch in batches:
                    yield self.step(self.backward(*self.encode(*batch)))

        if device == "cuda" and schedule == "graphed":
            pytest.skip("stages that share gradients race; expected `shares`, or `serial`")
        beside_a_plain_loop(device, schedule, lambda: Apart(device), 2, stages=lambda t: (t.encode, t.backward, t.step))

    @pytest.mark.parametrize("unscale", [False, True])
    def test_a_scaler(self, device, schedule, unscale):
        class Scaled(Training):
            def __init__(self):
                super().__init__(device)
                self.scaler = torch.amp.GradScaler(device, growth_interval=20)

            def train(self, x, y):
                self.optimizer.zero_grad()
                loss = (self.model(x).squeeze(1) - y).square().mean()
                self.scaler.scale(loss).backward()
                if unscale:
                    self.scaler.unscale_(self.optimizer)
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                return loss.detach()

        run = beside_a_plain_loop(device, schedule, Scaled, 2)
        assert "GradScaler" in run.report().refusals["train"]


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestModels:
    def test_training_and_evaluation(self, device, schedule):
        def between(training, epoch):
            training.model.train(epoch % 2 == 1)

        beside_a_plain_loop(device, schedule, lambda: Training(device, lr=0.002), 4, between)

    def test_dropout(self, device, schedule):
        run = beside_a_plain_loop(device, schedule, lambda: Training(device, dropout=0.5), 3,
                                  lambda training, epoch: setattr(training.model[2], "p", 0.3))
        if schedule == "graphed":
            assert replays(run) > COUNT

    def test_checkpointed_dropout(self, device, schedule):
        class Checkpointed(Training):
            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=True)
                out = torch.utils.checkpoint.checkpoint(self.model, x.requires_grad_(False), use_reentrant=False)
                loss = (out.squeeze(1) - y).square().mean()
                loss.backward()
                self.optimizer.step()
                return loss.detach()

        beside_a_plain_loop(device, schedule, lambda: Checkpointed(device, dropout=0.5), 2)

    def test_weights_that_are_frozen_or_replaced(self, device, schedule):
        def between(training, epoch):
            if epoch == 0:
                training.model[0].requires_grad_(False)
            elif epoch == 1:
                training.encoder.weight.data = training.encoder.weight.data * 2
            else:
                training.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
                torch.manual_seed(0)

        torch.manual_seed(0)
        plain, piped = Training(device), Training(device)
        with torch.no_grad():
            run = sluice.pipeline(piped.encode, schedule=schedule, device=graphing(device))
            for epoch in range(4):
                expected = [plain.encode(*batch)[0].tolist() for batch in data(COUNT, device)]
                assert [x.tolist() for x, _ in run(data())] == expected
                for training in (plain, piped):
                    torch.manual_seed(9)
                    between(training, epoch)

    def test_a_hook_that_is_added(self, device, schedule):
        def between(training, epoch):
            training.model[0].register_forward_hook(lambda module, given, out: out * 0.5)

        beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)

    def test_compiled(self, device, schedule):
        """torch.compile's code is not followed operation by operation, but what it reads is guarded."""
        class Compiled(Training):
            def __init__(self):
                super().__init__(device, momentum=0.9)
                self.factor = 1.0
                self.inner = torch.compile(self.loss, backend="aot_eager")

            def loss(self, x, y):
                return (self.model(x).squeeze(1) - y).square().mean() * self.factor

            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.inner(x, y)
                loss.backward()
                self.optimizer.step()
                return loss.detach()

        def between(training, epoch):
            training.factor = 0.5 + epoch

        run = beside_a_plain_loop(device, schedule, Compiled, 3, between)
        if schedule == "graphed":
            assert replays(run) > COUNT, str(run.report())

    def test_a_wrapper_of_several_processes(self, device, schedule):
        import torch.distributed as dist
        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("gloo" if device == "cpu" else "nccl", init_method=f"file://{folder}/store", rank=0,
                                    world_size=1)
            try:
                class Wrapped(Training):
                    def __init__(self):
                        super().__init__(device, lr=0.01)
                        self.whole, self.model = self.model, torch.nn.parallel.DistributedDataParallel(self.model)

                run = beside_a_plain_loop(device, schedule, Wrapped, 1)
                assert "DistributedDataParallel" in run.report().refusals["train"]
            finally:
                dist.destroy_process_group()

    def test_a_hook_of_a_weight(self, device, schedule):
        def between(training, epoch):
            if epoch == 0:
                training.model[0].weight.register_hook(lambda gradient: gradient * 0.5)
            elif epoch == 1:
                training.model[3].weight.register_post_accumulate_grad_hook(smaller)

        run = beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT, str(run.report())

    def test_an_encoder_that_learns(self, device, schedule):
        class Both(Training):
            def __init__(self):
                super().__init__(device)
                self.encoder.requires_grad_(True)
                self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.05)

        if device == "cuda" and schedule == "graphed":
            pytest.skip("a stage reads weights that another writes; expected `shares`, or `serial`")
        run = beside_a_plain_loop(device, schedule, Both, 2)
        if schedule == "automatic":
            assert run.report().schedule == "serial"
            return
        assert "autograd's history" in run.report().refusals["encode"]
        assert "autograd's history" in run.report().refusals["train"]

    def test_autocast_around_the_loop(self, device, schedule):
        plain, piped = Training(device), Training(device)
        run = sluice.pipeline(piped.encode, lambda x, y: piped.model(x).detach(), schedule=schedule, device=graphing(device))
        for epoch in range(3):
            with torch.autocast(device, torch.bfloat16):
                expected = [plain.model(plain.encode(*batch)[0]).tolist() for batch in data(60, device)]
                found = [out.tolist() for out in run(data(60))]
            assert found == expected, epoch
            for training in (plain, piped):
                with torch.no_grad():
                    training.model[0].weight.mul_(2)
        with torch.no_grad():
            assert [out.tolist() for out in run(data(60))] == [plain.model(plain.encode(*b)[0]).tolist() for b in data(60, device)]


GLOBAL = [1.0]


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestNumbers:
    def check(self, device, schedule, function, change, expected, is_captured=True):
        """`change(i)` before epoch i; `expected(i)` is what a batch of ones becomes."""
        run = sluice.pipeline(function, schedule=schedule, device=graphing(device))
        for epoch in range(4):
            change(epoch)
            found = [x.tolist() for x in run([torch.ones(2)] * COUNT)]
            assert found == [[expected(epoch)] * 2] * COUNT, f"epoch {epoch}\n{run.report()}"
        name = next(iter(run.report().replays))
        if schedule == "graphed" and is_captured:
            assert replays(run, name) > 3 * COUNT, str(run.report())
        return run

    def test_in_a_closure(self, device, schedule):
        factor = 0.0

        def change(i):
            nonlocal factor
            factor = i + 0.5

        self.check(device, schedule, lambda x: x * factor, change, lambda i: i + 0.5)

    def test_in_a_list_of_the_module(self, device, schedule):
        self.check(device, schedule, lambda x: x * GLOBAL[0], lambda i: GLOBAL.__setitem__(0, float(i)), float)

    def test_in_an_object(self, device, schedule):
        self.check(device, schedule, lambda x: x * SETTINGS.factor, lambda i: setattr(SETTINGS, "factor", i * 0.5),
                   lambda i: i * 0.5)

    def test_in_a_function_that_is_called(self, device, schedule):
        table = {"factor": 1.0}

        def inner():
            return table["factor"]

        def outer(x):
            return x * inner()

        self.check(device, schedule, outer, lambda i: table.update(factor=i * 0.5), lambda i: i * 0.5)

    def test_in_a_class(self, device, schedule):
        class Scale:
            factor = 1.0

            @property
            def twice(self):
                return 2 * self.factor

            def __call__(self, x):
                return x * self.twice

        self.check(device, schedule, Scale(), lambda i: setattr(Scale, "factor", i * 0.5), float)

    def test_in_a_partial(self, device, schedule):
        scale = functools.partial(lambda x, table: x * table[0], table=[1.0])
        self.check(device, schedule, scale, lambda i: scale.keywords["table"].__setitem__(0, float(i)), float)

    def test_by_a_name_that_is_made(self, device, schedule):
        class Holder:
            factor_1 = None

        holder = Holder()
        holder.factor_1 = 1.0

        def scale(x):
            return x * getattr(holder, f"factor_{x.dim()}")

        self.check(device, schedule, scale, lambda i: setattr(holder, "factor_1", float(i)), float)

    def test_a_method_of_a_class_that_is_replaced(self, device, schedule):
        class Scale:
            def factor(self):
                return 0.0

            def __call__(self, x):
                return x * self.factor()

        def change(i):
            Scale.factor = lambda self: float(i)

        self.check(device, schedule, Scale(), change, float)

    def test_a_default_device(self, device, schedule):
        run = sluice.pipeline(lambda x: x + torch.ones(2).to(x.device), schedule=schedule, device=graphing(device))
        for epoch in range(3):
            with torch.device("cpu" if epoch % 2 else device):
                assert [x[0].item() for x in run([torch.ones(2, device="cpu")] * COUNT)] == [2] * COUNT

    def test_a_default(self, device, schedule):
        def scale(x, factor=1.0):
            return x * factor

        def change(i):
            scale.__defaults__ = (float(i),)

        self.check(device, schedule, scale, change, float)

    def test_grad_mode(self, device, schedule):
        weight = torch.ones(2, requires_grad=True, device=device)

        def scale(x):
            return x * (2 if torch.is_grad_enabled() else 3) * weight.detach()

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        for epoch in range(4):
            with torch.set_grad_enabled(epoch % 2 == 0):
                assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == [2 + epoch % 2] * COUNT

    def test_that_the_stage_changes(self, device, schedule):
        count = 0

        def scale(x):
            nonlocal count
            count += 1
            return x * count

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == list(range(1, COUNT + 1))
        assert "it changes count" in run.report().refusals["scale"]

    def test_that_are_kept_on_the_host(self, device, schedule):
        kept = []

        def scale(x):
            kept.append(x.shape[0])
            return x + len(kept)

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.zeros(2)] * COUNT)] == list(range(1, COUNT + 1))

    @pytest.mark.parametrize("make", [lambda: iter(range(10 ** 6)), lambda: collections.Counter])
    def test_of_objects_that_cannot_be_looked_into(self, device, schedule, make):
        held = make()

        def scale(x):
            return x + (next(held) if hasattr(held, "__next__") else 0)

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        first = hasattr(held, "__next__")
        assert [x[0].item() for x in run([torch.zeros(2)] * COUNT)] == [i if first else 0 for i in range(COUNT)]
        if first:
            assert "held is a builtins.range_iterator" in run.report().refusals["scale"]

    @pytest.mark.parametrize("draw", ["random.random()", "numpy.random.rand()", "time.perf_counter()", "torch.rand(()).item()",
                                      "datetime.datetime.now().timestamp() % 1e6"])
    def test_of_the_host(self, device, schedule, draw):
        known: dict = {}
        exec("import datetime, random, time, torch\ntry:\n import numpy\nexcept ImportError: pass\n"  # noqa: S102
             f"def scale(x):\n return x + {draw}", known)
        if "numpy" in draw and "numpy" not in known:
            pytest.skip("numpy is not installed")
        run = sluice.pipeline(known["scale"], schedule=schedule, device=graphing(device))
        assert len({x[0].item() for x in run([torch.zeros(2, dtype=torch.float64)] * COUNT)}) == COUNT
        assert "scale" in run.report().refusals

    def test_a_tensor_that_is_replaced(self, device, schedule):
        table = {"offset": torch.zeros(2, device=device)}
        self.check(device, schedule, lambda x: x + table["offset"],
                   lambda i: table.update(offset=torch.full((2,), float(i), device=device)), lambda i: 1.0 + i)

    def test_words_that_a_plain_loop_prints(self, device, schedule, capsys):
        def scale(x):
            print("a batch")
            return x * 2

        list(sluice.pipeline(scale, schedule=schedule, device=graphing(device))([torch.ones(2)] * COUNT))
        assert capsys.readouterr().out.count("a batch") == COUNT


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestBatches:
    def test_keys(self, device, schedule):
        def sign(batch):
            return batch["plus"] * 1 if "plus" in batch else -batch["minus"]

        batches = [{"plus" if i % 2 else "minus": torch.ones(2)} for i in range(COUNT)]
        run = sluice.pipeline(sign, schedule=schedule, device=graphing(device), slots=2)
        assert [x[0].item() for x in run(batches)] == [1 if i % 2 else -1 for i in range(COUNT)]
        assert [x[0].item() for x in run(batches)] == [1 if i % 2 else -1 for i in range(COUNT)]

    def test_nesting(self, device, schedule):
        def shape(a, b):
            return (a[0] if isinstance(a, (list, tuple)) else a) * len(a) + b

        batches = [([torch.ones(3)], torch.ones(3)) if i // 5 % 2 else (torch.ones(3), torch.ones(3)) for i in range(COUNT)]
        run = sluice.pipeline(shape, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run(batches)] == [2 if i // 5 % 2 else 4 for i in range(COUNT)]

    @pytest.mark.parametrize("first,second", [(True, 1), (0.0, -0.0), (1, 1.0), ("a", b"a")])
    def test_values_that_are_equal(self, device, schedule, first, second):
        def which(x, value):
            return x + (1 if repr(value) == repr(first) else 2)

        batches = [(torch.zeros(2), first if i // 7 % 2 else second) for i in range(COUNT)]
        run = sluice.pipeline(which, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run(batches)] == [1 if i // 7 % 2 else 2 for i in range(COUNT)]

    def test_results_that_pass_through_and_lie_in_one(self, device, schedule):
        """What is copied in a graph, what is not, and what cannot be."""
        def first(x, y):
            z = x * 2
            return x, z, z.view(-1), y

        def second(x, z, view, y):
            return x + z + view, y

        data = [(torch.full((3,), float(i)), torch.tensor(i)) for i in range(COUNT)]
        run = sluice.pipeline(first, second, schedule=schedule, device=graphing(device))
        assert [(a[0].item(), b.item()) for a, b in run(data)] == [(5.0 * i, i) for i in range(COUNT)]
        run = sluice.pipeline(lambda x, y: (y, x * 2, x, x + 1), lambda y, z, x, w: (x + z + w, y), schedule=schedule,
                              device=graphing(device))
        for _ in range(2):
            assert [(a[0].item(), b.item()) for a, b in run(data)] == [(4.0 * i + 1, i) for i in range(COUNT)]

    def test_many_shapes(self, device, schedule):
        sizes = [1 + i % 11 for i in range(3 * COUNT)]
        run = sluice.pipeline(lambda x: x * 2, schedule=schedule, device=graphing(device))
        for _ in range(2):
            assert [x.tolist() for x in run([torch.full((size,), float(size)) for size in sizes])] == [[2.0 * s] * s for s in sizes]

    def test_objects(self, device, schedule):
        class Value:
            value = 1

        one = Value()

        def add(x, value):
            return x + value.value

        run = sluice.pipeline(add, schedule=schedule, device=graphing(device))
        found = []
        for x in run((torch.zeros(2), one) for _ in range(40)):
            found.append(x[0].item())
        one.value = 5
        assert [x[0].item() for x in run([(torch.zeros(2), one)] * 40)] == [5] * 40


class TestFailures:
    def test_a_capture_that_fails_leaves_all_as_it_was(self):
        """Not what is watched refuses it, but the capture itself."""
        class Refusing(GraphingDevice):
            def capture(self, stream, work, memory, generators):
                super().capture(stream, work, memory, generators)
                raise RuntimeError("operation not permitted")

        plain, piped = (Training("cpu", dropout=0.3, momentum=0.9) for _ in range(2))
        run = sluice.pipeline(sluice.stage(piped.encode, graph=False), piped.train, schedule="graphed", device=Refusing())
        torch.manual_seed(1)
        expected = [loss.item() for loss in plain.loop(data(40))]
        torch.manual_seed(1)
        assert [loss.item() for loss in run(data(40))] == expected
        assert run.report().refusals == {"train": "operation not permitted"}
        assert torch.equal(plain.model[0].weight.grad, piped.model[0].weight.grad)

    def test_a_graph_of_other_bits_is_found(self):
        class Wrong(GraphingDevice):
            def capture(self, stream, work, memory, generators):
                graph, outputs = super().capture(stream, work, memory, generators)
                right = graph.replay
                graph.replay = lambda: (right(), outputs.add_(1))
                return graph, outputs

        run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=Wrong())
        assert [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(40)])] == [2 * i for i in range(40)]
        assert "other bits than its Python code" in run.report().refusals["<lambda>"]

    def test_a_stage_that_the_caller_vouches_for(self):
        held = iter(range(10 ** 6))
        run = sluice.pipeline(sluice.stage(lambda x: x * (2 if hasattr(held, "__next__") else 3), "double", graph=True),
                              schedule="graphed", device=GraphingDevice())
        assert [x[0].item() for x in run([torch.ones(2)] * 40)] == [2] * 40
        assert run.report().replays["double"] > 20


@needs_cuda
class TestOnTheDevice:
    @pytest.mark.parametrize("bound", [0, 32 << 20])
    def test_results_of_a_slot_among_graphs_that_share_memory(self, bound, monkeypatch):
        """The second stage is slow, so that the first works on the next batches meanwhile."""
        from sluice.pipelines import forms
        monkeypatch.setattr(forms, "MOST_COPIED", bound)

        def first(x, y):
            z = x * 2
            for _ in range(4):
                z = z + x
            return z, y, (z - x).sum()

        def second(z, y, total):
            torch.cuda._sleep(300_000)
            return z.sum(), y, total

        run = sluice.pipeline(first, second, schedule="graphed", slots=4)
        for _ in range(2):
            found = [(a.item(), b.item(), c.item()) for a, b, c in run((torch.full((1 << 16,), float(i)), torch.tensor(i))
                                                                       for i in range(COUNT))]
            assert found == [(6.0 * i * (1 << 16), i, 5.0 * i * (1 << 16)) for i in range(COUNT)]
        assert run.stages[0].graphs.replays > COUNT

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_random_numbers_of_two_stages(self, schedule):
        torch.cuda.manual_seed(5)
        expected = [(x + torch.rand(64, device="cuda")).tolist() + torch.rand(64, device="cuda").tolist()
                    for x in [torch.zeros(64, device="cuda")] * COUNT]
        torch.cuda.manual_seed(5)
        run = sluice.pipeline(lambda x: x + torch.rand(64, device="cuda"), lambda x: torch.cat([x, torch.rand(64, device="cuda")]),
                              schedule=schedule)
        found = [x.tolist() for x in run([torch.zeros(64)] * COUNT)]
        assert found == expected
        if schedule == "graphed":
            assert min(run.stages[i].graphs.replays for i in (0, 1)) > COUNT / 2
        after = torch.rand(3, device="cuda")
        assert not any(after.tolist() == x[64:67] for x in found)

    def test_a_generator_of_the_callers(self):
        own = torch.Generator("cuda").manual_seed(3)
        expected = [torch.rand(8, device="cuda", generator=own).tolist() for _ in range(2 * COUNT)]
        own.manual_seed(3)
        run = sluice.pipeline(lambda x: x + torch.rand(8, device="cuda", generator=own), lambda x: x + 0, schedule="graphed")
        found = [x.tolist() for _ in range(2) for x in run([torch.zeros(8)] * COUNT)]
        assert found == expected
        assert run.stages[0].graphs.replays > COUNT, str(run.report())

    def test_a_seed_that_is_set_between_epochs(self):
        run = sluice.pipeline(lambda x: x + torch.rand(8, device="cuda"), schedule="graphed")
        first = None
        for _ in range(3):
            torch.manual_seed(11)
            found = [x.tolist() for x in run([torch.zeros(8)] * 40)]
            assert first is None or found == first
            first = found

    def test_a_capturable_adam_is_captured(self):
        def between(training, epoch):
            training.optimizer.param_groups[0]["weight_decay"] = 0.01

        run = beside_a_plain_loop("cuda", "graphed", lambda: Training("cuda", torch.optim.Adam, capturable=True), 3, between)
        assert replays(run) > 2 * COUNT, str(run.report())

    def test_a_capture_that_fails_on_the_device(self):
        """The host reads what the watched run did not show: it reads only while a capture is under way."""
        plain, piped = (Training("cuda", dropout=0.3, momentum=0.9) for _ in range(2))
        right = piped.train

        def train(x, y):
            loss = right(x, y)
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
            return loss

        run = sluice.pipeline(piped.encode, train, schedule="graphed")
        torch.manual_seed(1)
        expected = [loss.item() for loss in plain.loop(data(60, "cuda"))]
        torch.manual_seed(1)
        assert [loss.item() for loss in run(data(60))] == expected
        assert "captur" in run.report().refusals["train"]
        assert torch.rand(3, device="cuda").shape == (3,)

    def test_memory_after_failures_and_dropped_pipelines(self):
        weight = torch.rand(1024, 1024, device="cuda")

        def fails(x):
            y = (x @ weight).relu() @ weight
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
            return y.sum()

        def once(second):
            run = sluice.pipeline(lambda x: x @ weight, second, schedule="graphed")
            return [float(x) for x in run([torch.rand(512, 1024)] * 20)]

        def memory():
            gc.collect()
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            return torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]

        for second in (fails, lambda x: (x @ weight).sum()):
            found = []
            for _ in range(5):
                for _ in range(25):
                    once(second)
                found.append(memory())
            reserved, free = zip(*found)
            assert max(reserved[1:]) <= reserved[1], found
            # The driver takes room for graphs by 64 MB at a time, and not with each pipeline.
            assert sum(later < earlier for earlier, later in zip(free[1:], free[2:])) < 2, found
