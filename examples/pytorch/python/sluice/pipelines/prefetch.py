"""A loader's batches on the device, the next one copied while the last is worked on."""

from __future__ import annotations

import collections
from typing import Any, Iterable, Iterator, Optional, Union

import torch

from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.intake import Intake, checked_slots
from sluice.pipelines.position import Position


def prefetch(loader: Iterable, device: Union[None, int, str, torch.device, Device] = None, slots: int = 2, *,
             reuse: bool = False) -> "Prefetch":
    """Iterates over `loader` and yields its batches on `device`: tensors in containers of any kind (see sluice/pipelines/trees.py).

    Batches are copied on a stream of their own into `slots` fixed sets of tensors, allocated for the first batches. The
    consumer's stream, the current one where the next batch is asked for, waits for the copy, and the copy into a slot for
    what the consumer enqueued before asking: no `record_stream`, no race, and no growth of memory. Copies overlap with work
    where the loader's tensors are pinned. Nested and sparse tensors are copied into memory of their own.

    A batch is valid until the next one is asked for. Whoever keeps a tensor of it longer meets a RuntimeError at the batch
    after that. `reuse=True` is for loaders that refill their own memory. The object can be iterated again for each epoch, one
    iteration at a time, and keeps its slots. An exception of the loader comes when all batches before it have been yielded.

    `state_dict()` in the loop's body says where the iteration is, `load_state_dict()` before the next one has it begin with the
    batch after that: by the loader's own `state_dict` where it has one, otherwise by skipping batches of an epoch that begins
    with the random numbers of PyTorch, and of the loader's `generator`, that it began with before.
    """
    return Prefetch(loader, device, slots, reuse)


class Prefetch:
    """Made by `prefetch`."""

    def __init__(self, loader: Iterable, device: Union[None, int, str, torch.device, Device], slots: int, reuse: bool) -> None:
        self.loader = loader
        self.device = device_of(device)
        self.slots = checked_slots("prefetch", slots, 2, 2)
        self.stream = self.device.stream()
        self.intake = Intake(self.device, self.slots, reuse)
        self.read = [self.device.event() for _ in range(self.slots)]  # by the consumer
        self.entered = self.device.event()
        self.position = Position("prefetch")
        self.running = False

    def __len__(self) -> int:
        return len(self.loader)

    def __repr__(self) -> str:
        return f"sluice.prefetch({self.loader!r}, '{self.device.device}', slots={self.slots}, reuse={self.intake.reuse})"

    def __iter__(self) -> Iterator[Any]:
        self.require_one()
        return self.batches()

    def require_one(self) -> None:
        if self.running:
            raise RuntimeError("sluice.prefetch: an iteration is under way; expected one at a time, since they share slots")

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is: what comes next is the batch after the one that was yielded last."""
        return self.position.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration begins where that of `state` was."""
        self.require_one()
        self.position.load_state_dict(state)

    def batches(self) -> Iterator[Any]:
        self.require_one()  # two may have been made before either began
        self.running = True
        clean = False
        try:
            yield from self.ordered()
            clean = True
        finally:
            self.finish(clean)

    def ordered(self) -> Iterator[Any]:
        device, intake, position, slots = self.device, self.intake, self.position, self.slots
        device.record(self.entered, device.current_stream())  # slots may have been read there
        device.wait(self.stream, self.entered)
        source = position.begin(self.loader)
        waiting: collections.deque = collections.deque()
        failure: Optional[Exception] = None
        placed = yielded = 0
        ended = False
        while True:
            while not ended and len(waiting) < slots:
                try:
                    batch = next(source)
                except StopIteration:
                    ended = True
                    break
                except Exception as error:  # which comes when its turn is, after the batches before it
                    failure, ended = error, True
                    break
                position.fetched()
                if yielded > 0:  # the consumer's variables hold the batch that comes after the one looked for
                    intake.refuse_kept(placed - 1)
                if placed >= slots:
                    device.wait(self.stream, self.read[placed % slots])
                waiting.append(intake.place(self.stream, placed, batch))
                placed += 1
                del batch
            if not waiting:
                break
            slot = yielded % slots
            device.wait(device.current_stream(), intake.slots[slot].copied)
            position.passed()
            yield waiting.popleft()
            device.record(self.read[slot], device.current_stream())
            yielded += 1
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # whose traceback holds this frame
        position.end()

    def finish(self, clean: bool) -> None:
        """Whatever the caller enqueues next may free, or overwrite, what was copied from."""
        for slot in self.intake.slots:
            if slot.in_use:
                self.device.wait_on_host(slot.copied)
        self.intake.clear(clean)
        self.running = False
