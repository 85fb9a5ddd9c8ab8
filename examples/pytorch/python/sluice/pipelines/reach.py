"""What a stage can read on the host: from its callable through closures, globals, attributes and containers."""

from __future__ import annotations

import argparse
import builtins
import collections
import dis
import enum
import functools
import gc
import inspect
import pathlib
import re
import sys
import types
from typing import Any

import torch

from sluice.pipelines.codes import BUILTINS, codes_in, file_of, hooks_of_all, imported, is_put_into_builtins, names_in, slots_of
from sluice.pipelines.guards import Guard, LruCache, dispatch_modes
from sluice.pipelines.torch_objects import SCHEDULERS, TorchObjects
from sluice.pipelines.trees import attribute_of
from sluice.pipelines.watching import KNOWN_MODULES, LIMIT, Watch, is_library, key_of, storages_of

ATOMS = (int, float, complex, bool, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.Size, torch.layout,
         torch.memory_format, range, slice, enum.Enum, torch.finfo, torch.iinfo, type(NotImplemented), re.Pattern, pathlib.PurePath)
RECORDS = (types.SimpleNamespace, argparse.Namespace)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
HOST_ATTRIBUTES = {"os": ("environ",), "numpy": ("random",), "sys": ("modules", "argv")}
MISSING = object()
MOST = 20_000  # values, and of one container
LARGE = 2_000
DEEP = 12


class Reach(TorchObjects):
    """Fills a guard. `notes` say what cannot be guarded, `refusals` what must not be captured at all."""

    def __init__(self, function: Any, watch: Watch, device: torch.device) -> None:
        self.guard = Guard()
        self.watch = watch
        self.device = device
        self.notes: list[str] = list(watch.reasons)
        self.refusals: list[str] = []
        self.seen: dict[int, Any] = {}
        self.codes: set[tuple] = set()  # that were looked through
        self.names = {name for code, _ in watch.codes.values() for name in names_in(code)}
        self.optimizers: list[torch.optim.Optimizer] = []
        self.generators: list[torch.Generator] = []
        self.atoms = ATOMS
        self.compiled = False
        self.visit(function, "the stage")
        for hooks in hooks_of_all():
            self.container(hooks, "hooks of all modules or optimizers", 0, force=True)
        for actor in watch.acting:
            self.act(actor, type(actor).__name__)
        if "_version" in self.names:
            self.note("it reads how often a tensor was written")
        self.modes()
        self.replaceable()
        self.rest()
        self.guard.look_at_tensors()

    # Reasons.

    def note(self, reason: str) -> None:
        if reason not in self.notes and len(self.notes) < LIMIT:
            self.notes.append(reason)

    def refuse(self, reason: str) -> None:
        if reason not in self.refusals:
            self.refusals.append(reason)

    # By kind.

    def visit(self, value: Any, path: str, depth: int = 0, force: bool = False) -> None:
        if isinstance(value, ATOMS) or id(value) in self.seen and not force:
            return
        if len(self.seen) > MOST or depth > DEEP:
            self.note(f"{path} leads to too many values")
            return
        if force and ("forced", id(value)) in self.seen:
            return
        self.seen[id(value)] = value
        if force:
            self.seen[("forced", id(value))] = value  # type: ignore[index]
        try:
            self.look_into(value, path, depth, force)
        except Exception as error:  # of a property, or whatever else looking at it runs
            self.note(f"{path} cannot be looked into: {type(error).__name__}")

    def look_into(self, value: Any, path: str, depth: int, force: bool) -> None:
        compiled = attribute_of(value, "_torchdynamo_orig_callable")
        if compiled is not None:
            self.compiled = True
            self.visit(compiled, path, depth + 1, force)
        elif isinstance(value, torch.Tensor):
            self.tensor(value, path)
        elif isinstance(value, torch.nn.Module):
            self.module(value, path, depth)
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizer(value, path)
        elif isinstance(value, SCHEDULERS):
            self.scheduler(value, path)
        elif isinstance(value, torch.amp.GradScaler):
            self.guard.item(vars(value), "_enabled", vars(value)["_enabled"], f"whether {path} is enabled")
            if value.is_enabled():
                self.refuse(f"{path}, a GradScaler, reads on the host whether gradients are finite")
        elif isinstance(value, torch.Generator):
            self.generators.append(value)
        elif isinstance(value, (torch.cuda.Event, torch.cuda.Stream)):
            self.note(f"{path} is a stream or an event of its own")
        elif isinstance(value, types.FunctionType):
            self.function(value, path, depth, force)
        elif isinstance(value, types.MethodType):
            self.visit(value.__func__, path, depth + 1, force)
            self.visit(value.__self__, path, depth + 1)
        elif isinstance(value, functools.partial):
            self.guard.size(value.__dict__, path)
            for part in (value.func, value.args, value.keywords):
                self.visit(part, path, depth + 1, force)
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType,
                                types.MethodDescriptorType, types.GetSetDescriptorType)):
            owner = attribute_of(value, "__self__")
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.visit(owner, path, depth + 1)
        elif isinstance(value, types.ModuleType):
            self.python_module(value, path, depth)
        elif isinstance(value, type):
            self.kind(value, path, depth)
        elif isinstance(value, CONTAINERS):
            self.container(value, path, depth, force)
            if type(value).__module__ not in ("builtins", "collections", "torch.nn.parameter"):
                self.thing(value, path, depth)
        else:
            self.thing(value, path, depth)

    def container(self, value: Any, path: str, depth: int, force: bool = False) -> None:
        if len(value) > LARGE:
            self.note(f"{path} has {len(value)} values")
            return
        if isinstance(value, (set, frozenset)):
            if not all(isinstance(item, ATOMS) for item in value):
                self.note(f"{path} is a set of objects")
            elif isinstance(value, set):
                self.guard.sets.append((value, frozenset(value), path))
            return
        changes = not isinstance(value, tuple)
        if changes:
            self.guard.size(value, f"the size of {path}")
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            name = f"{path}[{key!r}]" if isinstance(key, (int, str)) else f"a value of {path}"
            if changes:
                self.guard.item(value, key, item, name)
            self.visit(item, name, depth + 1, force)

    def members(self, owner: Any, names: Any, path: str, depth: int) -> None:
        """Attributes of those names, of an object, a class or a module of Python's."""
        if self.watch.by_name and names is self.names and not isinstance(owner, types.MappingProxyType) and depth < DEEP - 2:
            names = list(owner)  # which names are looked up is not to be seen
        for name in [name for name in names if name in owner]:  # which may become more meanwhile
            self.guard.item(owner, name, owner[name], f"{path}.{name}")
            self.visit(owner[name], f"{path}.{name}", depth + 1)

    # Code.

    def function(self, function: types.FunctionType, path: str, depth: int, force: bool) -> None:
        code = function.__code__
        library = is_library(code.co_filename)
        if not library and not force and key_of(code) not in self.watch.codes:
            return  # it was not called
        self.codes.add(key_of(code))
        if force and not library:
            self.names |= names_in(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            self.guard.attribute(cell, "cell_contents", held, name)
            self.visit(held, name, depth + 1, force)
        if library:
            return
        self.guard.attribute(function, "__code__", code, f"the code of {path}")
        for name in ("__defaults__", "__kwdefaults__"):
            self.guard.attribute(function, name, getattr(function, name), f"defaults of {path}")
        for held in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            self.visit(held, f"a default of {path}", depth + 1, force)
        if function.__kwdefaults__:
            self.container(function.__kwdefaults__, f"defaults of {path}", depth)
        self.guard.size(function.__dict__, f"attributes of {path}")
        self.members(function.__dict__, self.names, path, depth)
        self.globals_of(code, function.__globals__, depth, force)

    def globals_of(self, code: types.CodeType, known: dict, depth: int, force: bool) -> None:
        for inner in codes_in(code):
            self.codes.add(key_of(inner))
            owner: Any = None
            for step in dis.get_instructions(inner):
                owner = self.attribute_loaded(owner, step)
                if step.opname == "STORE_GLOBAL" and step.argval in known:  # for the loop's body, or another stage
                    self.guard.item(known, step.argval, known[step.argval], step.argval)
                elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and (step.argval in known or is_put_into_builtins(step.argval)):
                    name, owner = step.argval, known if step.argval in known else vars(builtins)
                    held = owner[name]
                    if (id(owner), name) not in self.seen:
                        self.seen[(id(owner), name)] = held  # type: ignore[index]
                        self.guard.item(owner, name, held, name)
                    self.visit(held, name, depth + 1, force)
                    owner = held
                elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval not in BUILTINS:
                    self.guard.absent(known, step.argval)
                for name in imported(step.argval, known) if step.opname == "IMPORT_NAME" else ():
                    self.guard.item(sys.modules, name, sys.modules[name], f"the module {name}")
                    self.visit(sys.modules[name], name, depth + 1, force)

    def functions_named(self, code: types.CodeType, known: dict) -> None:
        """Of modules of PyTorch's, in the code of one of its layers."""
        owner: Any = None
        for step in dis.get_instructions(code):
            owner = known.get(step.argval) if step.opname == "LOAD_GLOBAL" else self.attribute_loaded(owner, step)

    def attribute_loaded(self, owner: Any, step: dis.Instruction) -> Any:
        """A function of a library's module, which a program may replace: `owner.name`, and so on from there."""
        if not isinstance(owner, types.ModuleType) or step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return None
        held = vars(owner).get(step.argval)
        if isinstance(held, (types.FunctionType, types.BuiltinFunctionType)):
            self.guard.item(vars(owner), step.argval, held, f"{owner.__name__}.{step.argval}")
        return held

    def python_module(self, module: types.ModuleType, path: str, depth: int) -> None:
        for host in HOST_ATTRIBUTES.get(module.__name__, ()):
            if host in self.names:
                self.note(f"it uses {module.__name__}.{host} of the host")
        file = getattr(module, "__file__", None) or module.__name__.split(".")[0]  # a folder without __init__.py has none
        if file not in KNOWN_MODULES and not is_library(file):
            self.guard.size(vars(module), f"attributes of {path}")
            self.members(vars(module), [*self.names], path, depth)

    def kind(self, kind: type, path: str, depth: int, force: bool = False) -> None:
        """A class: functions of it that were called, and what its objects share."""
        force = force or issubclass(kind, torch.autograd.Function)  # whose backward runs on a thread of PyTorch's
        for base in (*kind.__mro__, *type(kind).__mro__):
            if is_library(file_of(base)) or ("class", base) in self.seen:
                continue
            self.seen[("class", base)] = base  # type: ignore[index]
            self.guard.size(vars(base), f"attributes of {path}")
            for name, held in list(vars(base).items()):
                if isinstance(held, property):
                    for part in [part for part in (held.fget, held.fset) if isinstance(part, types.FunctionType)]:
                        self.visit(part, f"{path}.{name}", depth + 1)
                    continue
                held = getattr(held, "__func__", getattr(held, "func", held))
                if callable(held):
                    code = getattr(held, "__code__", None)
                    if code is not None and (force or key_of(code) in self.watch.codes):
                        self.guard.item(vars(base), name, vars(base)[name], f"{path}.{name}")
                    if not isinstance(held, type) or name in self.names:
                        self.visit(held, f"{path}.{name}", depth + 1, force)
                elif name in self.names and not name.startswith("__") and (
                        not inspect.isdatadescriptor(held) or not is_library(file_of(type(held)))):
                    self.guard.item(vars(base), name, vars(base)[name], f"{path}.{name}")
                    self.visit(held, f"{path}.{name}", depth + 1)

    def thing(self, value: Any, path: str, depth: int) -> None:
        """An object of a class of the user's, a record, or of a kind that is not known."""
        kind = type(value)
        file = file_of(kind)
        attributes = attribute_of(value, "__dict__")
        if isinstance(value, RECORDS):
            self.guard.size(attributes, f"attributes of {path}")
            self.members(attributes, self.names, path, depth)
        elif kind.__module__ == "torch" or kind.__module__.startswith("torch."):
            if attributes is None:
                if not callable(value):
                    self.note(f"{path} is a {kind.__module__}.{kind.__name__}")
            elif not callable(value) or not isinstance(value, types.BuiltinFunctionType):
                if kind.__module__.startswith(("torch._ops", "torch._C", "torch._jit")):
                    return
                self.members(attributes, list(attributes), path, depth)
        elif is_library(file) or (attributes is None and not hasattr(kind, "__slots__")):
            if attribute_of(value, "__wrapped__") is None or not callable(value):
                self.note(f"{path} is a {kind.__module__}.{kind.__name__}")
            else:
                # What a cached function reads, it may read when it is called for the next time.
                cached = isinstance(value, functools._lru_cache_wrapper)
                if cached:
                    self.guard.attribute(LruCache(value), "has_changed", False, f"the cache of {path}")
                self.visit(value.__wrapped__, path, depth + 1, cached)
        else:
            if attributes is not None:
                self.guard.size(attributes, f"attributes of {path}")
                self.members(attributes, self.names, path, depth)
            for name in {name for base in kind.__mro__ for name in slots_of(base)} & self.names:
                if attribute_of(value, name, MISSING) is not MISSING:
                    self.guard.attribute(value, name, getattr(value, name), f"{path}.{name}")
                    self.visit(getattr(value, name), f"{path}.{name}", depth + 1)
            self.guard.kind(value, f"the class of {path}")
            self.kind(kind, path, depth)

    # What is left.

    def modes(self) -> None:
        """Of the program's, around the loop."""
        for place in range(torch._C._len_torch_function_stack()):
            self.visit(torch._C._get_function_stack_at(place), "a TorchFunctionMode")
        if dispatch_modes():
            self.note("a TorchDispatchMode is on around the loop")

    def rest(self) -> None:
        """Code that ran, and was not found from the callable: functions that were held elsewhere."""
        for key, (code, known) in self.watch.codes.items():
            if key in self.codes:
                continue
            if code.co_freevars:
                holders = [f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType)]
                if not holders:
                    self.note(f"{code.co_name} in {code.co_filename}:{code.co_firstlineno} was not found from the stage")
                for holder in holders:
                    self.visit(holder, code.co_name)
            else:
                self.globals_of(code, known, 0, False)

    def addresses(self) -> set[int]:
        """Where all the tensors lie that were found."""
        found = [value for value in self.seen.values() if isinstance(value, torch.Tensor)]
        return {address for _, address in storages_of(found)}

    def leaves(self) -> list[torch.Tensor]:
        """Parameters and the like, which get gradients."""
        found: dict[int, torch.Tensor] = {}
        for value in self.seen.values():
            if isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad:
                found[id(value)] = value
        return list(found.values())
