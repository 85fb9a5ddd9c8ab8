"""A loader's batches on the device, the next one copied while the last is worked on."""

from __future__ import annotations

import collections
import gc
from typing import Any, Iterable, Iterator, Optional, Union

import torch

from sluice.arguments import flag_of
from sluice.pipelines.chains import CONSTANTS, fixed
from sluice.pipelines.compiled import UNHANDLED
from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.draws import heeded
from sluice.pipelines.holders import as_tensor, count, is_transformed, storages_of
from sluice.pipelines.intake import Intake, Slot, checked_slots, forget, require_batches, strides_of_copy
from sluice.pipelines.plan import CALLER, COPIES, CURRENT, RECORD, RESTORE, WAIT
from sluice.pipelines.position import Position
from sluice.pipelines.refusals import require_copies
from sluice.pipelines.trees import held_by, is_ordinary, is_plain, map_batch, tensors_of


def prefetch(loader: Iterable, device: Union[None, int, str, torch.device, Device] = None, slots: int = 2, *,
             reuse: bool = False) -> "Prefetch":
    """Iterates over `loader` and yields its batches on `device`: tensors in containers of any kind (see sluice/pipelines/trees.py).

    Batches are copied on a stream of their own into fixed sets of tensors, allocated for the first batches: one for each of the `slots`
    batches that are on the device at a time, and one that keeps the batch before them. The consumer's stream, the current one where
    the next batch is asked for, waits for the copy, and the copy into a set for what the consumer enqueued before asking: no
    `record_stream`, no race, and no growth of memory. Copies overlap with work where the loader's tensors are pinned. Nested and
    sparse tensors, those of classes of the program's, and those that require a gradient, which leads back to the loader's, are copied
    into memory of their own.

    A batch is valid until the one after the next is asked for. A program that keeps a tensor of it longer, be it by a view, `detach()`,
    `.data`, `numpy()` or what a backward pass has saved, meets a RuntimeError then, before that memory is written. What is left of an
    iteration, such as a first batch for a figure, is the program's: the next iteration has other memory in its place. What is in memory
    of its own may be kept. `reuse=True` is for loaders that refill their own memory. The object can be iterated again for each epoch, one
    iteration at a time, and keeps its slots. An exception of the loader comes when all batches before it have been yielded.

    `state_dict()` in the loop's body says where the iteration is, `load_state_dict()` before the next one has it begin with the
    batch after that: by the loader's own `state_dict` where it has one, otherwise by skipping batches of an epoch that begins
    with the random numbers of PyTorch, and of the loader's `generator`, that it began with before.
    """
    return Prefetch(loader, device, slots, reuse)


SMALL = 1 << 16  # bytes of a batch that is copied sooner than streams wait for each other


class Waits:
    """What waits for what, as `Plan` has it for pipelines: the copy into a slot for what the consumer enqueued before it asked for
    the batch, and the consumer for the copy. Small batches are copied on the consumer's stream."""

    def __init__(self, sets: int) -> None:
        self.slots, self.events = sets, 2 * sets
        self.moments: list[list[tuple[int, int, int]]] = []
        for slot in range(sets):
            copied, over, following = slot, sets + slot, (slot + 2) % sets
            ended = [(RECORD, copied, COPIES), (RESTORE, 0, 0)]
            self.moments += [[(RECORD, over, CALLER), (WAIT, over, COPIES), (CURRENT, 0, COPIES)], ended,
                             [(RECORD, copied, COPIES), (WAIT, following, CALLER), (RESTORE, 0, 0)], [(WAIT, copied, CALLER)],
                             [(RECORD, copied, CALLER)], [(RECORD, copied, CALLER), (WAIT, following, CALLER)]]

    def begin(self, slot: int) -> int:
        return 6 * slot

    def end(self, slot: int) -> int:
        return 6 * slot + 1

    def end_and_read(self, slot: int) -> int:
        """The batch that comes next is read."""
        return 6 * slot + 2

    def read(self, slot: int) -> int:
        return 6 * slot + 3

    def small(self, slot: int, reads: bool) -> int:
        """A small batch has been copied, and the one that comes next may be read."""
        return 6 * slot + 4 + reads

    def copied(self, slot: int) -> int:
        return slot


class Prefetch:
    """Made by `prefetch`."""

    def __init__(self, loader: Iterable, device: Union[None, int, str, torch.device, Device], slots: int, reuse: bool) -> None:
        require_batches("prefetch", loader)
        if isinstance(loader, Prefetch):
            raise TypeError("sluice.prefetch: the loader is a sluice.prefetch, whose memory becomes another batch's; expected its loader")
        self.loader = loader
        self.device = device_of(device)
        self.slots = checked_slots("prefetch", slots, 2, 2)
        self.stream = self.device.stream()
        self.sets = self.slots + 1  # the consumer may read the batch before until it asks for the next but one
        self.intake = Intake(self.device, self.sets, flag_of("prefetch", "reuse", reuse))  # its slots' memory
        self.plan = Waits(self.sets)
        self.steps = self.device.steps(self.plan, [self.stream])
        self.sources: list[list[torch.Tensor]] = [[] for _ in range(self.sets)]  # what is copied from, held until it is
        self.versions: dict[int, tuple[int, int]] = {}  # as in an intake
        self.indices = [-1] * self.sets  # of the batches that they are
        self.targets: list[Optional[tuple]] = [None] * self.sets  # a batch's form, and its tensors in the slot
        self.whole: list[list[torch.Tensor]] = [[] for _ in range(self.sets)]  # in memory of their own
        self.storages: list[list[tuple[Any, int]]] = [[] for _ in range(self.sets)]  # and how many hold each, if the program does not
        self.small, self.is_small = SMALL, False
        self.first = 0  # the set of an iteration's first batch: that of the last one before is written last
        self.position = Position("prefetch")
        self.running = False
        self.has_heeded = False  # the random numbers of an iteration

    def __len__(self) -> int:
        return len(self.loader)

    def __repr__(self) -> str:
        return f"sluice.prefetch({self.loader!r}, '{self.device.device}', slots={self.slots}, reuse={self.intake.reuse})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("sluice.prefetch: its memory and its streams cannot be copied or pickled; expected another one, "
                        "made by sluice.prefetch(loader)")

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
        try:
            ordered = self.ordered()
            yield from ordered if self.has_heeded else heeded(ordered, self.device.device, "prefetch", "the loader, a batch ahead of it, does")
        finally:
            self.has_heeded = True
            self.finish()

    def ordered(self) -> Iterator[Any]:
        steps, plan, position, sets = self.steps, self.plan, self.position, self.sets
        source = position.begin(self.loader)
        ready, prefetched, number = None, steps.prefetched, self.first
        waiting: collections.deque = collections.deque()  # batches with their sets
        failure: Optional[BaseException] = None
        placed = 0
        while True:
            try:
                batch = next(source)
            except StopIteration:
                break
            except BaseException as error:  # which comes when its turn is, after the batches before it
                failure = error
                break
            if position.is_stateful:
                position.fetched()
            is_full = len(waiting) + 1 == self.slots
            if placed < sets:
                self.renew_kept(number)
                other = -1
            else:
                other = number
            if ready is not None and placed > 0:
                found = prefetched(ready, number, batch, is_full, other)
                self.indices[number] = placed
            else:
                found = UNHANDLED
            if found is UNHANDLED:
                if other >= 0:
                    self.refuse_kept(number, placed)
                found = self.place(number, placed, batch, is_full)
                if placed == 0:
                    ready = self.ready()
            waiting.append((found, number))
            del found
            placed += 1
            number = self.first = (number + 1) % sets
            del batch
            if is_full:
                position.passed()
                if self.whole[waiting[0][1]]:
                    self.give_away(waiting[0][1])
                yield waiting.popleft()[0]
        try:
            while waiting:
                steps.read(plan.read(waiting[0][1]))
                position.passed()
                self.give_away(waiting[0][1])
                yield waiting.popleft()[0]
            if failure is not None:
                raise failure
        except GeneratorExit:
            if failure is not None and not isinstance(failure, Exception):
                raise failure  # the body's `break` is no answer to an interrupt
            raise
        finally:
            del failure  # whose traceback holds this frame
        position.end()

    def ready(self) -> Optional[tuple]:
        """What the operators' library needs; see `Fetch` in src/prefetches.hpp. After the first batch, by which it is small or not."""
        if self.steps.prefetched is None or self.intake.reuse or is_transformed():
            return None
        plan = self.plan
        moments = [(-1, plan.small(slot, False), plan.small(slot, True)) if self.is_small
                   else (plan.begin(slot), plan.end(slot), plan.end_and_read(slot)) for slot in range(self.sets)]
        return (self.steps.handle.value, tuple(moments), self.sources, self.versions, self.targets, self.storages,
                torch.is_inference_mode_enabled)

    def place(self, number: int, index: int, batch: Any, reads: bool) -> Any:
        """Enqueues the copy of a batch, and the consumer's wait for the one that comes next if that is `read`. Returns what it will be."""
        steps, plan, intake = self.steps, self.plan, self.intake
        if index == 0:
            self.is_small = sum(tensor.nbytes for tensor in tensors_of(batch) if is_plain(tensor)) <= self.small
        if self.is_small:
            steps.wait(number)  # on the host, for what the slot was copied from
            placed = self.copied(number, index, batch)
            steps.read(plan.small(number, reads))
        else:
            begin = plan.begin(number)
            if error := steps.start(begin, number):
                steps.fail_to_start(error, begin, number)
            try:
                placed = self.copied(number, index, batch)
                steps.run(plan.end_and_read(number) if reads else plan.end(number))
            finally:
                steps.restore()
        if intake.reuse:
            steps.wait(number)
            forget(self.sources[number], self.versions, number)
        return placed

    def copied(self, number: int, index: int, batch: Any) -> Any:
        """Enqueues the copy on the current stream. What the slot was copied from before is no longer read."""
        if self.sources[number]:
            forget(self.sources[number], self.versions, number)
        if self.whole[number]:
            self.whole[number].clear()
        if torch.is_inference_mode_enabled():  # no later training could save such slots for its backward pass
            with torch.inference_mode(False), torch.no_grad():
                return self.into_slot(number, index, batch)
        return self.into_slot(number, index, batch)

    def into_slot(self, number: int, index: int, batch: Any) -> Any:
        try:
            return self.mapped(number, index, batch)
        except Exception:
            require_copies(index, batch, self.device.device)
            raise

    def mapped(self, number: int, index: int, batch: Any) -> Any:
        intake, filled = self.intake, 0
        slot, allocations = intake.slots[number], intake.allocations
        sources, versions = self.sources[number], self.versions
        self.indices[number], self.targets[number] = index, None

        def work(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal filled, allocations
            try:
                version = tensor._version
            except RuntimeError:  # made under inference_mode
                version = 0
            key = id(tensor)
            if (known := versions.get(key)) is not None and known[0] != version:  # as far as PyTorch noticed
                raise RuntimeError(f"the loader wrote batch {index} into the memory of batch {self.indices[known[1]]}, whose copy may be "
                                   "under way; expected memory of its own for each batch, or reuse=True")
            versions[key] = version, number
            sources.append(tensor)
            if tensor.requires_grad and torch.is_grad_enabled() or not is_ordinary(tensor):  # a slot could not lead back to it
                moved = tensor.to(self.device.device, non_blocking=True)
                if moved is tensor:
                    moved = tensor.clone()
                self.whole[number].append(moved.detach())
                return moved
            target = intake.room(slot, filled, tensor)
            if intake.allocations != allocations:
                allocations = intake.allocations
                storage = target.untyped_storage()
                self.storages[number][filled:filled + 1] = [(storage, count(storage._cdata) - 1)]
            filled += 1
            target.copy_(tensor, non_blocking=True)
            return target

        kind = type(batch)
        if kind is tuple or kind is list:  # most are flat
            placed = kind([work(leaf) if type(leaf) is torch.Tensor else map_batch(work, leaf) for leaf in batch])
            self.targets[number] = target_of(batch, slot.tensors)
            return placed
        return map_batch(work, batch)

    def refuse_kept(self, number: int, index: int) -> None:
        """Raises where the program holds memory that batch `index` would overwrite."""
        if self.is_kept(number):
            gc.collect()  # cycles that nothing else holds
            if self.is_kept(number):
                raise RuntimeError(f"a tensor of batch {index - self.sets} is still held, and its memory is to become another "
                                   "batch's; expected a clone() of what is to be kept")

    def is_kept(self, number: int) -> bool:
        return any(count(storage._cdata) > own for storage, own in self.storages[number])

    def renew_kept(self, number: int) -> None:
        """What the program holds of an iteration before, such as a loop's variable after a break, it may keep."""
        if self.is_kept(number):
            for storage, _ in self.storages[number]:
                self.device.give_away(as_tensor(storage), [self.device.current_stream()])
            self.intake.slots[number], self.storages[number], self.targets[number] = Slot(), [], None

    def give_away(self, number: int) -> None:
        """What is in memory of its own is the consumer's to keep."""
        for tensor in self.whole[number]:
            for storage in storages_of(held_by(tensor)):
                self.device.give_away(as_tensor(storage), [self.device.current_stream()])

    def finish(self) -> None:
        """Whatever the caller enqueues next may free, or overwrite, what was copied from."""
        for number in range(self.sets):
            if self.sources[number]:
                self.steps.wait(number)
            forget(self.sources[number], self.versions, number)
            self.whole[number].clear()
        self.running = False


def target_of(batch: Any, memory: list[torch.Tensor]) -> Optional[tuple]:
    """What a flat batch is, and where its tensors go, for the library; nothing if there is something else in it."""
    if not all(type(leaf) is torch.Tensor and is_ordinary(leaf) and not leaf.requires_grad or type(leaf) in CONSTANTS for leaf in batch):
        return None
    places = iter(memory)
    found = [(next(places), leaf) if type(leaf) is torch.Tensor else None for leaf in batch]
    if not all(pair is None or pair[0].shape == pair[1].shape and pair[0].stride() == strides_of_copy(pair[1]) for pair in found):
        return None
    return type(batch), tuple([() if pair is None else fixed(*pair) for pair in found])
