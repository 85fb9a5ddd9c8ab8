"""What stages on streams of their own share without saying so: found in the first batches, and ordered.

A stage that writes a tensor which another one uses, such as a weight, has to run on that one's stream. Each stage's first calls
run alone: the second tells what its Python code reaches, the third and fourth, where stages reach the same, which memory its
operations use and write, or make for another stage, be it for an earlier one's next call. Tensors that two stages know and none has
written by then are looked at in each call from then on, by PyTorch's count of writes.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from sluice.pipelines.copies import copied_where
from sluice.pipelines.devices import Device
from sluice.pipelines.holders import is_wrapped
from sluice.pipelines.reach import Reach
from sluice.pipelines.trees import held_by, is_plain, tensors_of, version_of
from sluice.pipelines.watching import Operations, Watch, storages_of

CALLS = 4  # of each stage that are looked at: one that compiles what there is to compile, one for Python, two for operations
PATIENCE = 8  # batches in which they have to come


class Lasting(Operations):
    """Knows of what was made whether it is still there: its address may have become another tensor's."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.results: dict[int, StorageWeakRef] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        for tensor, address in storages_of(result):
            if address in self.made:
                self.results[address] = StorageWeakRef(tensor.untyped_storage())
        return result


class Use:
    """What a stage did in its calls, apart from what it was given."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.calls = 0
        self.reach: Optional[Reach] = None
        self.reached: dict[int, torch.Tensor] = {}  # by address
        self.used: dict[int, torch.Tensor] = {}
        self.written: dict[int, torch.Tensor] = {}  # held, or others would come to have its address
        self.made: dict[int, StorageWeakRef] = {}
        self.gradients: list[torch.Tensor] = []  # leaves whose gradient is another than before
        self.has_history = False  # of autograd, in what it was given: a backward pass through it is ordered by PyTorch
        self.returned: set[int] = set()  # addresses of memory that it returns, and keeps

    def set_reach(self, reach: Optional[Reach]) -> None:
        """Of the stage now: another stage may have put other tensors where it found its own, which are held, and keep their addresses."""
        if reach is not None:
            self.reach = reach
            self.reached.update((address, tensor) for tensor, address in storages_of(list(reach.seen.values()))
                                if address != 0 and tensor.device == self.device)

    def is_looked_into(self) -> bool:
        reach = self.reach
        return reach is not None and not reach.notes and not reach.watch.by_name

    def may_be_followed(self) -> bool:
        """torch.compile turns itself off where operations are followed."""
        return self.reach is not None and not self.reach.compiled and self.reach.watch.before is None

    def name_of(self, address: int) -> str:
        guard = None if self.reach is None else self.reach.guard
        for tensor, name in () if guard is None else zip(guard.tensors, guard.tensor_names):
            if is_plain(tensor) and tensor.untyped_storage().data_ptr() == address:
                return name
        return ""

    def optimized(self) -> list[torch.Tensor]:
        """What its optimizers write, now or at another batch."""
        found = [] if self.reach is None else self.reach.seen.values()
        return [tensor for held in found if isinstance(held, torch.optim.Optimizer)
                for group in held.param_groups for tensor in group["params"]]

    def known(self) -> list[torch.Tensor]:
        return [*self.reached.values(), *self.optimized()]

    def written_of(self, other: Use) -> Optional[int]:
        """The address of something that it writes, and the other uses."""
        for address in other.used:
            if address in self.written:
                return address
        optimized = set(map(id, self.optimized())) if self.gradients else ()
        addresses = {address for tensor in self.gradients if id(tensor) in optimized for _, address in storages_of(tensor)}
        return next((address for address in other.used if address in addresses), None)

    def passed_to(self, other: Use) -> Optional[int]:
        """The address of something that it made, and the other uses without being given it."""
        for address, made in {} if other.has_history else self.made.items():
            tensor = other.used.get(address)
            if tensor is not None and not made.expired() and made.cdata == tensor.untyped_storage()._cdata:
                return address
        return None


class Sharing:
    """Around the stages of a pipeline in its first batches. `numbers` are those of their streams."""

    def __init__(self, device: Device, names: Sequence[str], numbers: Sequence[int]) -> None:
        self.device = device
        self.names = names
        self.numbers = list(numbers) if device.overlaps else [0] * len(names)  # a CPU orders all
        self.uses = [Use(device.device) for _ in names]
        self.batches = 0
        self.found: list[tuple[int, int]] = []  # places of stages that have to be ordered
        self.sentences: list[str] = []

    # The first calls of each stage.

    def around(self, place: int, function: Callable) -> Callable:
        """What is called in place of a stage."""
        def looked_at(*data: Any) -> Any:
            use = self.uses[place]
            use.calls += 1
            try:
                if use.calls == 2:
                    with Watch(self.device.device, operations=False) as watch:
                        result = function(*data)
                    use.set_reach(tried(lambda: Reach(function, watch, self.device.device)))
                elif 2 < use.calls <= CALLS:
                    result = self.followed(use, function, data)
                else:
                    result = function(*data)
            finally:
                self.device.synchronize()
            if place == len(self.uses) - 1 and use.calls <= CALLS:
                return copied(result, None)  # it comes late: other batches may write it before
            return result

        return looked_at

    def followed(self, use: Use, function: Callable, data: tuple) -> Any:
        reach = use.reach
        if reach is not None:
            use.set_reach(tried(lambda: Reach(function, reach.watch, self.device.device)))
        known = {id(tensor): tensor for other in self.uses for tensor in other.known()}.values()
        before = [(tensor, version_of(tensor), tensor.grad if tensor.is_leaf else None) for tensor in known]
        counts = [None if gradient is None else version_of(gradient) for _, _, gradient in before]
        use.has_history |= any(tensor.requires_grad for tensor in held_by(list(data)))
        if use.may_be_followed() and self.is_suspicious():
            operations = Lasting(self.device.device)
            with operations:
                result = function(*data)
            used = {a: t for a, t in operations.outside.items() if t.device == self.device.device}
            written = dict(operations.written)
            use.made.update(operations.results)
        else:
            result = function(*data)
            used = dict(use.reached) if use.reach is not None and not use.reach.watch.by_name else {}
            written = {}
        for (tensor, version, gradient), count in zip(before, counts):
            if version_of(tensor) != version:
                written.update((address, tensor) for _, address in storages_of(tensor))
            if tensor.is_leaf and (tensor.grad is not gradient or gradient is not None and version_of(gradient) != count):
                use.gradients.append(tensor)
        given = {address for _, address in storages_of(held_by(list(data)))}
        use.used.update((address, tensor) for address, tensor in used.items() if address not in given)
        use.written.update((address, tensor) for address, tensor in written.items() if address not in given)
        kept = use.reached.keys() | {address for _, _, gradient in before for _, address in storages_of(gradient)}
        use.returned |= {address for _, address in storages_of(tensors_of(result)) if address in kept} - given
        return result

    def is_suspicious(self) -> bool:
        """Whether stages may share something: without that, operations are not followed."""
        return any(not self.uses[a].is_looked_into() or not self.uses[b].is_looked_into()
                   or self.uses[a].reached.keys() & self.uses[b].reached.keys() for a, b in self.pairs())

    # What that says.

    def is_over(self) -> bool:
        """Before each batch; whether `found` is complete."""
        self.batches += 1
        if any(use.calls < CALLS for use in self.uses) and self.batches <= PATIENCE:
            return False
        for pair in self.pairs():
            if pair not in self.found:
                tried(lambda: self.compare(*pair))
        return True

    def numbers_after(self, numbers: Sequence[int], is_ours: Sequence[bool]) -> list[int]:
        """The streams of stages from now on. `is_ours` tells which streams are not the caller's own."""
        after = list(numbers)
        for first, second in self.found:
            if is_ours[second]:
                after = [after[first] if number == after[second] else number for number in after]
        return after

    def sentences_after(self, known: int, is_ours: Sequence[bool]) -> list[str]:
        """What was found after those that are known."""
        return [f"{sentence}. " + ("They run on one stream from now on, in the order of a plain loop" if is_ours[second] else
                                   "Their streams are the caller's own, which nothing orders")
                for sentence, (_, second) in list(zip(self.sentences, self.found))[known:]]

    def pairs(self) -> list[tuple[int, int]]:
        return [(first, second) for second in range(len(self.names)) for first in range(second)
                if self.numbers[first] != self.numbers[second]]

    def compare(self, first: int, second: int) -> None:
        for finds, writer, reader in ((Use.written_of, second, first), (Use.written_of, first, second), (Use.passed_to, first, second),
                                      (Use.passed_to, second, first)):
            address = finds(self.uses[writer], self.uses[reader])
            if address is not None:
                self.note(writer, reader, address)
                return

    def note(self, writer: int, reader: int, address: int) -> None:
        uses = self.uses[writer], self.uses[reader]
        shape = [list(use.used[address].shape) for use in uses if address in use.used] or ["?"]
        name = uses[1].name_of(address) or uses[0].name_of(address) or f"a tensor of shape {shape[0]}"
        name = name.removeprefix("the stage.")
        self.found.append((min(writer, reader), max(writer, reader)))
        self.sentences.append(f"'{self.names[writer]}' writes {name}, which '{self.names[reader]}' uses; expected "
                              "sluice.stage(..., shares=...) at both")

    def unwritten(self, place: int) -> dict[int, tuple[torch.Tensor, int]]:
        """What the stage knows and another one uses, by address, with that one's place."""
        mine = self.uses[place]
        return {address: (tensor, other) for pair in self.pairs() if place in pair and pair not in self.found
                for other in pair if other != place for address, tensor in self.uses[other].used.items()
                if (address in mine.reached or address in mine.used) and not tensor.is_inference()}

    def afterwards(self, place: int, function: Callable, late: Callable[[Sharing], None]) -> Callable:
        """What is called from then on."""
        use, shared = self.uses[place], tried(lambda: self.unwritten(place)) or {}
        if use.returned:
            function = copying(function, use.returned)
        if not shared:
            return function
        tensors = [tensor for tensor, _ in shared.values()]

        def counting(*data: Any) -> Any:
            before = [tensor._version for tensor in tensors]
            result = function(*data)
            if [tensor._version for tensor in tensors] != before:
                address, (_, other) = next(entry for entry, version in zip(shared.items(), before) if entry[1][0]._version != version)
                if (min(place, other), max(place, other)) not in self.found:
                    self.note(place, other, address)
                    if other > place:
                        raise RuntimeError(f"{self.sentences[-1]}, since the batch before may be reading it")
                    late(self)
            return result

        return counting


def copying(function: Callable, addresses: set[int]) -> Callable:
    """Of a stage that returns what it keeps, such as a running total: the next batch would write what this one's readers read."""
    def copied_results(*data: Any) -> Any:
        return copied(function(*data), addresses)

    return copied_results


def copied(results: Any, addresses: Optional[set[int]]) -> Any:
    def is_written(tensor: torch.Tensor) -> bool:
        if not is_plain(tensor) or is_wrapped(tensor):
            return False
        if addresses is None:  # a leaf that requires a gradient is one whose gradient is read
            return not tensor.requires_grad or isinstance(tensor, torch.nn.Parameter)
        return tensor.untyped_storage().data_ptr() in addresses

    return copied_where(is_written, results)


def tried(work: Callable[[], Any]) -> Any:
    """Whatever objects of the caller's do when they are looked at is no error of a batch."""
    try:
        return work()
    except Exception:
        return None
