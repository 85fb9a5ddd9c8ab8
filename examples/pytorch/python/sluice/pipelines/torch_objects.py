"""What a stage can read on the host of PyTorch's objects: tensors, modules, optimizers, schedulers, and functions that may be replaced."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from sluice.pipelines.codes import file_of, names_in
from sluice.pipelines.layers import CONTAINERS, DISTRIBUTED, FAST, HOOKS, INDIFFERENT, STRUCTURE
from sluice.pipelines.watching import REPLACEABLE, is_library, key_of

SCHEDULERS = (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
PLAIN = (torch.Tensor, torch.nn.Parameter)


@functools.cache
def own_bases(kind: type) -> tuple[type, ...]:
    """PyTorch's layers that a module is one of, or is derived from."""
    return tuple(base for base in kind.__mro__ if issubclass(base, torch.nn.Module) and base is not torch.nn.Module
                 and base not in CONTAINERS and is_library(file_of(base)))


@functools.cache
def names_of_bases(kind: type) -> frozenset[str]:
    """What PyTorch's code of a class derived from its layers names."""
    functions = [held for base in own_bases(kind) for name, held in vars(base).items()
                 if isinstance(held, types.FunctionType) and name not in ("__init__", "extra_repr")]
    return frozenset(name for function in functions for name in names_in(function.__code__))


class TorchObjects:
    """A part of `Reach`."""

    def tensor(self, tensor: torch.Tensor, path: str) -> None:
        try:
            self.guard.tensor(tensor, path)
        except RuntimeError:
            self.note(f"{path} is a tensor without an address")
            return
        if self.device.type == "cuda" and tensor.device.type == "cpu":
            self.note(f"{path} is a tensor of the CPU")
        if type(tensor) in PLAIN:
            self.guard.size(vars(tensor), f"attributes of {path}")
            self.members(vars(tensor), self.names, path, 0)
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks") if tensor.requires_grad else ():
            place = getattr(tensor, name, None)
            self.guard.attribute(tensor, name, place, f"hooks of {path}")
            if place is not None:
                self.container(place, f"hooks of {path}", 0, force=True)

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
                self.container(attributes[hooks], f"hooks of {path}", depth, force=True)
        inherited = frozenset() if own else names_of_bases(kind)
        for name, held in attributes.items():
            if name in ("training", "_parameters", "_buffers", "_modules") or name in HOOKS:
                continue
            is_read = not name.startswith("_") and name not in STRUCTURE and (own or name in inherited)
            if name in self.names or is_read or name == "forward":
                self.guard.item(attributes, name, held, f"{path}.{name}")
                self.visit(held, f"{path}.{name}", depth + 1)
        if isinstance(module, FAST):
            self.guard.item(vars(torch.backends.mha), "_is_fastpath_enabled", torch.backends.mha._is_fastpath_enabled, "the fast path")
        self.guard.kind(module, f"the class of {path}")
        for base in (torch.nn.Module, *own_bases(kind)):
            self.method(base, "forward")
        self.method(torch.nn.Module, "__call__")
        if not own:
            self.kind(kind, path, depth)

    def method(self, kind: type, name: str) -> None:
        """Of a class of PyTorch's, which a program may replace."""
        if name in vars(kind) and ("method", kind, name) not in self.seen:
            held = self.seen[("method", kind, name)] = vars(kind)[name]
            self.guard.item(vars(kind), name, held, f"{kind.__name__}.{name}")
            self.visit(held, f"{kind.__name__}.{name}", force=True)
            if isinstance(held, types.FunctionType):
                self.functions_named(held.__code__, held.__globals__)

    def replaceable(self) -> None:
        """Functions of PyTorch's that ran, under the names by which its code and the caller's find them; and what was put into its
        classes."""
        called = set(self.watch.called)
        self.watch.called.clear()  # one for each call: as many as the stage made
        for module in REPLACEABLE:
            for name, held in list(vars(module).items()):
                if name in called and isinstance(held, (types.FunctionType, types.BuiltinFunctionType)):
                    self.guard.item(vars(module), name, held, name)
                elif isinstance(held, types.FunctionType) and key_of(held.__code__) in self.watch.codes:  # it was replaced before
                    self.guard.item(vars(module), name, held, name)
                    self.visit(held, name)
        kind = torch.Tensor
        self.guard.size(vars(kind), "attributes of torch.Tensor")
        for name, held in list(vars(kind).items()):
            part = getattr(held, "fget", held)
            if isinstance(part, types.FunctionType) and not is_library(part.__code__.co_filename):
                self.guard.item(vars(kind), name, held, f"torch.Tensor.{name}")
                self.visit(part, f"torch.Tensor.{name}")

    def optimizer(self, optimizer: torch.optim.Optimizer, path: str) -> None:
        for base in type(optimizer).__mro__:
            if is_library(file_of(base)):
                self.method(base, "step")
        if self.watch.before is not None or any(optimizer is actor for actor in self.watch.acting):
            self.act(optimizer, path)
        elif self.names & {"param_groups", "state", "defaults"}:  # which the stage's own code reads
            attributes = vars(optimizer)
            self.members(attributes, [name for name in ("param_groups", "state", "defaults") if name in self.names], path, 0)

    def scheduler(self, scheduler: Any, path: str) -> None:
        """Of one that makes no step: what the stage's own code reads."""
        names = {*self.names, "_last_lr"} if "get_last_lr" in self.names else self.names
        attributes = vars(scheduler)
        self.members(attributes, [name for name in attributes if name in names and name != "optimizer"], path, 0)

    def act(self, actor: Any, path: str) -> None:
        """An optimizer or a scheduler that makes steps in the stage."""
        if ("actor", id(actor)) in self.seen:
            return
        self.seen[("actor", id(actor))] = actor  # type: ignore[index]
        attributes = vars(actor)
        if isinstance(actor, SCHEDULERS):
            for name, held in attributes.items():
                if isinstance(held, (*self.atoms, list)):
                    self.guard.item(attributes, name, held, f"{path}.{name}")
                    self.visit(held, f"{path}.{name}")
            return
        self.optimizers.append(actor)
        self.guard.size(attributes, f"attributes of {path}")  # such as a `step` of its own
        for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
            if isinstance(attributes.get(name), dict):
                self.container(attributes[name], f"hooks of {path}", 0, force=True)
        if "defaults" in self.names:
            self.container(actor.defaults, f"{path}.defaults", 0)
        self.groups(actor, attributes, path)
        self.states(actor, attributes, path)
        if not is_library(file_of(type(actor))):
            self.members(attributes, self.names, path, 0)
            self.kind(type(actor), path, 0)

    def groups(self, actor: Any, attributes: dict, path: str) -> None:
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

    def states(self, actor: Any, attributes: dict, path: str) -> None:
        self.guard.item(attributes, "state", actor.state, f"the state of {path}")
        self.guard.dictionary(actor.state, f"the state of {path}", [f"a state of {path}"] * len(actor.state))
        for state in actor.state.values():
            if not isinstance(state, dict):
                continue
            if all(isinstance(held, torch.Tensor) for held in state.values()):
                self.guard.dictionary(state, f"the state of {path}")
            else:
                self.container(state, f"the state of {path}", 0)
            for name, held in state.items():
                if isinstance(held, torch.Tensor):
                    self.seen[id(held)] = held
                    if self.device.type == "cuda" and held.device.type == "cpu":
                        self.refuse(f"{path}, {type(actor).__name__}, keeps '{name}' on the CPU")
