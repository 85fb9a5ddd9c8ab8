"""Whether what a stage returned may be differentiated later."""

from __future__ import annotations

import functools

import torch


@functools.cache
def names_of_saved(kind: type) -> tuple[str, ...]:
    """Of tensors that a node of autograd keeps. They raise where a backward pass has freed them."""
    if issubclass(kind, torch.autograd.function.BackwardCFunction):
        return ("saved_tensors",)
    return tuple(name.replace("_raw", "", 1) for name in dir(kind) if name.startswith("_raw_saved_"))


def has_history(tensor: torch.Tensor) -> bool:
    """The first node that keeps a tensor knows."""
    nodes, seen = [tensor.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        try:
            kept = [getattr(node, name) for name in names_of_saved(type(node))]
        except RuntimeError:
            return False
        if any(isinstance(each, torch.Tensor) or each for each in kept):  # or some in a tuple
            return True
        nodes += [following for following, _ in node.next_functions]
    return tensor.grad_fn is not None
