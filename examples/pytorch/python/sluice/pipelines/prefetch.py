"""A loader's batches on the device, the next one copied while the last is worked on."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional, Union

import torch

from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.intake import Intake, checked_slots


def prefetch(loader: Iterable, device: Union[None, str, torch.device, Device] = None, slots: int = 2, *,
             reuse: bool = False) -> "Prefetch":
    """Iterates over `loader` and yields its batches on `device`: tensors in tuples, lists and dictionaries.

    Batches are copied on a stream of their own into `slots` fixed sets of tensors, allocated for the first batches. The
    consumer's stream, the current one where the next batch is asked for, waits for the copy, and the copy into a slot for
    what the consumer enqueued before asking: no `record_stream`, no race, and no growth of memory. Copies overlap with work
    where the loader's tensors are pinned.

    A batch is valid until the next one is asked for. Whoever keeps a tensor of it longer meets a RuntimeError at the batch
    after that. `reuse=True` is for loaders that refill their own memory. The object can be iterated again for each epoch, one
    iteration at a time, and keeps its slots.
    """
    return Prefetch(loader, device, slots, reuse)


class Prefetch:
    def __init__(self, loader: Iterable, device: Union[None, str, torch.device, Device], slots: int, reuse: bool) -> None:
        self.loader = loader
        self.device = device_of(device)
        self.slots = checked_slots("prefetch", slots, 2, 2)
        self.stream = self.device.stream()
        self.intake = Intake(self.device, self.slots, reuse)
        self.read = [self.device.event() for _ in range(self.slots)]  # by the consumer
        self.entered = self.device.event()
        self.running = False

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        if self.running:
            raise RuntimeError("sluice.prefetch: an iteration is under way; expected one at a time, since they share slots")
        return self.batches()

    def batches(self) -> Iterator[Any]:
        device = self.device
        self.running = True
        clean = False
        try:
            device.record(self.entered, device.current_stream())  # slots may have been read there
            device.wait(self.stream, self.entered)
            loaded = iter(self.loader)
            waiting: list[Any] = []
            placed = yielded = 0
            for batch in loaded:
                if yielded > 0:  # the consumer's variables hold the batch that comes after the one looked for
                    self.intake.refuse_kept(placed - 1)
                if placed >= self.slots:
                    device.wait(self.stream, self.read[placed % self.slots])
                waiting.append(self.intake.place(self.stream, placed, batch))
                placed += 1
                del batch
                if len(waiting) == self.slots:
                    yield from self.hand_out(waiting, yielded)
                    yielded += 1
            while waiting:
                yield from self.hand_out(waiting, yielded)
                yielded += 1
            clean = True
        finally:
            self.finish(clean)

    def hand_out(self, waiting: list[Any], index: int) -> Iterator[Any]:
        device, slot = self.device, self.intake.slots[index % self.slots]
        device.wait(device.current_stream(), slot.copied)
        yield waiting.pop(0)
        device.record(self.read[index % self.slots], device.current_stream())

    def finish(self, clean: bool) -> None:
        """Whatever the caller enqueues next may free, or overwrite, what was copied from."""
        for slot in self.intake.slots:
            if slot.in_use:
                self.device.wait_on_host(slot.copied)
        self.intake.clear(clean)
        self.running = False
