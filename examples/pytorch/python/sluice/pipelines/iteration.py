"""An iteration of a pipeline: batches of a loader go in, results come out in their order, by one schedule after another."""

from __future__ import annotations

import collections
import itertools
import sys
import time
import weakref
from typing import Any, Iterable, Iterator, Optional

import torch

from sluice.arguments import warn
from sluice.pipelines.draws import heeded
from sluice.pipelines.holders import is_transformed
from sluice.pipelines.refusals import require_copies
from sluice.pipelines.stages import RunningStage, stage_error
from sluice.pipelines.trees import call

NONE: Any = object()  # in place of a batch
TENSOR = torch.Tensor


class UntilError:
    """Batches up to an error of the loader, which is for later."""

    def __init__(self, source: Iterator[Any]) -> None:
        self.source = source
        self.error: Optional[Exception] = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self.source)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise StopIteration from None

    def pass_on(self) -> None:
        """Its traceback holds this object, and the frame here: neither may hold it in turn, nor the loader's iterator be held."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error


class Unasked:
    """Is held by an iteration that has not begun: where no one asks for a result, nothing is done, which is said."""

    is_asked = False

    def __del__(self) -> None:
        if not self.is_asked and not sys.is_finalizing():
            warn("sluice.pipeline: no result was asked for, so no batch was worked on; expected a loop: for result in run(loader)")


class Iteration:
    """A pipeline's loop.

    Keeps `running`, `begun`, `before`, `seconds` and `pushed`. Reads `schedule`, `choice`, `verification`, `position`, `times`, `device`,
    `slots`, `stages`, `intake`, `memory`, `chains` and `ends`, and of the layout `steps` and `plan`; a schedule begins without its
    `begins` and `way`, and with `timing`. Batches go to `submit` or `submit_graphed`.
    """

    def refuse_another(self) -> None:
        if self.running:
            raise RuntimeError("sluice.pipeline: an iteration is under way; expected one at a time, since they share slots")

    def run(self, batches: Iterable, unasked: Unasked) -> Iterator[Any]:
        unasked.is_asked = True
        self.refuse_another()
        self.running = True
        started = time.perf_counter()
        clean = False
        self.begun = 0
        try:
            if self.choice is not None:
                self.choice.enter()
            own = weakref.ref(self)  # no cycle, which would keep a dropped pipeline's memory
            source = self.position.follow(batches, lambda: own().begun)
            whole = UntilError(source)
            if self.verification is not None:  # which asks for several batches at once
                source = self.verification.serially(self, whole)
            while True:
                if self.current_schedule() == "serial":
                    yield from self.serially(source)
                else:
                    late = self.overlapping(source)
                    heeds = self.before == 0 and self.choice is None
                    yield from heeded(late, self.device.device, "pipeline", "stages or the loader do") if heeds else late
                if self.pushed is NONE:
                    break
                self.memory.settle()  # between two schedules
            if self.verification is not None:
                self.verification.require_all(self.begun)
                whole.pass_on()
            self.position.end()
            clean = True
        finally:
            self.leave(clean)
            self.position.let_go()
            self.before += self.begun
            self.seconds += time.perf_counter() - started

    def current_schedule(self) -> str:
        return self.schedule if self.choice is None else self.choice.schedule

    def changes(self, batch: Any) -> bool:
        """Whether another schedule begins with this batch, which it will find."""
        if self.pushed is not NONE:  # it has
            self.pushed = NONE
            return False
        if not self.choice.before():
            return False
        self.pushed = batch
        return True

    def serially(self, source: Iterator[Any]) -> Iterator[Any]:
        """A plain loop on the caller's stream: a batch's result comes before the next batch is asked for."""
        intake, choice, verification = self.intake, self.choice, self.verification
        stages = [(running, running.function) for running in self.stages]
        trial = None
        if self.pushed is not NONE:
            source = itertools.chain([self.pushed], source)
        self.timing = True
        for batch in source:
            if choice is not None:
                if self.changes(batch):
                    return
                trial = choice.trial
            timed = self.timing and self.is_timed("serial")
            try:
                data = intake.alone(batch)
            except Exception:
                require_copies(self.begun, batch, intake.target)
                raise
            if trial is not None and not intake.reuse:
                trial.look_at_sources(batch)
            batch = NONE
            try:
                for running, function in stages:
                    kind = type(data)
                    if timed or trial is not None:
                        data = self.watched(running, data, timed, trial)
                    elif kind is TENSOR:
                        data = function(data)
                    elif kind is tuple or kind is list:
                        data = function(*data)
                    else:
                        data = call(function, data)
            except Exception as error:
                raise stage_error(running.name, self.begun, error) from error
            intake.wait_alone()
            self.begun += 1
            if verification is not None:
                verification.compare(self.begun - 1, data)
            if trial is None:
                yield data
                data = NONE
                continue
            trial.before_body(data)
            try:
                yield data
            finally:
                trial.leave_body()
            data = NONE
            choice.tried_serially()

    def watched(self, running: RunningStage, data: Any, timed: bool, trial: Any) -> Any:
        """A stage of a plain loop."""
        if timed:
            self.times.mark(running.place, self.device.current_stream())
        data = call(running.function, data) if trial is None else trial.call(running.place, running.function, data)
        if timed:
            self.times.mark(running.place, self.device.current_stream())
        return data

    def overlapping(self, source: Iterator[Any]) -> Iterator[Any]:
        """Results come `slots - 1` batches late; all of those before an error come before it."""
        slots, choice, verification = self.slots, self.choice, self.verification
        graphed = self.current_schedule() == "graphed" and self.device.has_graphs and not is_transformed()
        submit, ends = self.submit_graphed if graphed else self.submit, self.ends[0]
        index = handed = self.begun
        failure: Optional[BaseException] = None
        waiting: collections.deque = collections.deque()
        if self.pushed is not NONE:
            source = itertools.chain([self.pushed], source)
        self.begins, self.way, self.timing = [], None, True
        while True:
            try:
                batch = next(source, NONE)
                if batch is NONE or (choice is not None and self.changes(batch)):
                    break
                waiting.append(submit(index, batch, ends))
            except BaseException as error:
                self.steps.restore()
                failure = error
                break
            batch = NONE
            self.begun = index = index + 1
            if index - handed == slots:
                if verification is not None:
                    verification.compare(handed, waiting[0])
                handed += 1
                yield waiting.popleft()
            elif index - handed == slots - 1:
                ends = self.ends[1]  # from now on, a batch's end is followed by a result
        batch = NONE
        try:
            while waiting:
                self.steps.read(self.plan.read(handed % slots))
                if verification is not None:
                    verification.compare(handed, waiting[0])
                handed += 1
                yield waiting.popleft()
            if failure is not None:
                raise failure
        except GeneratorExit:
            if failure is not None and not isinstance(failure, Exception):
                raise failure  # the body's `break` is no answer to an interrupt
            raise
        finally:
            del failure  # whose traceback holds this frame

    def leave(self, clean: bool) -> None:
        """Everything that the caller enqueues from now on comes after the batches. After an error nothing is under way."""
        device = self.device
        try:
            if not clean:
                device.synchronize()
                self.chains.forget_all()
            if self.choice is not None:
                self.choice.leave(clean)
            if self.current_schedule() == "serial" and self.choice is None:
                return
            for slot in range(self.slots):
                self.wait_for_copy(slot)
            self.join()
            self.memory.give_all_away()
        finally:
            self.memory.late.clear()
            for running in self.stages:
                running.clear(clean)
            self.intake.clear(clean)
            self.pushed = NONE
            self.running = False
