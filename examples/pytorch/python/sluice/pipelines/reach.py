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
from sluice.pipelines.guards import Guard
from sluice.pipelines.layers import DISTRIBUTED, FAST, HOOKS, INDIFFERENT, STRUCTURE
from sluice.pipelines.trees import attribute_of
from sluice.pipelines.watching import KNOWN_MODULES, LIMIT, Watch, is_library, key_of, storages_of

ATOMS = (int, float, complex, bool, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.Size, torch.layout,
         torch.memory_format, range, slice, enum.Enum, torch.finfo, torch.iinfo, type(NotImplemented), re.Pattern, pathlib.PurePath)
RECORDS = (types.SimpleNamespace, argparse.Namespace)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
SCHEDULERS = (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
MISSING = object()
MOST = 20_000  # values, and of one container
LARGE = 2_000
DEEP = 12


class Reach:
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
        self.scalers: list[Any] = []
        self.compiled = False
        self.visit(function, "the stage")
        for hooks in hooks_of_all():
            self.container(hooks, "hooks of all modules or optimizers", 0, force=True)
        for actor in watch.acting:
            self.act(actor, type(actor).__name__)
        self.rest()

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
            if self.watch.before is not None or value in self.watch.acting:
                self.act(value, path)
        elif isinstance(value, SCHEDULERS):
            pass  # matters where it makes a step, see `act`
        elif isinstance(value, torch.amp.GradScaler):
            self.scalers.append(value)
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

    def tensor(self, tensor: torch.Tensor, path: str) -> None:
        try:
            self.guard.tensor(tensor, path)
        except RuntimeError:
            self.note(f"{path} is a tensor without an address")
            return
        if self.device.type == "cuda" and tensor.device.type == "cpu":
            self.note(f"{path} is a tensor of the CPU")
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks") if tensor.requires_grad else ():
            place = getattr(tensor, name, None)
            self.guard.attribute(tensor, name, place, f"hooks of {path}")
            if place:
                self.guard.size(place, f"hooks of {path}")
                for hook in place.values():
                    self.visit(hook, f"a hook of {path}", force=True)

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
        for name in names:
            if name in owner:
                self.guard.item(owner, name, owner[name], f"{path}.{name}")
                self.visit(owner[name], f"{path}.{name}", depth + 1)

    # Code.

    def function(self, function: types.FunctionType, path: str, depth: int, force: bool) -> None:
        code = function.__code__
        library = is_library(code.co_filename)
        if not library and not force and key_of(code) not in self.watch.codes:
            return  # it was not called
        self.codes.add(key_of(code))
        if force:
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
            for step in dis.get_instructions(inner):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and (step.argval in known or is_put_into_builtins(step.argval)):
                    name, owner = step.argval, known if step.argval in known else vars(builtins)
                    held = owner[name]
                    if (id(owner), name) not in self.seen:
                        self.seen[(id(owner), name)] = held  # type: ignore[index]
                        self.guard.item(owner, name, held, name)
                    self.visit(held, name, depth + 1, force)
                elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval not in BUILTINS:
                    self.guard.absent(known, step.argval)
                for name in imported(step.argval, known) if step.opname == "IMPORT_NAME" else ():
                    self.guard.item(sys.modules, name, sys.modules[name], f"the module {name}")
                    self.visit(sys.modules[name], name, depth + 1, force)

    def python_module(self, module: types.ModuleType, path: str, depth: int) -> None:
        host = {"os": "environ", "numpy": "random", "sys": "modules"}.get(module.__name__)
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
                elif name in self.names and not inspect.isdatadescriptor(held) and not name.startswith("__"):
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
                self.visit(value.__wrapped__, path, depth + 1, isinstance(value, functools._lru_cache_wrapper))
        else:
            if attributes is not None:
                self.guard.size(attributes, f"attributes of {path}")
                self.members(attributes, self.names, path, depth)
            for name in {name for base in kind.__mro__ for name in slots_of(base)} & self.names:
                if attribute_of(value, name, MISSING) is not MISSING:
                    self.guard.attribute(value, name, getattr(value, name), f"{path}.{name}")
                    self.visit(getattr(value, name), f"{path}.{name}", depth + 1)
            self.guard.attribute(value, "__class__", kind, f"the class of {path}")
            self.kind(kind, path, depth)

    # PyTorch's objects.

    def module(self, module: torch.nn.Module, path: str, depth: int) -> None:
        kind = type(module)
        if kind.__name__ in DISTRIBUTED or any(base.__name__ in DISTRIBUTED for base in kind.__mro__):
            self.refuse(f"{path} is a {kind.__name__}, which keeps its own account on the host")
        if isinstance(module, torch.jit.ScriptModule):
            self.note(f"{path} is a scripted module")
            return
        attributes = vars(module)
        self.guard.size(attributes, f"attributes of {path}")  # such as a `forward` of its own
        self.compiled = self.compiled or "_orig_mod" in attributes["_modules"] or bool(attributes.get("_compiled_call_impl"))
        own = is_library(file_of(kind))
        if not own or not isinstance(module, INDIFFERENT) or "training" in self.names:
            self.guard.item(attributes, "training", module.training, f"{path}.training")
        for group in ("_parameters", "_buffers", "_modules"):
            if isinstance(attributes[group], dict):
                self.guard.dictionary(attributes[group], path)
            for name, held in attributes[group].items():
                self.visit(held, f"{path}.{name}", depth if group == "_modules" else depth + 1)
        for hooks in HOOKS:
            if hooks in attributes:
                self.guard.size(attributes[hooks], f"hooks of {path}")
                for hook in attributes[hooks].values():
                    self.visit(hook, f"a hook of {path}", depth + 1, force=True)
        for name, held in attributes.items():
            if name in ("training", "_parameters", "_buffers", "_modules") or name in HOOKS:
                continue
            if name in self.names or (own and not name.startswith("_") and name not in STRUCTURE) or name == "forward":
                self.guard.item(attributes, name, held, f"{path}.{name}")
                self.visit(held, f"{path}.{name}", depth + 1)
        if isinstance(module, FAST):
            self.guard.item(vars(torch.backends.mha), "_is_fastpath_enabled", torch.backends.mha._is_fastpath_enabled, "the fast path")
        if not own:
            self.guard.attribute(module, "__class__", kind, f"the class of {path}")
            self.kind(kind, path, depth)

    def act(self, actor: Any, path: str) -> None:
        """An optimizer or a scheduler that makes steps in the stage."""
        if ("actor", id(actor)) in self.seen:
            return
        self.seen[("actor", id(actor))] = actor  # type: ignore[index]
        attributes = vars(actor)
        if isinstance(actor, SCHEDULERS):
            for name, held in attributes.items():
                if isinstance(held, (*ATOMS, list)):
                    self.guard.item(attributes, name, held, f"{path}.{name}")
                    self.visit(held, f"{path}.{name}")
            return
        self.optimizers.append(actor)
        self.guard.size(attributes, f"attributes of {path}")  # such as a `step` of its own
        for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
            if isinstance(attributes.get(name), dict):
                self.container(attributes[name], f"hooks of {path}", 0, force=True)
        self.guard.item(attributes, "state", actor.state, f"the state of {path}")
        self.guard.size(actor.state, f"the state of {path}")
        self.guard.item(attributes, "param_groups", actor.param_groups, f"the groups of {path}")
        self.guard.size(actor.param_groups, f"the groups of {path}")
        for place, group in enumerate(actor.param_groups):
            self.guard.item(actor.param_groups, place, group, f"a group of {path}")
            self.seen[id(group["params"])] = group["params"]
            self.container(group, f"{path}.param_groups[{place}]", 0)
            self.guard.members(group["params"], f"the parameters of {path}")
            for parameter in group["params"]:
                self.visit(parameter, f"a parameter of {path}")
            if group.get("capturable") is False:  # PyTorch refuses the capture of such a step
                self.refuse(f"{path}, {type(actor).__name__}, counts steps on the host; expected capturable=True")
        for parameter, state in actor.state.items():
            for name, held in state.items() if isinstance(state, dict) else ():
                if isinstance(held, torch.Tensor):
                    self.seen[id(held)] = held
                    if self.device.type == "cuda" and held.device.type == "cpu":
                        self.refuse(f"{path}, {type(actor).__name__}, keeps '{name}' on the CPU")
                else:
                    self.guard.item(state, name, held, f"'{name}' in the state of {path}")
                    self.visit(held, f"'{name}' in the state of {path}")
        if not is_library(file_of(type(actor))):
            self.members(attributes, self.names, path, 0)
            self.kind(type(actor), path, 0)

    # What is left.

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
