"""What a stage does in one eager run: which Python code it runs, which operations, on which memory."""

from __future__ import annotations

import functools
import operator
import os
import sys
import sysconfig
import types
from typing import Any, Iterator, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH = os.path.dirname(os.path.abspath(torch.__file__))
LIBRARIES = (TORCH + os.sep, HERE + os.sep, *(os.path.join(os.path.dirname(TORCH), name) + os.sep
                                              for name in ("functorch", "numpy", "sympy", "mpmath", "triton")))
STANDARD = tuple(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib"))
NO_LIBRARY = ("site-packages" + os.sep, "dist-packages" + os.sep)
# What is read there is another thing each time, or is an effect on the host.
HOST_MODULES = {"time", "datetime", "random", "_random", "posix", "os", "io", "_io", "secrets", "uuid", "threading", "_thread",
                "queue", "socket", "_socket", "subprocess", "logging", "multiprocessing", "asyncio", "select", "pickle",
                "_pickle", "numpy.random", "tempfile", "shutil", "sqlite3", "csv", "_csv", "importlib"}
KNOWN_MODULES = {*sys.stdlib_module_names, "torch", "numpy", "sluice"}
ASIDE = (os.path.join("torch", "_dynamo", "convert_frame.py"), "<frozen importlib._bootstrap>")  # what goes on there is no stage's
OF_GRADIENTS = {"zero_grad", "step", "backward", "grad", "clip_grad_norm_", "clip_grad_value_", "get_total_norm"}
HOST_FUNCTIONS = (print, open, input, exec, eval, globals, locals, __import__)
# What looks up attributes whose names are not in the code, be it called by other functions; and of the standard library.
BY_NAME = (getattr, setattr, vars, dir, operator.attrgetter)
BY_NAMES = frozenset(["__dict__", "__getattribute__", "__setattr__", *(function.__name__ for function in BY_NAME)])
LOOKING_MODULES = {"dataclasses", "copy", "inspect"}
# Of a generator, which is a part of each replay but for these.
OF_GENERATORS = {"initial_seed", "seed", "get_offset", "set_offset", "manual_seed", "get_state", "set_state", "graphsafe_get_state",
                 "graphsafe_set_state", "get_rng_state", "set_rng_state", "manual_seed_all"}
REPLACEABLE = (torch, torch.nn.functional, torch.nn.init)
LIMIT = 5  # reasons of one kind


def is_library(file: str) -> bool:
    """PyTorch, sluice and Python's own: what their code reads is looked after by kind."""
    if file.startswith(LIBRARIES) or file.startswith(("<frozen", "<eval_with_key>", "<__array_function__")):
        return True
    if "torchinductor" in file:
        return True
    return file.startswith(STANDARD) and not any(part in file for part in NO_LIBRARY)


def key_of(code: types.CodeType) -> tuple:
    """The same for what torch.compile makes of it."""
    return code.co_filename, code.co_firstlineno, code.co_name


def storages_of(tree: Any) -> Iterator[tuple[torch.Tensor, int]]:
    """All tensors, with the address of their memory."""
    if isinstance(tree, torch.Tensor):
        if is_traceable_wrapper_subclass(tree):
            for name in tree.__tensor_flatten__()[0]:
                yield from storages_of(getattr(tree, name))
        elif tree.layout is torch.strided:
            try:
                yield tree, tree.untyped_storage().data_ptr()
            except RuntimeError:  # zeros of a derivative forward, which have no memory
                pass
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from storages_of(value)
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from storages_of(value)


class Operations(TorchDispatchMode):
    """Follows every operation, of backward passes too."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.made: set[int] = set()
        self.bytes = 0  # of what was made
        self.outside: dict[int, torch.Tensor] = {}  # what was there before, by address
        self.written: dict[int, torch.Tensor] = {}
        self.generators: list[torch.Generator] = []
        self.refusals: list[str] = []
        self.draws = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.before(func, args, kwargs)
        result = func(*args, **kwargs)
        given = {address for _, address in storages_of([args, kwargs])}
        for tensor, address in storages_of(result):
            if address not in self.outside:
                self.made.add(address)
            if address not in given:
                self.bytes += tensor.nbytes
        return result

    def before(self, func: Any, args: Any, kwargs: dict) -> None:
        name = str(func)
        if name.startswith("aten.lift_fresh") and not (args[0].device.type == "cuda"):
            self.made.update(address for _, address in storages_of(args))
        self.refuse(func, name, args, kwargs)
        for tensor, address in storages_of([args, kwargs]):
            if address not in self.made and address not in self.outside and address != 0:
                self.outside[address] = tensor
        for storage in args if name.startswith("aten.set_") else ():  # as cuDNN's recurrent networks take all of their weights
            if isinstance(storage, torch.UntypedStorage) and not {storage.data_ptr()} & (self.made | self.outside.keys() | {0}):
                self.outside[storage.data_ptr()] = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        if "batch_norm" in name and "backward" not in name:  # its schema does not tell that it writes running statistics
            for tensor, address in storages_of(args[1:]):
                if address in self.outside:
                    self.written.setdefault(address, tensor)
        if func._schema.is_mutable:
            given = list(args) + [None] * (len(func._schema.arguments) - len(args))
            for argument, value in zip(func._schema.arguments, given):
                value = kwargs.get(argument.name, value)
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for tensor, address in storages_of(value):
                        if address in self.outside:
                            self.written.setdefault(address, tensor)

    def refuse(self, func: Any, name: str, args: Any, kwargs: dict) -> None:
        if len(self.refusals) >= LIMIT:
            return
        tags = func.tags
        if torch.Tag.data_dependent_output in tags:
            self.refusals.append(f"{name} reads values of tensors on the host, as .item() does")
        elif torch.Tag.dynamic_output_shape in tags and self.is_dynamic(name, args, kwargs):
            self.refusals.append(f"{name} makes a tensor whose shape depends on values")
        elif name.startswith("aten.index_put") and has_mask(args) and (args[2].numel() > 1 or len(args) > 3 and args[3]):
            self.refusals.append(f"{name} looks on the host where a mask is true")
        elif name.startswith("aten._cudnn_rnn") and "flatten" not in name:
            self.refusals.append(f"{name} is a recurrent network of cuDNN's, which is not made a graph")
        elif func.namespace in ("c10d", "_c10d_functional"):
            self.refusals.append(f"{name} talks to other processes")
        if torch.Tag.nondeterministic_seeded in tags:
            self.draws = True
            generator = kwargs.get("generator")
            if generator is not None and not any(generator is known for known in self.generators):
                self.generators.append(generator)
        if self.device.type == "cuda":
            self.refuse_host_tensors(name, args, kwargs)

    def refuse_host_tensors(self, name: str, args: Any, kwargs: dict) -> None:
        to_device = str(kwargs.get("device", "cuda")).startswith("cuda")
        tensors = [tensor for tensor, _ in storages_of([args, kwargs])]
        if name.startswith("aten.lift_fresh") and any(tensor.is_cuda for tensor in tensors):
            self.refusals.append("it makes a tensor of the device from values of the host")
        elif name.startswith(("aten._to_copy", "aten.copy_")):
            on_host = [tensor.device.type == "cpu" for tensor in tensors]
            if any(on_host) and (to_device or not all(on_host)):
                self.refusals.append(f"{name} copies between the host and the device")
            elif not to_device and not all(on_host):
                self.refusals.append(f"{name} copies from the device to the host")
        else:
            for tensor, address in storages_of([args, kwargs]):
                # Numbers become tensors of the CPU without a dimension; those that are held are found elsewhere.
                if tensor.device.type == "cpu" and tensor.dim() > 0 and address not in self.made:
                    self.refusals.append(f"{name} uses a tensor of the CPU of shape {list(tensor.shape)}")
                    return

    @staticmethod
    def is_dynamic(name: str, args: Any, kwargs: dict) -> bool:
        if name.startswith("aten.index."):
            return has_mask(args)
        if name.startswith("aten.repeat_interleave"):
            return kwargs.get("output_size") is None
        return True


def has_mask(args: Any) -> bool:
    """Whether an operation with indices has some that are true or false."""
    indices = args[1] if len(args) > 1 else ()
    return any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices)


def looks_by_name(code: types.CodeType, known: dict) -> bool:
    """Whether it has a function look up attributes whose names it does not say."""
    return not BY_NAMES.isdisjoint(code.co_names) or any(known.get(name) is each for name in code.co_names for each in BY_NAME)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """All memory that the tensor is a part of."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


@functools.cache
def first_use() -> None:
    """The first dispatch mode of a process imports a good deal, which is no stage's affair."""
    with Operations(torch.device("cpu")):
        torch.zeros(1).add_(1)


class Watch:
    """Around one call of a stage. `operations` is nothing where they are not looked at: torch.compile turns itself off
    where operations are followed."""

    def __init__(self, device: torch.device, operations: bool, captures: bool = False) -> None:
        self.captures = captures
        self.operations = Operations(device) if operations else None
        self.codes: dict[tuple, tuple[types.CodeType, dict]] = {}  # of the caller, and its globals
        self.called: list[str] = []  # names of functions; no set, since torch.compile looks into what takes note of them
        self.acting: list[Any] = []  # optimizers and schedulers that made a step
        self.backward = False
        self.first = ""  # of calls that have to do with gradients
        self.by_name = False
        self.reasons: list[str] = []
        self.files: dict[str, bool] = {}
        self.seen: set[Any] = set()
        self.aside: Optional[types.FrameType] = None  # imports, or compiles
        self.before: Any = None  # another profiler
        self.outer: Any = None  # that of another watch around this one
        self.threads: Any = None

    def __enter__(self) -> "Watch":
        # A GPU's backward passes run on a thread of PyTorch's own, where the Python code that they run is not seen.
        if not self.captures:
            self.threads = torch.autograd.set_multithreading_enabled(False)
        if self.operations is not None:
            first_use()
            self.operations.__enter__()
        found = sys.getprofile()
        if found is None:
            sys.setprofile(self.event)
        elif isinstance(getattr(found, "__self__", None), Watch):
            self.outer = found
            sys.setprofile(self.both)
        else:
            self.before = found
            self.reasons.append("a profiler of Python runs")
        return self

    def __exit__(self, *error: Any) -> None:
        if self.before is None:
            sys.setprofile(self.outer)
        if self.operations is not None:
            self.operations.__exit__(*error)
        if self.threads is not None:
            self.threads.__exit__(None, None, None)

    def is_library(self, frame: types.FrameType) -> bool:
        file = frame.f_code.co_filename
        if file == "<string>":  # a dataclass's functions, torch.compile's guards, or the user's
            module = frame.f_globals.get("__name__") or ""
            guards = frame.f_code.co_name == "guard" and "G" in frame.f_globals or any(
                name.startswith("___") for name in frame.f_code.co_freevars)
            return guards or module.split(".")[0] in KNOWN_MODULES
        known = self.files.get(file)
        if known is None:
            known = self.files[file] = is_library(file)
        return known

    def both(self, frame: types.FrameType, event: str, argument: Any) -> None:
        self.outer(frame, event, argument)
        self.event(frame, event, argument)

    def event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if self.aside is not None:
            if event == "return" and frame is self.aside:
                self.aside = None
            return
        if event == "c_call":
            self.host_function(frame, argument)
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.endswith(ASIDE):
            self.aside = frame
            return
        library = self.is_library(frame)
        if code.co_name == "step" or (library and code.co_name in ("backward", "grad")):
            self.step(frame, code)
        if library and self.first == "" and code.co_name in OF_GRADIENTS:
            self.first = code.co_name
        if code.co_name == "__torch_dispatch__":  # of code that follows operations, as this does
            return
        if not library:
            if key_of(code) not in self.codes:
                self.codes[key_of(code)] = code, frame.f_globals
                self.by_name = self.by_name or looks_by_name(code, frame.f_globals)
        elif code not in self.seen:
            self.called.append(code.co_name)
            self.host_module(frame, code)

    def step(self, frame: types.FrameType, code: types.CodeType) -> None:
        if code.co_name != "step":
            self.backward = True
            return
        actor = frame.f_locals.get("self")
        kinds = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if isinstance(actor, kinds) and not any(actor is known for known in self.acting):
            self.acting.append(actor)

    def host_function(self, frame: types.FrameType, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if not isinstance(owner, torch.Tensor):
            self.called.append(name)
        if self.is_library(frame):
            return
        module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or (
            type(owner).__module__ if owner is not None else "")
        if function in BY_NAME or isinstance(owner, str) and name in ("format", "format_map"):
            self.by_name = True
        if isinstance(owner, torch.Generator) and name in OF_GENERATORS:
            self.note(f"it calls {name}() of a generator")
        if function in HOST_FUNCTIONS or module in HOST_MODULES or module.startswith("numpy.random"):
            self.note(f"it calls {module}.{getattr(function, '__name__', '')} of the host")
        elif module and module.split(".")[0] not in KNOWN_MODULES:
            self.note(f"it calls {module}.{getattr(function, '__name__', '')}, which cannot be looked into")

    def host_module(self, frame: types.FrameType, code: types.CodeType) -> None:
        caller = frame.f_back
        if caller is None or self.is_library(caller):
            return
        self.seen.add(code)
        module = frame.f_globals.get("__name__", "").split(".")[0]
        self.by_name = self.by_name or module in LOOKING_MODULES
        if module in HOST_MODULES:
            self.note(f"it calls {module}.{code.co_name} of the host")
        elif module == "torch" and code.co_name in OF_GENERATORS:
            self.note(f"it calls {code.co_name}() of a generator")

    def note(self, reason: str) -> None:
        if reason not in self.reasons and len(self.reasons) < LIMIT:
            self.reasons.append(reason)

    def refusals(self) -> list[str]:
        return [] if self.operations is None else self.operations.refusals
