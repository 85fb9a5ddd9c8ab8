"""What a graph reads of the batch that it is given: a form, which is checked before a replay, and addresses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Optional, Sequence

import torch

from sluice.pipelines.trees import attribute_of, is_plain

SCALARS = (int, str, bytes, bool, type(None), torch.dtype, torch.device)


class Unknown(Exception):
    """A value that cannot be compared with that of another batch."""


def signature_of(tree: Any) -> Optional[tuple[tuple, tuple]]:
    """The form of a batch (keys, nesting, types, shapes, strides, numbers) and the addresses of its tensors; nothing where it
    has values of which it is not known when they are the same. `True` is not 1, and -0.0 is not 0.0."""
    form: list[Any] = []
    addresses: list[int] = []
    try:
        describe(tree, form, addresses)
    except (Unknown, RecursionError):  # attributes may lead back to what has them
        return None
    return tuple(form), tuple(addresses)


def describe(tree: Any, form: list[Any], addresses: list[int]) -> None:
    if isinstance(tree, torch.Tensor):
        describe_tensor(tree, form, addresses)
        return
    kind = type(tree)
    if isinstance(tree, (tuple, list)):
        form += (kind, len(tree))
        for value in tree:
            describe(value, form, addresses)
        if kind not in (tuple, list):
            describe_attributes(tree, form, addresses, ())
    elif isinstance(tree, Mapping):
        form += (kind, len(tree))
        for key, value in tree.items():
            describe(key, form, addresses)
            describe(value, form, addresses)
        describe_attributes(tree, form, addresses, ("data",))
    elif isinstance(tree, float):
        form += (kind, tree, math.copysign(1.0, tree))
    elif isinstance(tree, SCALARS):
        form += (kind, tree)
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        form += (kind,)
        for field in dataclasses.fields(tree):
            describe(getattr(tree, field.name), form, addresses)
        describe_attributes(tree, form, addresses, [field.name for field in dataclasses.fields(tree)])
    else:
        raise Unknown


def describe_attributes(tree: Any, form: list[Any], addresses: list[int], known: Sequence[str]) -> None:
    """What a container holds besides its values. Of what is private, only numbers and the like."""
    attributes = attribute_of(tree, "__dict__")
    for name, value in attributes.items() if type(attributes) is dict else ():
        if name in known:
            continue
        form.append(name)
        if not name.startswith("_") or isinstance(value, (float, *SCALARS)):
            describe(value, form, addresses)


def describe_tensor(tensor: torch.Tensor, form: list[Any], addresses: list[int]) -> None:
    if not is_plain(tensor) or tensor.is_quantized or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Unknown
    form += (tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad)
    if tensor.is_complex():
        form.append(tensor.is_conj())
    addresses.append(tensor.data_ptr())
