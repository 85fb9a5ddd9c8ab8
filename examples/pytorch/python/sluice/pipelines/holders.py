"""Who holds a tensor's memory. A tensor, its views, what `detach()`, `.data`, `view(dtype)`, `numpy()` or a Parameter made of it, and
what a backward pass has saved of it all share one storage, which PyTorch counts."""

from __future__ import annotations

import contextlib
import gc
from typing import Any, Iterable, Iterator, Sequence

import torch

count = torch._C._storage_Use_Count
Masked: Any = getattr(getattr(torch, "masked", None), "MaskedTensor", ())  # a prototype of PyTorch's
is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
is_transformed = torch._C._are_functorch_transforms_active  # tensors may be wrapped, whose memory the operators' library cannot look at


def is_masked(tensor: torch.Tensor) -> bool:
    """Whose numbers are two tensors', of which PyTorch's ways to ask know nothing."""
    return isinstance(tensor, Masked)


def storages_of(tensors: Iterable[torch.Tensor]) -> list[Any]:
    """Their storages, and nothing else of them."""
    found = []
    for tensor in tensors:
        if type(tensor) is torch.Tensor or not (hasattr(tensor, "__tensor_flatten__") or is_masked(tensor)):
            try:
                found.append(tensor.untyped_storage())
                continue
            except (NotImplementedError, RuntimeError):  # sparse tensors have none
                pass
        found += storages_of(parts_of(tensor))
    return found


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The plain tensors that a nested, sparse or masked one consists of, or one of `torch.func`."""
    if is_wrapped(tensor):
        return [torch._C._functorch.get_unwrapped(tensor)]
    if is_masked(tensor):
        return [tensor._masked_data, tensor._masked_mask]
    if hasattr(tensor, "__tensor_flatten__"):
        return [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


def kept(storages: Iterable[Any]) -> list[Any]:
    """Those that are held elsewhere. The caller has no tensor of them any more, just these objects."""
    return [storage for storage in storages if count(storage._cdata) > 1]


def as_tensor(storage: Any) -> torch.Tensor:
    """A tensor of bytes over all of it."""
    with torch.inference_mode(False):
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class Baseline:
    """Memory that is written again and again, such as a graph's: how many hold it when the program does not."""

    def __init__(self) -> None:
        self.watched: dict[int, tuple[Any, int]] = {}  # by storage: that, and how many may hold it

    def watch(self, tensors: Iterable[torch.Tensor]) -> None:
        """From now on, those who hold it now may."""
        for storage in storages_of(tensors):
            self.watched[storage._cdata] = storage, count(storage._cdata)

    def again(self) -> None:
        """Those who hold it now may."""
        self.watched = {cdata: (storage, max(own, count(cdata))) for cdata, (storage, own) in self.watched.items()}

    def counts(self) -> dict[int, int]:
        return {cdata: count(cdata) for cdata in self.watched}

    def allow(self, before: dict[int, int]) -> None:
        """Those who came since then may hold it, too."""
        for cdata, (storage, own) in self.watched.items():
            self.watched[cdata] = storage, own + max(count(cdata) - before.get(cdata, count(cdata)), 0)

    def is_kept(self) -> bool:
        """After objects that hold each other, such as those of a graph that was dropped, are gone."""
        if not self.watched or not self.is_held():
            return False
        gc.collect()
        return self.is_held()

    def is_held(self) -> bool:
        gone = False
        for cdata, (storage, own) in self.watched.items():
            found = count(cdata)
            if found > own:
                return True
            if found < own:  # a graph was dropped
                self.watched[cdata] = storage, found
                gone = gone or found == 1
        if gone:
            self.watched = {cdata: entry for cdata, entry in self.watched.items() if count(cdata) > 1}
        return False

    def forget(self, tensor: torch.Tensor) -> None:
        self.watched.pop(tensor.untyped_storage()._cdata, None)

    def clear(self) -> None:
        self.watched.clear()


@contextlib.contextmanager
def allowed(baselines: Sequence[Baseline]) -> Iterator[None]:
    """What comes to hold memory of `baselines` within, such as a graph, may. Garbage that holds it must not go within: it
    would hide one that came. What garbage is made within, goes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect(0)
        before = [baseline.counts() for baseline in baselines]
        yield
        gc.collect(0)  # what was made since then, and nothing older
        for baseline, counts in zip(baselines, before):
            baseline.allow(counts)
    finally:
        if was_enabled:
            gc.enable()
