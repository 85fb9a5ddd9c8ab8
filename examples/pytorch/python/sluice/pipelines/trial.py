"""Whether another schedule than `serial` can give the results of a plain loop, seen in the first batches of `automatic`."""

from __future__ import annotations

import collections
from typing import Any, Optional, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from sluice.pipelines.devices import Device
from sluice.pipelines.reach import Reach
from sluice.pipelines.trees import call, held_by, tensors_of, version_of
from sluice.pipelines.watching import Watch, bytes_of, storages_of

SOURCES = 4  # batches of a loader that fills the same memory in turns
Storages = dict[int, tuple[StorageWeakRef, list[int], str]]  # by their number in PyTorch: a shape, and a stage's name


class Memory:
    """Addresses that a stage used in a batch, apart from what it was given."""

    def __init__(self, watch: Watch, given: Any) -> None:
        mine = {address for _, address in storages_of(held_by(given))}
        operations = watch.operations
        self.made = set() if operations is None else operations.made
        self.used = {} if operations is None else {a: t for a, t in operations.outside.items() if a not in mine}
        self.written = set() if operations is None else operations.written.keys() - mine
        self.written_tensors = [] if operations is None else [t for a, t in operations.written.items() if a not in mine]


class Uses(TorchDispatchMode):
    """Follows what the loop's body uses, without holding it."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.found: Storages = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Or what is compiled would run eagerly, and give other bits."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        note([args, kwargs], self.found, self.device)
        return func(*args, **kwargs or {})


def note(tree: Any, found: Storages, device: torch.device, name: str = "") -> None:
    """By their storages, whose weak references keep others from having the same numbers."""
    for tensor, _ in storages_of(tree):
        if tensor.device == device:
            storage = tensor.untyped_storage()
            if storage._cdata not in found:
                found[storage._cdata] = StorageWeakRef(storage), [] if tensor.is_nested else list(tensor.shape), name


class Trial:
    """Watches the stages of a plain loop, and what its body changes. `reason` says why the loop has to stay one."""

    def __init__(self, device: Device, stages: Sequence[Any]) -> None:
        self.device = device
        self.stages = stages
        self.watches: dict[int, Watch] = {}
        self.memory: dict[int, Memory] = {}
        self.reaches: list[tuple[str, Reach]] = []
        self.compiled: dict[int, bool] = {}
        self.state: list[Any] = []
        self.draws = False
        self.numbers: Any = None
        self.body: Optional[Uses] = None  # while it runs
        self.results: Storages = {}  # what it was given
        self.used: Storages = {}  # what it used, in all batches
        self.written: Storages = {}  # what stages write
        self.sources: collections.deque = collections.deque(maxlen=SOURCES)  # of each batch, what it was copied from, and its version
        self.reason = ""

    def look_at_sources(self, batch: Any) -> None:
        """Memory that a loader fills again is read by a copy that is under way, by other schedules."""
        found = [(tensor, version_of(tensor)) for tensor in tensors_of(batch)]
        for tensor, version in found:
            if any(tensor is before and version != then for held in self.sources for before, then in held):
                self.reason = self.reason or "the loader refills the memory of a batch; expected memory of its own for each, or reuse=True"
        self.sources.append(found)

    def call(self, place: int, function: Any, data: Any) -> Any:
        with Watch(self.device.device, operations=self.compiled.get(place) is False) as watch:
            result = call(function, data)
        self.watches[place] = watch
        self.memory[place] = Memory(watch, data)
        self.draws = self.draws or watch.operations is None or watch.operations.draws
        return result

    def before_body(self, result: Any) -> None:
        """All stages of a batch are done: what they read now is theirs."""
        self.reaches = []
        self.state = []
        for place, running in enumerate(self.stages):
            reach = Reach(running.function, self.watches[place], self.device.device)
            self.compiled[place] = reach.compiled
            self.reaches.append((running.name, reach))
            note([self.memory[place].written_tensors, optimized_by(reach)], self.written, self.device.device, running.name)
            used = {id(tensor): tensor for tensor, _ in storages_of([*reach.leaves(), *self.memory[place].used.values()])}
            self.state += [(running.name, tensor, sum_of(tensor), tensor.grad if tensor.is_leaf else None)
                           for tensor in used.values()]
        self.find_sharing()
        self.numbers = self.random_state()
        self.results = {}
        note(held_by(result), self.results, self.device.device)
        self.memory = {}  # which holds what the stages wrote
        self.body = Uses(self.device.device)
        self.body.__enter__()

    def leave_body(self) -> None:
        """Also where the loop ends in it."""
        body, self.body = self.body, None
        if body is not None:
            take_off(body)
            self.used.update((key, use) for key, use in body.found.items() if key not in self.results)

    def random_state(self) -> Any:
        return self.device.random_state(())[-1][1] if self.draws else None

    def find_sharing(self) -> None:
        for first in range(len(self.stages)):
            for second in range(first + 1, len(self.stages)):
                if self.stages[first].stream is self.stages[second].stream and self.stages[first].given.shares:
                    continue  # in the order of a plain loop by every schedule
                a, b = self.memory[first], self.memory[second]
                if a.written & b.used.keys() or b.written & a.used.keys() or a.made & b.used.keys():
                    names = f"'{self.stages[first].name}' and '{self.stages[second].name}'"
                    self.reason = self.reason or (f"{names} use the same memory, and one of them writes it; expected "
                                                  "sluice.stage(..., shares=...) at both")

    def after_body(self) -> None:
        """The next batch begins."""
        for name, reach in self.reaches:
            changed = reach.guard.difference()
            if changed:
                self.reason = self.reason or f"the loop's body changes {changed}, which '{name}' reads"
        for name, tensor, total, gradient in self.state:
            if not torch.equal(sum_of(tensor), total) or (tensor.is_leaf and tensor.grad is not gradient):
                self.reason = self.reason or f"the loop's body changes a tensor of shape {list(tensor.shape)}, which '{name}' uses"
        if self.numbers is not None and not torch.equal(self.numbers, self.random_state()):
            self.reason = self.reason or "the loop's body draws random numbers, as stages do"
        for key, (reference, shape, _) in self.used.items():
            if key in self.written and not reference.expired():
                self.reason = self.reason or f"the loop's body uses a tensor of shape {shape}, which '{self.written[key][2]}' writes"
        self.reaches, self.state, self.watches, self.memory = [], [], {}, {}


def optimized_by(reach: Reach) -> list[torch.Tensor]:
    """What the optimizers write that a stage knows."""
    return [tensor for held in reach.seen.values() if isinstance(held, torch.optim.Optimizer)
            for group in held.param_groups for tensor in group["params"]]


def take_off(mode: TorchDispatchMode) -> None:
    """Ends a mode that began before others which go on, such as those of a loop over two pipelines."""
    above = []
    while (top := _get_current_dispatch_mode()) is not mode:
        if top is None:  # another thread's loop goes on with the iteration
            break
        above.append(top)
        top.__exit__(None, None, None)
    if top is mode:
        mode.__exit__(None, None, None)
    for other in reversed(above):
        other.__enter__()


def sum_of(tensor: torch.Tensor) -> torch.Tensor:
    """Of the bits: `.data` and NumPy write without PyTorch's taking note."""
    memory = bytes_of(tensor)
    return (memory.view(torch.int32) if memory.numel() % 4 == 0 else memory).sum(dtype=torch.int64)
