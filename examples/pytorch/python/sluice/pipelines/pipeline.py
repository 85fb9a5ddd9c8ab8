"""Stages of Python callables over successive batches, each on its stream, ordered by events that nobody has to write."""

from __future__ import annotations

import collections
import time
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import torch

from sluice.pipelines.choice import AutomaticChoice
from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.intake import Intake, checked_slots
from sluice.pipelines.report import Report, Times
from sluice.pipelines.stages import RunningStage, Stage, stage as make_stage
from sluice.pipelines.trees import tensors_of
from sluice.pipelines.verify import Verification

SCHEDULES = ("serial", "overlapped", "graphed", "automatic")


def pipeline(*stages: Union[Callable, Stage], schedule: str = "overlapped", slots: Optional[int] = None,
             device: Union[None, str, torch.device, Device] = None, reuse: bool = False, verify: bool = False,
             state: Sequence[Any] = (), timed_batches: int = 64) -> "Pipeline":
    """A pipeline of `stages`: call it with a loader, and iterate over the results of the last stage.

        train = sluice.pipeline(encode, step, schedule="overlapped")
        for loss in train(loader):
            ...

    A stage is a callable, or a `sluice.stage` with options. The first is called with the batch on the device, the others with
    what the one before returned: a tuple or list becomes the arguments, anything else the only one. It enqueues its work on
    the current stream, and need not know which that is. It may keep nothing of what it was given or returned, but a `clone()`.

    - "serial": everything on the caller's stream, as a plain loop.
    - "overlapped": each stage on a stream of its own; a stage works on one batch while the next works on the one before.
    - "graphed": the same, each stage captured as a CUDA graph for each slot after a few batches. What the stage read on the host,
      such as a learning rate, is checked before each replay: changed, it runs eagerly until it is captured anew. What
      cannot be checked or captured runs eagerly, a batch of another shape too; `report()` says why.
    - "automatic": runs some batches by each, and goes on with the fastest.

    Batches are copied into `slots` fixed sets of tensors (one more than there are stages, unless given), on a stream of their
    own. A batch and all that is made of it live for as many batches; before anything is freed or overwritten, its
    stream waits for all who read it, the consumer of the results too. So results come `slots - 1` batches late, and reading
    one waits for a batch that is nearly done. The consumer may keep results. Of the first batch each stage runs alone, since
    algorithms that are chosen by measuring, as by cuDNN's benchmark, are chosen then.

    `reuse=True` is for loaders that refill their own memory. `verify=True` first runs some batches serially, puts back what
    `state` names (modules, optimizers: all with `state_dict`, and PyTorch's random numbers by themselves), runs them as the
    schedule says, and raises `VerifyError` where results differ in a bit. A stage that raises ends the iteration with a
    `StageError`, which names the stage and the batch; the pipeline can be used again.
    """
    return Pipeline(stages, schedule, slots, device, reuse, verify, state, timed_batches)


class Pipeline:
    def __init__(self, stages: Sequence[Union[Callable, Stage]], schedule: str, slots: Optional[int],
                 device: Union[None, str, torch.device, Device], reuse: bool, verify: bool, state: Sequence[Any],
                 timed_batches: int) -> None:
        if not stages:
            raise ValueError("sluice.pipeline: there are no stages, expected at least one callable")
        if schedule not in SCHEDULES:
            raise ValueError(f"sluice.pipeline: schedule is {schedule!r}, expected one of {', '.join(SCHEDULES)}")
        for named in state:
            if not (hasattr(named, "state_dict") and hasattr(named, "load_state_dict")):
                raise TypeError(f"sluice.pipeline: state has a {type(named).__name__}, expected objects with state_dict() and "
                                "load_state_dict(), such as modules and optimizers")
        self.device = device_of(device)
        self.slots = checked_slots("pipeline", slots, 2, len(stages) + 1)  # the copy is one more
        given = [s if isinstance(s, Stage) else make_stage(s) for s in stages]
        self.stages = [RunningStage(s, self.device, self.slots) for s in given]
        self.intake = Intake(self.device, self.slots, reuse)
        self.stream = self.device.stream()  # of the copies
        self.over = [self.device.event() for _ in range(self.slots)]  # the slot's batch, for the consumer too
        self.entered, self.left = self.device.event(), self.device.event()
        self.schedule = schedule
        self.choice = AutomaticChoice(self.device, self.slots) if schedule == "automatic" else None
        self.stages[-1].graphs.is_last = True
        for running in self.stages:
            running.graphs.careful = self.choice is not None
        self.verification = Verification(state, self.slots * (len(stages) + 4)) if verify else None
        self.times = Times(self.device, [s.name for s in self.stages], timed_batches)
        self.running = False
        self.batches = 0
        self.seconds = 0.0

    def __call__(self, batches: Iterable) -> Iterator[Any]:
        """The results of the last stage, in the order of the batches."""
        if self.running:
            raise RuntimeError("sluice.pipeline: an iteration is under way; expected one at a time, since they share slots")
        return self.run(batches)

    def report(self) -> Report:
        """What ran how, and how long. Waits for the device."""
        return Report(self)

    def run(self, batches: Iterable) -> Iterator[Any]:
        self.running = True
        started = time.perf_counter()
        clean = False
        try:
            self.enter()
            source = iter(batches)
            if self.verification is not None:
                source = self.verification.serially(self, source)
            waiting: collections.deque = collections.deque()
            handed = 0
            for index, batch in enumerate(source):
                if handed > 0:  # the consumer's variables hold the result that comes after the one looked for
                    self.intake.refuse_kept(index - 1)
                if self.choice is not None and self.choice.before():
                    self.settle()  # between two schedules
                waiting.append(self.submit(index, batch))
                del batch
                self.batches += 1
                if len(waiting) == self.slots:
                    yield from self.hand_out(handed, waiting)
                    handed += 1
            while waiting:
                yield from self.hand_out(handed, waiting)
                handed += 1
            if self.verification is not None:
                self.verification.require_all(handed)
            clean = True
        finally:
            self.leave(clean)
            self.seconds += time.perf_counter() - started

    def current_schedule(self) -> str:
        return self.schedule if self.choice is None else self.choice.schedule

    def submit(self, index: int, batch: Any) -> Any:
        """Enqueues all stages for a batch."""
        device, slot, schedule = self.device, index % self.slots, self.current_schedule()
        serial = schedule == "serial"
        graphed = schedule == "graphed" and device.has_graphs
        own = device.current_stream() if serial else self.stream
        timed = self.times.begin(schedule)
        alone = self.batches == 0 and not serial
        if index >= self.slots:
            device.wait(own, self.over[slot])
        data = self.intake.place(own, index, batch)
        ready = self.intake.slots[slot].copied
        for place, running in enumerate(self.stages):
            stream = own if serial else running.stream
            if index >= self.slots:
                device.wait(stream, self.over[slot])
            device.wait(stream, ready)
            if timed:
                self.times.mark(place, stream)
            data = running.run(index, slot, data, stream, graphed, place == len(self.stages) - 1)
            if timed:
                self.times.mark(place, stream)
            ready = running.done[slot]
            if alone:  # what measures on its first call, as cuDNN's benchmark does, chooses wrongly beside other work
                device.synchronize()
        results = tensors_of(data)
        for running in self.stages[:-1]:  # what passes through to the consumer is the consumer's to keep
            running.forget(slot, results)
        return data

    def hand_out(self, index: int, waiting: collections.deque) -> Iterator[Any]:
        """Yields the oldest result. All that the consumer enqueues for it comes before its batch is over."""
        device, slot = self.device, index % self.slots
        device.wait(device.current_stream(), self.stages[-1].done[slot])
        device.hand_over(tensors_of(waiting[0]))
        if self.verification is not None:
            self.verification.compare(index, waiting[0])
        yield waiting.popleft()
        device.record(self.over[slot], device.current_stream())

    def enter(self) -> None:
        """Everything comes after what the caller enqueued before."""
        device = self.device
        device.record(self.entered, device.current_stream())
        for stream in [self.stream, *(running.stream for running in self.stages)]:
            device.wait(stream, self.entered)
        if self.choice is not None:
            self.choice.enter()

    def leave(self, clean: bool) -> None:
        """Everything that the caller enqueues from now on comes after the batches. After an error nothing is under way."""
        device = self.device
        try:
            if not clean:
                device.synchronize()
            if self.choice is not None:
                self.choice.leave(clean)
            for slot in self.intake.slots:
                if slot.in_use:
                    device.wait_on_host(slot.copied)
            for stream in [self.stream, *(running.stream for running in self.stages)]:
                device.record(self.left, stream)
                device.wait(device.current_stream(), self.left)
            # Memory that is freed below is used again on these streams, and no one reads it by then.
            device.record(self.left, device.current_stream())
            for stream in [self.stream, *(running.stream for running in self.stages)]:
                device.wait(stream, self.left)
        finally:
            for running in self.stages:
                running.clear()
            self.intake.clear(clean)
            self.running = False

    def settle(self) -> None:
        """Waits until nothing is under way: streams change, and so does whose memory is whose."""
        self.device.synchronize()
