"""Whether another schedule than `serial` can give the results of a plain loop, seen in the first batches of `automatic`."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from sluice.pipelines.devices import Device
from sluice.pipelines.reach import Reach
from sluice.pipelines.trees import call, held_by
from sluice.pipelines.watching import Watch, bytes_of, storages_of


class Memory:
    """Addresses that a stage used in a batch, apart from what it was given."""

    def __init__(self, watch: Watch, given: Any) -> None:
        mine = {address for _, address in storages_of(held_by(given))}
        operations = watch.operations
        self.made = set() if operations is None else operations.made
        self.used = {} if operations is None else {a: t for a, t in operations.outside.items() if a not in mine}
        self.written = set() if operations is None else operations.written.keys() - mine


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
        self.reason = ""

    def call(self, place: int, function: Any, data: Any) -> Any:
        with Watch(self.device.device, operations=self.compiled.get(place) is False) as watch:
            result = call(function, data)
        self.watches[place] = watch
        self.memory[place] = Memory(watch, data)
        self.draws = self.draws or watch.operations is None or watch.operations.draws
        return result

    def before_body(self) -> None:
        """All stages of a batch are done: what they read now is theirs."""
        self.reaches = []
        self.state = []
        for place, running in enumerate(self.stages):
            reach = Reach(running.function, self.watches[place], self.device.device)
            self.compiled[place] = reach.compiled
            self.reaches.append((running.name, reach))
            used = {id(tensor): tensor for tensor, _ in storages_of([*reach.leaves(), *self.memory[place].used.values()])}
            self.state += [(running.name, tensor, sum_of(tensor), tensor.grad if tensor.is_leaf else None)
                           for tensor in used.values()]
        self.find_sharing()
        self.numbers = self.random_state()

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
        self.reaches, self.state, self.watches, self.memory = [], [], {}, {}


def sum_of(tensor: torch.Tensor) -> torch.Tensor:
    """Of the bits: `.data` and NumPy write without PyTorch's taking note."""
    memory = bytes_of(tensor)
    return (memory.view(torch.int32) if memory.numel() % 4 == 0 else memory).sum(dtype=torch.int64)
