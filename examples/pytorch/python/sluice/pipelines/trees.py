"""Tensors in tuples, lists and dictionaries: what loaders yield and stages exchange."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import torch


def as_tensor(leaf: Any) -> Any:
    """A tensor over the same memory, for arrays of other libraries that offer it by DLPack."""
    if isinstance(leaf, torch.Tensor) or not hasattr(leaf, "__dlpack__"):
        return leaf
    return torch.from_dlpack(leaf)


def map_tensors(work: Callable[[torch.Tensor], Any], tree: Any) -> Any:
    """The same tree with `work(tensor)` in place of each tensor."""
    tree = as_tensor(tree)
    if isinstance(tree, torch.Tensor):
        return work(tree)
    if isinstance(tree, dict):
        return type(tree)((key, map_tensors(work, value)) for key, value in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tensors(work, value) for value in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_tensors(work, value) for value in tree)
    return tree


def leaves_of(tree: Any) -> Iterator[Any]:
    """Everything that is no container, in order."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves_of(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from leaves_of(value)
    else:
        yield tree


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """All tensors, in order. Called several times a batch, hence without a generator."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    found: list[torch.Tensor] = []
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (tuple, list)):
        return found
    for value in tree:
        if isinstance(value, torch.Tensor):
            found.append(value)
        else:
            found += tensors_of(value)
    return found


def signature_of(tree: Any) -> tuple:
    """All that a graph reads of what it is given: addresses, shapes, strides and types of tensors, and other values."""
    return tuple((leaf.data_ptr(), leaf.shape, leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
                 for leaf in leaves_of(tree))


def call(function: Callable, batch: Any) -> Any:
    """A tuple or list becomes the arguments, anything else the only one."""
    if isinstance(batch, (tuple, list)) and not hasattr(batch, "_fields"):
        return function(*batch)
    return function(batch)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """NaNs of the same bits are the same."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    first, second = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b.to(a.device)))
    return torch.equal(first, second)
