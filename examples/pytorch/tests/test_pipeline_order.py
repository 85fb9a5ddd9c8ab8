"""Pipelines: that every access waits for those before it, on a device that watches them."""

import collections
from typing import Optional

import pytest
import torch
from watched_device import WatchedDevice

import sluice
from sluice.pipelines import layout, submission
from sluice.pipelines.devices import CpuDevice


class Idle(WatchedDevice):
    """It is done with all when it is asked, and then not, in turns: what waits is checked all the same."""

    looks = 0

    def is_reached(self, event) -> bool:
        self.looks += 1
        return self.looks // 5 % 2 == 0


@pytest.fixture(params=["small batches", "large batches"], autouse=True)
def size(request, monkeypatch):
    """Small batches are copied on the first stage's stream."""
    if request.param == "large batches":
        monkeypatch.setattr(layout, "SMALL", -1)
    return request.param


class WithGraphs(WatchedDevice):
    """It makes none: stages run eagerly among graphs, in memory of their slot."""

    def __init__(self, skip: int = -1) -> None:
        super().__init__(skip)
        self.has_graphs = True

    def graph_memory(self, shared: bool) -> None:
        return None

    def capture(self, stream, work, memory, generators):
        raise RuntimeError("there are no graphs")


class Watched:
    """A pipeline on a device that checks every access: of stages to what they read and write, of the consumer to results,
    of the copies to slots. Each stage passes on all that it was given, so a batch is read by every stage after it."""

    def __init__(self, stages: int, slots: int, schedule: str, skip: int = -1) -> None:
        self.device, self.slots = WithGraphs(skip) if schedule == "graphed" else WatchedDevice(skip), slots
        eager = False if schedule == "graphed" else None  # so that what they return is copied to the slot's memory
        self.run = sluice.pipeline(*(sluice.stage(self.stage(place), graph=eager) for place in range(stages)), schedule=schedule,
                                   slots=slots, device=self.device)
        self.run.has_looked = True  # else the first batches wait for each other
        bring, into_slot, alone = self.run.intake.bring, self.run.intake.bring_into_slot, self.run.intake.alone

        def watched_bring(slot, index, batch):
            self.device.access(("batch", slot), True, "copy")
            return bring(slot, index, batch)

        def watched_into_slot(slot, index, batch):
            self.device.access(("batch", slot), True, "copy")
            return into_slot(slot, index, batch)

        def watched_alone(batch):
            self.device.access(("batch", batch.item() % self.slots), True, "copy")
            return alone(batch)

        self.run.intake.bring, self.run.intake.alone = watched_bring, watched_alone
        self.run.intake.bring_into_slot = watched_into_slot

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


def test_a_missing_wait_is_seen(size):
    """So the test above can fail. A batch waits for nothing that is not needed; what is left are waits of a first lap, and of ends."""
    stages, slots, count = 3, 2, 6
    all_waits = Watched(stages, slots, "overlapped")
    all_waits.races(count)
    seen = sum(bool(Watched(stages, slots, "overlapped", skip).races(count)) for skip in range(all_waits.device.waits))
    assert seen >= 2 * (count - slots) * (stages + (size == "large batches") + 1)


class Freed:
    """Stages that allocate what they return, and pass on all that they were given: memory that is freed is its stream's next."""

    def __init__(self, stages: int, slots: int, keep: int, device: Optional[WatchedDevice] = None, skip: int = -1, **options) -> None:
        self.device, self.keep = device or WatchedDevice(skip), keep
        self.run = sluice.pipeline(*(self.stage(f"stage {place}") for place in range(stages)), schedule="overlapped", slots=slots,
                                   device=self.device, **options)
        self.run.has_looked = True
        bring = self.run.intake.bring

        def watched_bring(slot, index, batch):
            brought = bring(slot, index, batch)
            self.device.allocated(brought, "copy")
            return brought

        self.run.intake.bring = watched_bring

    def stage(self, name: str):
        logged: collections.deque = collections.deque(maxlen=max(self.keep - 1, 0))

        def function(*given: torch.Tensor) -> tuple:
            for tensor in [*given, *logged]:
                self.device.read(tensor, name)
            made = given[0] + 0
            self.device.allocated(made, name)
            logged.append(given[-1])
            return (*given, made)

        return function

    def races(self, count: int) -> list[str]:
        for _ in range(2):
            kept: collections.deque = collections.deque(maxlen=max(self.keep, 1))
            for result in self.run([torch.tensor(i) for i in range(count)]):
                kept.append(result)
                for tensors in kept:
                    for tensor in tensors:
                        self.device.read(tensor, "consumer")
                del result, tensors, tensor
                if self.keep == 0:
                    kept.clear()
            # What comes next on the caller's stream may use memory of the results, and that of its own.
            del kept
        return self.device.races


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("keep", [0, 1, 2, 5])
def test_memory_is_freed_after_all_readers(stages, slots, keep):
    assert Freed(stages, slots, keep).races(13) == []


def test_memory_that_is_freed_too_early_is_seen():
    early = Freed(2, 3, 2)
    early.device.give_away = lambda memory, streams: None
    assert early.races(13) != []
    waits = Freed(2, 3, 0)
    waits.races(13)
    assert sum(bool(Freed(2, 3, 0, skip=skip).races(13)) for skip in range(waits.device.waits)) > 40


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
def test_each_stage_of_the_first_batch_runs_alone(schedule):
    device, log = WithGraphs() if schedule == "graphed" else WatchedDevice(), []
    synchronize = device.synchronize
    device.synchronize = lambda: (log.append("synchronize"), synchronize())[1]

    def stage(name: str):
        def function(index: torch.Tensor) -> torch.Tensor:
            log.append(f"{name} {index.item()}")
            return index + 0

        return function

    pipe = sluice.pipeline(*(sluice.stage(stage(name), graph=False if schedule == "graphed" else None) for name in "ab"),
                           schedule=schedule, device=device)
    pipe.has_looked = True
    for _ in range(2):
        list(pipe([torch.tensor(i) for i in range(3)]))
    assert log[:4] == ["a 0", "synchronize", "b 0", "synchronize"]
    assert log.count("synchronize") == 2


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
@pytest.mark.parametrize("stages,slots", [(2, 3), (3, 2), (4, 5)])
def test_stages_that_go_together_and_apart(monkeypatch, size, stages, slots, keep):
    monkeypatch.setattr(submission, "EVERY", 0)  # looks at each batch
    monkeypatch.setattr(layout, "VOTES", 3)
    freed = Freed(stages, slots, keep, device=Idle(), timed_batches=0)
    went = []
    go = freed.run.go
    freed.run.go = lambda way: (went.append(way is freed.run.together), go(way))
    assert freed.races(60) == []
    assert (True in went and False in went) is (size == "small batches")


def test_an_iteration_of_larger_batches_after_stages_went_together(monkeypatch):
    """The first of them is ordered by events of the streams that stages have from then on."""
    for module, name, value in ((submission, "EVERY", 0), (layout, "VOTES", 3), (layout, "SMALL", 1 << 18)):
        monkeypatch.setattr(module, name, value)
    device = WatchedDevice()
    device.is_reached = lambda event: True
    freed = Freed(3, 4, 1, device=device, timed_batches=0)
    assert freed.races(30) == [] and freed.run.steps is freed.run.together[0]
    monkeypatch.setattr(layout, "SMALL", -1)
    steps = []
    submit = freed.run.submit
    freed.run.submit = lambda index, batch, ends: (submit(index, batch, ends), steps.append(freed.run.steps))[0]
    monkeypatch.setattr(submission, "EVERY", 1000)
    assert freed.races(30) == [] and steps[0] is freed.run.apart[0]


@pytest.mark.parametrize("shared", [True, False])
def test_stages_that_share_a_model_are_ordered(shared):
    """The first stage of a batch reads what the last stage of the batch before has written."""
    device, model = WatchedDevice(), torch.nn.Linear(1, 1)

    def stage(name: str, writes: bool):
        def function(index: torch.Tensor) -> torch.Tensor:
            device.access("model", writes, f"{name} {index.item()}")
            return index + 0

        return sluice.stage(function, name, shares=model if shared else ())

    run = sluice.pipeline(stage("encode", False), lambda index: index + 0, stage("train", True), device=device)
    for place, _ in enumerate(run([torch.tensor(i) for i in range(12)])):
        if place == 5:  # the loop's body reads it, in a consistent moment
            run.sync()
            device.access("model", False, "checkpoint")
    assert (device.races == []) is shared


def test_a_checkpoint_that_does_not_wait_is_seen():
    device = WatchedDevice()
    run = sluice.pipeline(lambda index: index + 0, lambda index: (device.access("model", True, "train"), index + 0)[1], device=device)
    for _ in run([torch.tensor(i) for i in range(6)]):
        device.access("model", False, "checkpoint")
    assert any("checkpoint" in race for race in device.races)


def test_serial_waits_for_a_copy_before_the_body_or_the_loader_may_refill_what_it_reads():
    """Pinned memory is read after `tensor.to` has returned."""
    class Elsewhere(CpuDevice):
        """Tensors of the CPU are copied to it."""

        def __init__(self) -> None:
            super().__init__()
            self.device, self.log = torch.device("meta"), []

        def record(self, event, stream):
            self.log.append("copies")

        def wait_on_host(self, event):
            self.log.append("waits")

    device = Elsewhere()

    def loader(made=lambda: torch.zeros(2)):
        for _ in range(3):
            device.log.append("asked")
            yield {"x": made()}

    for reuse in (False, True):
        run = sluice.pipeline(lambda batch: device.log.append("works"), schedule="serial", device=device, reuse=reuse)
        device.log.clear()
        for _ in run(loader()):
            device.log.append("body")  # which may refill it, too
        assert device.log == ["asked", "copies", "works", "waits", "body"] * 3
    device.log.clear()
    assert list(run(loader(lambda: torch.zeros(2, device="meta")))) == [None] * 3 and device.log == ["asked", "works"] * 3
