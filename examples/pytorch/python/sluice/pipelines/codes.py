"""What Python code names, and where the objects are that it does not name."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any, Iterator

import torch

BUILTINS = frozenset(vars(builtins))  # Python's own, and what was put there by then
GLOBAL_HOOKS = {"torch.nn.modules.module": ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
                                            "_global_backward_pre_hooks"),
                "torch.optim.optimizer": ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")}


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions that it makes."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def names_in(code: types.CodeType) -> set[str]:
    """Attributes and globals, and strings, which may be such names, as those of a `match` in a tuple are."""
    return {name for inner in codes_in(code) for constant in [inner.co_names, *inner.co_consts]
            for name in (constant if isinstance(constant, tuple) else (constant,)) if isinstance(name, str)}


def imported(name: str, known: dict) -> Iterator[str]:
    """What `import name`, or `from .name import`, finds in `sys.modules`: the module, and the packages that it is in."""
    package = known.get("__package__") or ""
    while True:
        whole = ".".join(part for part in (package, name) if part)
        for end in range(len(whole) + 1):
            if (end == len(whole) or whole[end] == ".") and whole[:end] in sys.modules:
                yield whole[:end]
        if not package:
            return
        package = package.rpartition(".")[0]


def file_of(kind: type) -> str:
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or ("<frozen>" if kind.__module__ == "builtins" else "<user>")


def is_put_into_builtins(name: str) -> bool:
    return name not in BUILTINS and name in vars(builtins)


def hooks_of_all() -> Iterator[Any]:
    """Dictionaries of the hooks that all modules or all optimizers have."""
    for module, names in GLOBAL_HOOKS.items():
        for name in names:
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, dict):
                yield found


def slots_of(kind: type) -> tuple:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
