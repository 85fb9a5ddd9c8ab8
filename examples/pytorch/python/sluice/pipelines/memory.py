"""Memory of a pipeline's batches: who holds it when a batch is over, and what becomes of it then."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

import torch

from sluice.pipelines.copies import copied_where
from sluice.pipelines.devices import Device
from sluice.pipelines.holders import as_tensor, count, storages_of
from sluice.pipelines.intake import Intake
from sluice.pipelines.stages import RunningStage
from sluice.pipelines.trees import map_tensors, with_attributes


class Memory:
    """That of all slots. What a batch was copied to, and what stages made of it, is held in `made` of the intake and of the stages."""

    def __init__(self, device: Device, streams: Sequence[Any], intake: Intake, stages: Sequence[RunningStage]) -> None:
        self.device, self.streams, self.intake, self.stages = device, streams, intake, stages
        self.all_but_last = stages[:-1]  # of the last one, results are copies
        self.late: list[Any] = []  # storages of a batch that is over, which the program held then

    def held_elsewhere(self, slot: int) -> str:
        """What of the memory that the slot's next batch overwrites the program holds."""
        if self.intake.slots[slot].fixed.is_kept():
            return f"a tensor of batch {self.intake.batches[slot]}"
        for running in self.all_but_last:
            if running.fixed[slot].is_kept():
                return f"a tensor that '{running.name}' returned for batch {running.batches[slot]}"
        return ""

    def own_of(self, slot: int, storages: list[Any]) -> list[Any]:
        """Those that are not the slot's memory, or a graph's."""
        fixed = [self.intake.slots[slot].fixed.watched, *(running.fixed[slot].watched for running in self.stages)]
        return [storage for storage in storages if not any(storage._cdata in memory for memory in fixed)]

    def result_of(self, slot: int, outputs: Any) -> Any:
        """What the consumer may keep of what an eager stage returned among graphs."""
        made = [self.intake.made[slot], *(running.made[slot] for running in self.stages)]
        shared = {storage._cdata for storages in made for storage in storages}

        def is_shared(tensor: torch.Tensor) -> bool:
            own = self.own_of(slot, storages_of((tensor,)))
            return not own or any(storage._cdata in shared for storage in own)

        return copied_where(is_shared, map_tensors(lambda tensor: with_attributes(tensor.detach(), tensor), outputs))

    def give_away(self, storages: Iterable[Any]) -> None:
        """Memory of batches that are over: freed, unless the program holds it, which may free it at any time."""
        for storage in storages:
            if count(storage._cdata) > 1:
                self.device.give_away(as_tensor(storage), [*self.streams, self.device.current_stream()])

    def give_all_away(self) -> None:
        """What is held for batches, all of which are over."""
        for made in (self.intake.made, *(running.made for running in self.stages)):
            for slot, storages in enumerate(made):
                self.give_away(storages)
                made[slot] = ()
        self.give_away(self.late)
        self.late.clear()

    def settle(self) -> None:
        """Waits until nothing is under way: streams change, and so does whose memory is whose."""
        self.device.synchronize()
        self.give_all_away()
