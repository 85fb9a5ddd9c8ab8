"""Stages of Python callables over successive batches, each on its stream, ordered by events."""

from __future__ import annotations

import collections
import itertools
import time
import weakref
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import torch

from sluice.pipelines.chains import chain_of, credit
from sluice.pipelines.choice import AutomaticChoice
from sluice.pipelines.compiled import UNHANDLED
from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.draws import heeded
from sluice.pipelines.holders import as_tensor, count, kept, storages_of
from sluice.pipelines.intake import Intake, checked_slots
from sluice.pipelines.plan import COPIES, Plan
from sluice.pipelines.position import Position
from sluice.pipelines.prefetch import Prefetch
from sluice.pipelines.report import Report, Times
from sluice.pipelines.sharing import Sharing
from sluice.pipelines.stages import RunningStage, Stage, stage as make_stage, stage_error, streams_of
from sluice.pipelines.trees import call, is_plain, map_tensors, tensors_of
from sluice.pipelines.verify import Verification

SCHEDULES = ("serial", "overlapped", "graphed", "automatic")
NONE: Any = object()  # in place of a batch
TENSOR, STRIDED = torch.Tensor, torch.strided
STATE = 10  # in a way of the library
DEVICE_TYPES = {"cpu": 0, "cuda": 1}  # in PyTorch's ABI
EVERY, VOTES = 15, 8  # a look at each 16th batch
SMALL = 1 << 18  # bytes of a batch whose copy takes less than what a stream of its own costs


def pipeline(*stages: Union[Callable, Stage], schedule: str = "overlapped", slots: Optional[int] = None,
             device: Union[None, int, str, torch.device, Device] = None, reuse: bool = False, verify: bool = False,
             state: Sequence[Any] = (), timed_batches: int = 64) -> "Pipeline":
    """A pipeline of `stages`: call it with a loader, and iterate over the results of the last stage.

        train = sluice.pipeline(encode, step, schedule="overlapped")
        for loss in train(loader):
            ...

    A stage is a callable, or a `sluice.stage` with options. The first is called with the batch on the device, the others with
    what the one before returned: a tuple or list becomes the arguments, anything else the only one. It enqueues its work on
    the current stream, and need not know which that is. What it keeps of what it was given or returned is
    its own.

    - "serial": a plain loop on the caller's stream. A batch's result comes before the next batch is asked for.
    - "overlapped": each stage on a stream of its own; a stage works on one batch while the next works on the one before.
    - "graphed": the same, each stage captured as a CUDA graph for each slot after a few batches. What the stage read on the host,
      such as a learning rate, is checked before each replay: changed, it runs eagerly until it is captured anew. What
      cannot be checked or captured runs eagerly, a batch of another shape too; `report()` says why.
    - "automatic": runs some batches by each, and goes on with the fastest.

    But for "serial", batches are copied on a stream of their own, `slots` are under way (one more than there are stages, unless
    given), and results come `slots - 1` batches late: what the loop's body changes acts on batches that have not begun. Before
    memory of a batch is used again, its stream waits for all who read it, the consumer of the results too. Results may be kept.
    Of the first batch each stage runs alone, since algorithms that are chosen by measuring, as by cuDNN's benchmark, are chosen
    then. Stages that use a model which one of them changes say so, see `stage`; else that is found in the first batches, which wait
    for each other.

    `reuse=True` is for loaders that refill their own memory. `verify=True` first runs some batches serially, puts back what
    `state` names (modules, optimizers: all with `state_dict`, and PyTorch's random numbers by themselves), runs them as the
    schedule says, and raises `VerifyError` where results differ in a bit. A stage that raises ends the iteration with a
    `StageError`, which names the stage and the batch, after all results before it; the pipeline can be used again.
    """
    return Pipeline(stages, schedule, slots, device, reuse, verify, state, timed_batches)


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


class Pipeline:
    def __init__(self, stages: Sequence[Union[Callable, Stage]], schedule: str, slots: Optional[int],
                 device: Union[None, int, str, torch.device, Device], reuse: bool, verify: bool, state: Sequence[Any],
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
        numbers = streams_of(self.stages, self.device)
        self.stream = self.device.stream()  # of the copies
        self.streams = [self.stream, *(running.stream for running in self.stages)]
        self.sharing: Optional[Sharing] = None  # while it is looked for
        self.shared: list[str] = []  # what was found
        self.has_looked = False
        self.apart: Any = None  # what orders stages on streams of their own
        self.together: Any = None  # the same with one stream for all stages, if that may be
        self.lay(numbers)
        self.holders = ""  # why there can be no graphs
        self.votes = 0  # for the other way, one after another
        self.all_but_last = self.stages[:-1]  # of the last one, results are copies
        self.begins: list = []  # either of them
        self.way: Optional[tuple] = None  # that for the operators' library, if it does batches
        plan = self.plan
        self.ends = [[end(slot) for slot in range(self.slots)] for end in (plan.end, plan.end_and_read)]
        self.chains: list[Optional[tuple]] = [None] * self.slots  # graphs that the library replays
        self.dropped: list[int] = []  # graphs of each stage, by when chains were looked for last
        self.late: list[Any] = []  # storages of a batch that is over, which the program held then
        self.left = self.device.event()
        self.schedule = schedule
        self.choice = AutomaticChoice(self.device, self.slots, self.stages) if schedule == "automatic" else None
        self.stages[-1].graphs.is_last = True
        for running in self.stages:
            running.graphs.careful = self.choice is not None
            running.graphs.around = self.stages[0].graphs.around
        self.verification = Verification(state, self.slots * (len(stages) + 4)) if verify else None
        self.times = Times(self.device, [s.name for s in self.stages], timed_batches)
        self.running, self.timing = False, True
        self.begun = 0  # batches of this iteration
        self.position = Position("pipeline")
        self.pushed: Any = NONE  # a batch that the next schedule begins with
        self.before = 0  # those of iterations before
        self.seconds = 0.0

    def lay(self, numbers: Sequence[int]) -> None:
        """Stages run on the streams of these numbers, and are called as they are called now."""
        if self.apart is None or self.apart[2].stages != numbers:
            for running, number in zip(self.stages, numbers):
                running.stream = self.streams[number]
            plan = Plan(numbers, self.slots)
            self.apart = (self.device.steps(plan, self.streams), [], plan)
        steps, _, plan = self.apart
        self.of_large = self.turns_of(plan)
        self.apart = (steps, self.turns_of(plan, small=True), plan)
        given = [running.given for running in self.stages]
        if len(given) > 1 and all(s.stream is None and s.priority == given[0].priority for s in given):
            one = Plan([1] * len(given), self.slots)
            steps_of_one = self.device.steps(one, [self.stream, self.stages[0].stream]) if self.together is None else self.together[0]
            self.together = (steps_of_one, self.turns_of(one, small=True), one)
        self.steps, self.plan = steps, plan

    def look_for_sharing(self) -> None:
        """Before each of the first batches; then stages that use what one of them writes run on one stream."""
        sharing = self.sharing
        if sharing is None:
            sharing = self.sharing = Sharing(self.device, self.times.names, self.plan.stages)
            for running in self.stages:
                running.function = running.graphs.function = sharing.around(running.place, running.given.function)
        elif sharing.is_over():
            self.sharing = None
            for running in self.stages:
                running.function = running.graphs.function = sharing.afterwards(running.place, running.given.function, self.look_again)
        else:
            return
        self.settle()
        self.forget_chains()
        self.votes = 0
        self.shared += sharing.warnings(len(self.shared), [running.given.stream is None for running in self.stages])
        self.lay(sharing.numbers_after(self.apart[2].stages, [running.given.stream is None for running in self.stages]))

    def look_again(self, sharing: Sharing) -> None:
        """A stage wrote for the first time what another one uses: they are ordered from the next batch on."""
        self.sharing, self.begins, self.way = sharing, [], None

    def turns_of(self, plan: Plan, small: bool = False) -> list[tuple]:
        """Of each slot: a moment, the event after which the batch was copied, and for each stage what comes before, and what it is."""
        found = []
        for slot in range(self.slots):
            moments = [plan.stage(slot, place) for place in range(len(self.stages))]  # some of which are empty
            stages = [(moment if plan.moments[moment] else None, running.made, running is self.stages[-1], running.function, running)
                      for moment, running in zip(moments, self.stages)]
            if small:
                stages[0] = (None, *stages[0][1:])
                found.append((plan.begin_small(slot), plan.done(slot, plan.first_done), stages))
            else:
                found.append((plan.begin(slot), plan.copied(slot), stages))
        return found

    def vote(self, index: int) -> None:
        """Whether stages have streams of their own. There is nothing to overlap where the device is done with a batch while the host
        enqueues the next; eight such looks in a row decide. Waits for the device where that changes."""
        is_done = self.steps.is_reached(self.plan.done((index - 2) % self.slots, len(self.stages) - 1))
        self.votes = self.votes + 1 if is_done is (self.begins is self.apart[1]) else 0
        if self.votes == VOTES:
            self.go(self.together if is_done else self.apart)

    def go(self, way: tuple) -> None:
        self.settle()
        self.forget_chains()
        self.votes = 0
        self.steps, self.begins, self.plan = way
        self.way = self.way_of(self.begins) if self.sharing is None else None

    def way_of(self, turns: list[tuple]) -> Optional[tuple]:
        """All that a batch needs; see `Way` in src/flow.hpp."""
        steps, plan, intake = self.steps, self.plan, self.intake
        if steps.batch is None or intake.reuse:
            return None
        state = [None, None]
        moments = [(begin, copied, plan.end(slot), plan.end_and_read(slot),
                    COPIES if turns is self.of_large else plan.stages[0], *(-1 if moment is None else moment for moment, *_ in stages))
                   for slot, (begin, copied, stages) in enumerate(turns)]
        return (steps.handle.value, tuple(moments), tuple(running.function for running in self.stages),
                tuple(running.made for running in self.stages), intake.held, intake.made, intake.batches, intake.versions, self.late,
                intake.target, state, DEVICE_TYPES[intake.target.type], intake.target.index or 0)

    def __call__(self, batches: Iterable) -> Iterator[Any]:
        """The results of the last stage, in the order of the batches."""
        self.refuse_another()
        if isinstance(batches, Prefetch) and self.schedule != "serial":
            raise TypeError("sluice.pipeline: the loader is a sluice.prefetch, whose memory has a batch only until the next one; expected "
                            "its loader, since a pipeline copies ahead by itself")
        return self.run(batches)

    def report(self) -> Report:
        """What ran how, and how long. Waits for the device."""
        for chain in self.chains:
            credit(chain)
        return Report(self)

    def sync(self) -> int:
        """Waits until all that was begun is done, and returns how many batches of this iteration that are: whatever the stages change,
        such as a model's weights, is what it is after as many steps of a plain loop, until the next result is asked for."""
        self.device.synchronize()
        return self.begun

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is: behind the batches that have begun, which are what the stages' state has seen after `sync()`."""
        return self.position.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration begins where that of `state` was."""
        self.refuse_another()
        self.position.load_state_dict(state)

    def __repr__(self) -> str:
        names = ", ".join(running.name for running in self.stages)
        return f"sluice.pipeline({names}, schedule='{self.schedule}', slots={self.slots}, device='{self.device.device}')"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("sluice.pipeline: its memory and its streams cannot be copied or pickled; expected another one, "
                        "made by sluice.pipeline(...)")

    @property
    def batches(self) -> int:
        """How many were begun, in all iterations."""
        return self.before + (self.begun if self.running else 0)

    def refuse_another(self) -> None:
        if self.running:
            raise RuntimeError("sluice.pipeline: an iteration is under way; expected one at a time, since they share slots")

    def run(self, batches: Iterable) -> Iterator[Any]:
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
                self.settle()  # between two schedules
            if self.verification is not None:
                self.verification.require_all(self.begun)
                if whole.error is not None:
                    raise whole.error
            self.position.end()
            clean = True
        finally:
            self.leave(clean)
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
        bring, reuse, choice, verification = self.intake.alone, self.intake.reuse, self.choice, self.verification
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
            data = bring(batch)
            batch = NONE
            if reuse:
                self.device.synchronize()
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
            self.begun += 1
            if verification is not None:
                verification.compare(self.begun - 1, data)
            if trial is not None:
                trial.before_body()
            yield data
            data = NONE
            if trial is not None:
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
        graphed = self.current_schedule() == "graphed" and self.device.has_graphs
        submit, ends = self.submit_graphed if graphed else self.submit, self.ends[0]
        index = handed = self.begun
        failure: Optional[Exception] = None
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
            except Exception as error:
                self.steps.restore()
                failure = error
                break
            except BaseException:
                self.steps.restore()
                raise
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
        while waiting:
            self.steps.read(self.plan.read(handed % slots))
            if verification is not None:
                verification.compare(handed, waiting[0])
            handed += 1
            yield waiting.popleft()
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # whose traceback holds this frame

    def by_size(self, batch: Any) -> list:
        """Where the first batch is copied, and the others: that they may be of other sizes bears on what runs beside what alone."""
        if self.sharing is not None or not self.has_looked:
            self.has_looked = True
            self.look_for_sharing()
        size = sum(tensor.nbytes for tensor in tensors_of(batch) if is_plain(tensor))
        small = self.apart[1] if self.steps is self.apart[0] else self.together[1]
        if size > SMALL and self.steps is not self.apart[0]:
            self.go(self.apart)
        chosen = small if size <= SMALL else self.of_large
        self.begins, self.way = (chosen, self.way_of(chosen)) if self.sharing is None else ([], None)  # comes again
        return chosen

    def is_timed(self, schedule: str) -> bool:
        timed = self.times.begin(schedule)
        if timed and self.together is not None and self.steps is self.together[0]:
            self.go(self.apart)  # whose streams are those that are timed
        self.timing = len(self.times.marks) < self.times.most
        return timed

    def submit(self, index: int, batch: Any, ends: list[int]) -> Any:
        """Enqueues all stages for a batch, and what of `ends` is the slot's: the caller's wait for the result of the batch `slots - 1`
        before may be in it. All is in memory of its own, which is held until its stream comes after all readers. What the program holds
        then is its own: memory of results is looked at a batch later, since the loop's variables hold one."""
        if index & EVERY == EVERY and self.together is not None and not self.timing and self.begins is not self.of_large:
            self.vote(index)
        slot, intake, way = index % self.slots, self.intake, self.way
        if way is not None and not self.timing and (index or self.before):
            data = self.by_library(self.steps.batch, way, index, slot, batch, ends)
            if data is not UNHANDLED:
                return data
        timed = self.timing and self.is_timed("overlapped")
        moment, copied, stages = (self.begins or self.by_size(batch))[slot]
        late, over, step = [], list(self.late), self.steps.step  # after `by_size`, which may choose others
        if error := self.steps.start(moment, copied):
            self.steps.fail_to_start(error, moment, copied)
        for storage in intake.made[slot]:
            if count(storage._cdata) > 1:
                late.append(storage)
        storage = intake.made[slot] = ()  # frees them
        data = intake.bring(slot, index, batch)
        for moment, made, is_last, function, running in stages:
            if moment is not None and (error := step(moment)):
                self.steps.fail(error)
            if is_last:
                late += made[slot]
            else:
                for storage in made[slot]:
                    if count(storage._cdata) > 1:
                        late.append(storage)
                storage = None
            made[slot] = ()
            if timed:
                self.times.mark(running.place, running.stream)
            kind = type(data)
            try:
                if kind is TENSOR:
                    data = function(data)
                else:
                    data = function(*data) if kind is tuple or kind is list else call(function, data)
            except Exception as error:
                raise stage_error(running.name, index, error) from error
            if timed:
                self.times.mark(running.place, running.stream)
            if type(data) is TENSOR and data.layout is STRIDED:
                made[slot] = (data.untyped_storage(),)
            else:
                made[slot] = storages_of(tensors_of(data))
            if index == 0 and self.before == 0:  # cuDNN's benchmark and the like choose wrongly beside other work
                self.device.synchronize()
        if error := step(ends[slot]):
            self.steps.fail(error)
        if index == 0 and self.before == 0:
            self.device.release()  # such as what algorithms were tried with: each stage's stream would keep its own
        self.late[:] = late
        for storage in over:
            if count(storage._cdata) > 1:
                self.give_away(over)
                break
        if intake.reuse:
            self.wait_for_copy(slot)
        return data

    def by_library(self, work: Callable, way: tuple, index: int, slot: int, batch: Any, ends: list[int], *chain: tuple) -> Any:
        """A whole batch by a function of the operators' library, or `UNHANDLED` and nothing."""
        state = way[STATE]
        try:
            data = work(way, index, slot, batch, None if ends is self.ends[0] else True, *chain)
        except Exception as error:
            place, state[0] = state[0], None
            if place is None:
                raise
            raise stage_error(self.stages[place].name, index, error) from error
        if state[1] is not None:
            over, state[1] = state[1], None
            self.give_away(over)
        return data

    def wait_for_copy(self, slot: int) -> None:
        """On the host, for what the slot's batch was copied from."""
        for event in (self.plan.copied(slot), self.plan.done(slot, self.plan.first_done)):
            self.steps.wait(event)
        self.intake.forget_sources(slot)

    def submit_graphed(self, index: int, batch: Any, ends: list[int]) -> Any:
        """The same in memory of the slot, where stages become graphs, as long as the program holds none of it but results."""
        if self.holders:
            return self.submit(index, batch, ends)
        if index & EVERY == EVERY and self.together is not None and not self.timing and self.begins is not self.of_large:
            self.vote(index)
        slot, chain = index % self.slots, self.chains[index % self.slots]
        if chain is not None:
            if self.way is not None and not self.timing:
                data = self.by_library(self.steps.replays, self.way, index, slot, batch, ends, chain)
                if data is not UNHANDLED:
                    return data
            self.forget_chain(slot)
        timed = self.timing and self.is_timed("graphed")
        intake, last = self.intake, self.stages[-1]
        place = intake.slots[slot]
        moment, copied, stages = (self.begins or self.by_size(batch))[slot]
        over, steps = list(self.late), self.steps
        if error := steps.start(moment, copied):
            steps.fail_to_start(error, moment, copied)
        held = self.held_elsewhere(slot)
        if held:
            steps.restore()
            self.do_without_graphs(held)
            return self.submit(index, batch, ends)
        self.late[:] = kept(intake.made[slot])
        intake.made[slot] = ()
        data = brought = intake.bring_into_slot(slot, index, batch)
        written = [place.fixed]
        last.graphs.around.known = None  # whatever the loop's body did
        for moment, made, is_last, _, running in stages:
            if moment is not None and (error := steps.step(moment)):
                steps.fail(error)
            if is_last:
                self.late += made[slot]
            elif made[slot]:
                self.late += kept(made[slot])
            made[slot] = ()
            if timed:
                self.times.mark(running.place, running.stream)
            try:
                outputs, fixed = running.run_graphed(index, slot, data, is_last, written)
            except Exception as error:
                raise stage_error(running.name, index, error) from error
            if timed:
                self.times.mark(running.place, running.stream)
            if not is_last:
                data = outputs
                if fixed:
                    written.append(running.fixed[slot])
                else:
                    made[slot] = self.own_of(slot, storages_of(tensors_of(outputs)))
            elif fixed:
                data = running.graphs.copied(outputs)
            else:
                data = self.result_of(slot, outputs)
            del outputs
            if index == 0 and self.before == 0:
                self.device.synchronize()
        last.made[slot] = storages_of((data,) if type(data) is torch.Tensor else tensors_of(data))
        if error := steps.step(ends[slot]):
            steps.fail(error)
        if index == 0 and self.before == 0:
            self.device.release()
        if over:
            self.give_away(over)
        self.look_for_chain(slot, batch, brought)
        if intake.reuse:
            self.wait_for_copy(slot)
        return data

    def look_for_chain(self, slot: int, batch: Any, brought: Any) -> None:
        """After a batch that the library did not do: whether it can do the slot's next."""
        dropped = [running.graphs.dropped for running in self.stages]
        if dropped != self.dropped:  # what other slots' chains replay
            self.forget_chains()
            self.dropped = dropped
        if self.way is not None and all(running.graphs.recent[slot] is not None for running in self.stages):
            baselines = [self.intake.slots[slot].fixed, *(running.fixed[slot] for running in self.all_but_last)]
            self.chains[slot] = chain_of(self.stages, slot, self.plan.stages, batch, brought, baselines)

    def forget_chain(self, slot: int) -> None:
        credit(self.chains[slot])
        self.chains[slot] = None
        for running in self.stages:
            running.batches[slot] = self.intake.batches[slot]

    def forget_chains(self) -> None:
        for slot in range(self.slots):
            if self.chains[slot] is not None:
                self.forget_chain(slot)

    def held_elsewhere(self, slot: int) -> str:
        """What of the memory that the slot's next batch overwrites the program holds."""
        if self.intake.slots[slot].fixed.is_kept():
            return f"a tensor of batch {self.intake.batches[slot]}"
        for running in self.all_but_last:
            if running.fixed[slot].is_kept():
                return f"a tensor that '{running.name}' returned for batch {running.batches[slot]}"
        return ""

    def do_without_graphs(self, held: str) -> None:
        """What the program holds is its own, and graphs would go on writing it."""
        self.settle()
        self.forget_chains()
        self.holders = f"{held} is still held when its batch is over; expected a clone() of what is to be kept"
        for running in self.stages:
            running.graphs.stop(self.holders)
            for baseline in running.fixed:
                self.give_away(storage for storage, _ in baseline.watched.values())
            running.clear(False)
        for slot in self.intake.slots:
            self.give_away(storage for storage, _ in slot.fixed.watched.values())
        self.intake.renew()

    def own_of(self, slot: int, storages: list[Any]) -> list[Any]:
        """Those that are not the slot's memory, or a graph's."""
        fixed = [self.intake.slots[slot].fixed.watched, *(running.fixed[slot].watched for running in self.stages)]
        return [storage for storage in storages if not any(storage._cdata in memory for memory in fixed)]

    def result_of(self, slot: int, outputs: Any) -> Any:
        """What the consumer may keep of what an eager stage returned among graphs."""
        made = [self.intake.made[slot], *(running.made[slot] for running in self.stages)]
        shared = {storage._cdata for storages in made for storage in storages}

        def own(tensor: torch.Tensor) -> torch.Tensor:
            own = self.own_of(slot, storages_of((tensor,)))
            is_own = len(own) > 0 and not any(storage._cdata in shared for storage in own)
            return tensor.detach() if is_own else tensor.detach().clone()

        return map_tensors(own, outputs)

    def give_away(self, storages: Iterable[Any]) -> None:
        """Memory of batches that are over: freed, unless the program holds it, which may free it at any time."""
        for storage in storages:
            if count(storage._cdata) > 1:
                self.device.give_away(as_tensor(storage), [*self.streams, self.device.current_stream()])

    def leave(self, clean: bool) -> None:
        """Everything that the caller enqueues from now on comes after the batches. After an error nothing is under way."""
        device = self.device
        try:
            if not clean:
                device.synchronize()
                self.forget_chains()
            if self.choice is not None:
                self.choice.leave(clean)
            if self.current_schedule() == "serial" and self.choice is None:
                return
            for slot in range(self.slots):
                self.wait_for_copy(slot)
            self.join()
            self.give_all_away()
        finally:
            self.late.clear()
            for running in self.stages:
                running.clear(clean)
            self.intake.clear(clean)
            self.pushed = NONE
            self.running = False

    def enter(self) -> None:
        """All streams of the pipeline come after what the caller enqueued."""
        self.device.record(self.left, self.device.current_stream())
        for stream in self.streams:
            self.device.wait(stream, self.left)

    def join(self) -> None:
        """The caller's stream comes after those of the pipeline. Memory that is freed then is used again on these, and no one reads it
        by then."""
        device = self.device
        current = device.current_stream()
        for stream in self.streams:
            device.record(self.left, stream)
            device.wait(current, self.left)
        device.record(self.left, current)
        for stream in self.streams:
            device.wait(stream, self.left)

    def settle(self) -> None:
        """Waits until nothing is under way: streams change, and so does whose memory is whose."""
        self.device.synchronize()
        self.give_all_away()

    def give_all_away(self) -> None:
        """What is held for batches, all of which are over."""
        for made in (self.intake.made, *(running.made for running in self.stages)):
            for slot, storages in enumerate(made):
                self.give_away(storages)
                made[slot] = ()
        self.give_away(self.late)
        self.late.clear()
