"""Pipelines: that every access waits for those before it, on a device that watches them."""

import pytest
import torch
from watched_device import WatchedDevice

import sluice


class Watched:
    """A pipeline on a device that checks every access: of stages to what they read and write, of the consumer to results,
    of the copies to slots. Each stage passes on all that it was given, so a batch is read by every stage after it."""

    def __init__(self, stages: int, slots: int, schedule: str, skip: int = -1) -> None:
        self.device, self.slots = WatchedDevice(skip), slots
        self.run = sluice.pipeline(*(self.stage(place) for place in range(stages)), schedule=schedule, slots=slots,
                                   device=self.device)
        room = self.run.intake.room

        def watched_room(slot, place, like):
            self.device.access(("batch", self.run.intake.slots.index(slot)), True, "copy")
            return room(slot, place, like)

        self.run.intake.room = watched_room

    def stage(self, place: int):
        def function(index: torch.Tensor) -> torch.Tensor:
            self.read_all(index, place, f"stage {place}")
            self.device.access((f"stage {place}", index.item() % self.slots), True, f"stage {place}")
            return index + 0

        return function

    def read_all(self, index: torch.Tensor, stages: int, what: str) -> None:
        slot = index.item() % self.slots
        self.device.access(("batch", slot), False, what)
        for earlier in range(stages):
            self.device.access((f"stage {earlier}", slot), False, what)

    def races(self, count: int) -> list[str]:
        for _ in range(2):  # epochs
            for result in self.run([torch.tensor(i) for i in range(count)]):
                self.read_all(result, len(self.run.stages), "consumer")
        return self.device.races


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("slots", [2, 3, 5])
@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed"])
def test_every_access_is_ordered(stages, slots, schedule):
    assert Watched(stages, slots, schedule).races(11) == []


def test_a_missing_wait_is_seen():
    """So the test above can fail. Some waits are implied by others."""
    all_waits = Watched(3, 2, "overlapped")
    all_waits.races(6)
    seen = sum(bool(Watched(3, 2, "overlapped", skip).races(6)) for skip in range(all_waits.device.waits))
    assert seen > all_waits.device.waits / 3


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
def test_each_stage_of_the_first_batch_runs_alone(schedule):
    device, log = WatchedDevice(), []
    synchronize = device.synchronize
    device.synchronize = lambda: (log.append("synchronize"), synchronize())[1]

    def stage(name: str):
        def function(index: torch.Tensor) -> torch.Tensor:
            log.append(f"{name} {index.item()}")
            return index + 0

        return function

    pipe = sluice.pipeline(stage("a"), stage("b"), schedule=schedule, device=device)
    for _ in range(2):
        list(pipe([torch.tensor(i) for i in range(3)]))
    assert log[:4] == ["a 0", "synchronize", "b 0", "synchronize"]
    assert log.count("synchronize") == 2
