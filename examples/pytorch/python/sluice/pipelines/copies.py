"""Copies of results, which lie over each other as these do: what the loop's body writes to one, it finds in the other."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

import torch

from sluice.pipelines.intake import extent
from sluice.pipelines.trees import is_ordinary, map_tensors, tensors_of, with_attributes

ALIGNMENT = 16  # bytes, of the widest numbers


def copied_where(is_copied: Callable[[torch.Tensor], bool], results: Any) -> Any:
    """`results`, with copies in place of some tensors."""
    tensors = {id(tensor): tensor for tensor in tensors_of(results) if is_copied(tensor)}
    copies = dict(zip(tensors, copies_of(list(tensors.values()))))
    return map_tensors(lambda tensor: copies.get(id(tensor), tensor), results)


def copies_of(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    runs = runs_of(tensors)
    whole = {place: copy for run in runs if is_over_each_other(tensors, run) for place, copy in zip(run, copies_of_run(tensors, run))}
    return [with_attributes(whole[place] if place in whole else tensor.clone(), tensor) for place, tensor in enumerate(tensors)]


def lies_over_itself(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether copies one by one would not be as these are."""
    tensors = list(tensors)
    return any(is_over_each_other(tensors, run) for run in runs_of(tensors))


def runs_of(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """Places of tensors between whose first and last bytes there is no gap."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for place, tensor in enumerate(tensors):
        is_known = type(tensor) is torch.Tensor and is_ordinary(tensor) and not tensor.requires_grad
        if is_known and not is_view_of_numbers(tensor) and tensor.numel() > 0:
            begin, end = bytes_of(tensor)
            found.setdefault(tensor.untyped_storage()._cdata, []).append((begin, end, place))
    runs: list[list[int]] = []
    for spans in found.values():
        until = -1
        for begin, end, place in sorted(spans):
            if begin >= until:
                runs.append([])
            runs[-1].append(place)
            until = max(until, end)
    return runs


def is_over_each_other(tensors: Sequence[torch.Tensor], run: Sequence[int]) -> bool:
    """Several tensors do, or the numbers of one, such as an expanded one, whose copy would be longer."""
    return len(run) > 1 or extent(tensors[run[0]].shape, tensors[run[0]].stride()) < tensors[run[0]].numel()


def copies_of_run(tensors: Sequence[torch.Tensor], run: Sequence[int]) -> list[torch.Tensor]:
    """By one copy of their bytes."""
    spans = [bytes_of(tensors[place]) for place in run]
    first = min(begin for begin, _ in spans) // ALIGNMENT * ALIGNMENT
    length = max(end for _, end in spans) - first
    storage = tensors[run[0]].untyped_storage()
    with torch.inference_mode(False), torch.no_grad():
        whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, first, (length,), (1,)).clone().untyped_storage()
        return [torch.empty(0, dtype=tensor.dtype, device=storage.device).set_(
            whole, (begin - first) // tensor.element_size(), tensor.shape, tensor.stride())
            for (begin, _), tensor in zip(spans, [tensors[place] for place in run])]


def bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    size = tensor.element_size()
    begin = tensor.storage_offset() * size
    return begin, begin + extent(tensor.shape, tensor.stride()) * size


def is_view_of_numbers(tensor: torch.Tensor) -> bool:
    """Whose numbers are not what its memory has."""
    return tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor() or tensor.is_quantized
