"""The first thing in a pipeline: batches come to the device, in memory of their own, or in that of a slot."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from sluice.arguments import is_integer, shown
from sluice.pipelines.compiled import UNHANDLED
from sluice.pipelines.devices import Device
from sluice.pipelines.holders import Baseline, is_transformed, storages_of
from sluice.pipelines.trees import held_by, is_ordinary, map_batch, version_of


NEVER_ASKED: Any = object()
MOST_SLOTS = 2 ** 20  # as the C++ library takes: more exhaust the host's memory before there is a batch


class Slot:
    """Memory for one batch at a time."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []  # the slot's memory
        self.aliases: list[torch.Tensor] = []  # of that, for stages
        self.fixed = Baseline()  # of that


class Intake:
    """Copies batches on the current stream. Slots are allocated when there is a batch larger than those before, and never otherwise.

    What a batch is copied from is held until the copy is done, so that it is neither freed nor, if the loader is a
    DataLoader, used for another batch. `reuse` is for loaders that refill memory of their own: then the copy of a batch is
    waited for before the next is asked for.
    """

    def __init__(self, device: Device, slots: int, reuse: bool) -> None:
        self.device = device
        self.slots = [Slot() for _ in range(slots)]
        self.batches = [-1] * slots  # that they are for
        self.held: list[list[torch.Tensor]] = [[] for _ in range(slots)]  # what is copied from
        self.made: list[Any] = [()] * slots  # storages of batches in memory of their own
        self.reuse = reuse
        self.allocations = 0
        self.target = device.device
        self.versions: dict[int, tuple[int, int]] = {}  # of what is copied from, by its id, with the last slot that holds it
        self.copies: Any = NEVER_ASKED  # by the operators' library, of a plain loop's batches
        self.source: Any = None  # the batch that it copies
        self.copied: Any = None  # else: an event after the copies
        self.is_copying = False  # until that was waited for

    def alone(self, batch: Any) -> Any:
        """A copy of a batch on the current stream, as `batch.to(device)` makes it, but that `wait_alone` has yet to wait for it; perhaps a
        list in place of a tuple."""
        if self.copies is NEVER_ASKED:
            self.copies = self.device.copies()
        if self.copies is not None and not is_transformed():
            data = self.copies.bring(batch)
            if data is not UNHANDLED:
                self.source = batch
                return data
        data = self.moved(batch)
        if self.is_copying:
            self.copied = self.copied or self.device.event()
            self.device.record(self.copied, self.device.current_stream())
        return data

    def wait_alone(self) -> None:
        """Pinned memory is read after the call: the loop's body and the loader may fill it again from now on."""
        if self.source is not None:
            self.copies.wait()
            self.source = None
        if self.is_copying:
            self.is_copying = False
            self.device.wait_on_host(self.copied)

    def moved(self, batch: Any) -> Any:
        kind = type(batch)
        if kind is not tuple and kind is not list:
            return map_batch(self.copy_of, batch)
        moved = []
        for leaf in batch:
            if type(leaf) is torch.Tensor:
                copy = leaf.to(self.target, non_blocking=True)
                if copy is leaf:
                    copy = leaf.clone()
                else:
                    self.is_copying = True
                moved.append(copy)
            else:
                moved.append(map_batch(self.copy_of, leaf))
        return moved

    def copy_of(self, tensor: torch.Tensor) -> torch.Tensor:
        moved = tensor.to(self.target, non_blocking=True)
        if moved is tensor:
            return tensor.clone()
        self.is_copying = True
        return moved

    def renew(self) -> None:
        """Other memory from now on."""
        for slot in self.slots:
            slot.tensors, slot.aliases = [], []
            slot.fixed.clear()

    def bring(self, slot: int, index: int, batch: Any) -> Any:
        """Enqueues the copy of batch `index` on the current stream, and returns what it will be, in memory of its own. What was copied
        from for the slot before has been copied."""
        self.begin(slot, index)
        kind = type(batch)
        if kind is not tuple and kind is not list:
            return map_batch(lambda tensor: self.fresh(slot, index, tensor), batch)
        brought = []
        for leaf in batch:  # most are flat
            if type(leaf) is torch.Tensor:
                brought.append(self.fresh(slot, index, leaf))
            else:
                brought.append(map_batch(lambda tensor: self.fresh(slot, index, tensor), leaf))
        return brought if kind is list else tuple(brought)

    def bring_into_slot(self, slot: int, index: int, batch: Any) -> Any:
        """The same in the slot's memory, as the same tensors each time."""
        self.begin(slot, index)
        place, held, versions, filled = self.slots[slot], self.held[slot], self.versions, 0

        def work(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal filled
            if not is_ordinary(tensor):  # of no fixed size, or of a class of the program's: no graph's either
                return self.fresh(slot, index, tensor)
            if tensor.requires_grad:
                raise RuntimeError(f"batch {index} has a tensor that requires a gradient, which a graph cannot give back; expected "
                                   "detach(), or another schedule")
            key, version = id(tensor), version_of(tensor)
            if (known := versions.get(key)) is not None and known[0] != version:
                self.refuse_written(index, known[1])
            versions[key] = version, slot
            held.append(tensor)
            target = self.alias(place, filled, tensor)
            filled += 1
            target.copy_(tensor, non_blocking=True)
            return target

        kind = type(batch)
        if kind is tuple or kind is list:
            return kind([work(leaf) if type(leaf) is torch.Tensor else map_batch(work, leaf) for leaf in batch])
        return map_batch(work, batch)

    def alias(self, place: Slot, number: int, like: torch.Tensor) -> torch.Tensor:
        """What stages see of the slot's memory."""
        if number < len(place.aliases):
            known = place.aliases[number]
            if (known.shape == like.shape and known.dtype is like.dtype and not known.requires_grad
                    and known.stride() == strides_of_copy(like)):
                return known
        alias = self.room(place, number, like)
        place.aliases[number:number + 1] = [alias]
        place.fixed.watch((alias,))
        return alias

    def begin(self, slot: int, index: int) -> None:
        forget(self.held[slot], self.versions, slot)
        self.made[slot], self.batches[slot] = [], index

    def fresh(self, slot: int, index: int, tensor: torch.Tensor) -> torch.Tensor:
        try:
            version = tensor._version
        except RuntimeError:  # made under inference_mode
            version = 0
        key = id(tensor)
        if (known := self.versions.get(key)) is not None and known[0] != version:
            self.refuse_written(index, known[1])
        self.versions[key] = version, slot
        self.held[slot].append(tensor)
        moved = tensor.to(self.target, non_blocking=True)
        if moved is tensor:
            moved = tensor.clone()
        if type(moved) is not torch.Tensor:
            self.made[slot] += storages_of(held_by(moved))
            return moved
        try:
            self.made[slot].append(moved.untyped_storage())
        except (NotImplementedError, RuntimeError):
            self.made[slot] += storages_of((moved,))
        return moved

    def refuse_written(self, index: int, slot: int) -> None:
        """A loader has written a batch over one that is still being copied, as far as PyTorch noticed."""
        raise RuntimeError(f"the loader wrote batch {index} into the memory of batch {self.batches[slot]}, whose copy may be under way; "
                           "expected memory of its own for each batch, or reuse=True")

    def forget_sources(self, slot: int) -> None:
        """They have been copied."""
        forget(self.held[slot], self.versions, slot)

    def room(self, slot: Slot, place: int, like: torch.Tensor) -> torch.Tensor:
        """Memory for a tensor: an alias, so that a holder is found; of fewer numbers than before, or laid out in another way, in the same
        memory, where a graph finds batches of its shape again."""
        if place == len(slot.tensors):
            slot.tensors.append(self.allocate(like))
        held, strides = slot.tensors[place], strides_of_copy(like)
        if held.shape == like.shape and held.dtype is like.dtype and held.stride() == strides:
            return held.detach()
        if held.dtype is not like.dtype or extent(held.shape, held.stride()) < extent(like.shape, strides):
            slot.fixed.forget(held)
            held = slot.tensors[place] = self.allocate(like)
        return held.as_strided(like.shape, strides).detach()

    def allocate(self, like: torch.Tensor) -> torch.Tensor:
        self.allocations += 1
        with torch.inference_mode(False):  # else it could not be written to outside of it
            return torch.empty_like(like, device=self.device.device, requires_grad=False)

    def clear(self, clean: bool) -> None:
        """After all copies are done. An exception, whose traceback may hold a batch, is no reason for another."""
        self.is_copying, self.source = False, None
        self.versions.clear()
        for sources in self.held:
            sources.clear()
        self.made[:] = [()] * len(self.made)
        if not clean:
            for slot in self.slots:
                slot.fixed.again()

    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for slot in self.slots for t in slot.tensors)


def forget(sources: list[torch.Tensor], versions: dict[int, tuple[int, int]], slot: int) -> None:
    """A slot's sources. What batches of other slots are copied from, too, is forgotten with the last of these, whose turn comes last."""
    for source in sources:
        key = id(source)
        if key in versions and versions[key][1] == slot:
            del versions[key]
    sources.clear()


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many numbers there are from the first to the last."""
    return 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


def strides_of_copy(tensor: torch.Tensor) -> tuple[int, ...]:
    """Those of `tensor.to(device)`, which keeps how numbers are laid out."""
    return tensor.stride() if tensor.is_contiguous() else torch.empty_like(tensor, device="meta", requires_grad=False).stride()


def require_batches(name: str, loader: Any) -> None:
    if isinstance(loader, type) or not any(hasattr(loader, way) for way in ("__iter__", "__getitem__")):
        raise TypeError(f"sluice.{name}: the loader is {shown(loader)}, expected what gives batches in a for loop, such as a DataLoader")


def checked_slots(name: str, slots: Optional[int], least: int, default: int) -> int:
    slots = default if slots is None else slots
    if not is_integer(slots) or slots < least:
        raise ValueError(f"sluice.{name}: slots is {shown(slots)}, expected an integer of {least} or more")
    if slots > MOST_SLOTS:
        raise ValueError(f"sluice.{name}: slots is {shown(slots)}, expected at most {MOST_SLOTS}")
    return int(slots)
