"""Which streams a pipeline's stages run on, what that makes of its plan, and how it changes while batches come."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from sluice.arguments import warn
from sluice.pipelines.compiled import DEVICE_TYPES
from sluice.pipelines.holders import is_transformed
from sluice.pipelines.plan import COPIES, Plan
from sluice.pipelines.sharing import Sharing
from sluice.pipelines.trees import is_plain, tensors_of

VOTES = 8  # looks
SMALL = 1 << 18  # bytes of a batch whose copy takes less than what a stream of its own costs


class Layout:
    """A pipeline's streams: stages have streams of their own (`apart`), or one (`together`), and those that share memory have one.

    Keeps `apart` and `together`, each of them steps, turns of small batches, and a plan; `steps` and `plan`, those of one of them;
    `of_large`, turns of large batches; `begins`, the turns of batches as they come; `way`, all of it for the operators' library; `votes`,
    `timing`, `sharing`, `has_looked` and `shared`. Reads `device`, `slots`, `stages`, `streams`, `stream`, `left`, `intake`, `memory`,
    `chains` and `times`.
    """

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
        self.memory.settle()
        self.chains.forget_all()
        self.votes = 0
        is_ours = [running.given.stream is None for running in self.stages]
        found = sharing.sentences_after(len(self.shared), is_ours)
        self.shared += found
        self.lay(sharing.numbers_after(self.apart[2].stages, is_ours))
        for sentence in found:  # once it is so: a warning may be an error
            warn(f"sluice.pipeline: {sentence}")

    def look_again(self, sharing: Sharing) -> None:
        """A stage wrote for the first time what another one uses: they are ordered from the next batch on."""
        self.sharing, self.begins, self.way = sharing, [], None

    def vote(self, index: int) -> None:
        """Whether stages have streams of their own. There is nothing to overlap where the device is done with a batch while the host
        enqueues the next; eight such looks in a row decide. Waits for the device where that changes."""
        is_done = self.steps.is_reached(self.plan.done((index - 2) % self.slots, len(self.stages) - 1))
        self.votes = self.votes + 1 if is_done is (self.begins is self.apart[1]) else 0
        if self.votes == VOTES:
            self.go(self.together if is_done else self.apart)

    def is_timed(self, schedule: str) -> bool:
        timed = self.times.begin(schedule)
        if timed and self.together is not None and self.steps is self.together[0]:
            self.go(self.apart)  # whose streams are those that are timed
        self.timing = len(self.times.marks) < self.times.most
        return timed

    def go(self, way: tuple) -> None:
        self.memory.settle()
        self.chains.forget_all()
        self.votes = 0
        self.steps, self.begins, self.plan = way
        self.way = self.way_of(self.begins) if self.sharing is None else None

    def way_of(self, turns: list[tuple]) -> Optional[tuple]:
        """All that a batch needs; see `Way` in src/flow.hpp."""
        steps, plan, intake = self.steps, self.plan, self.intake
        if steps.batch is None or intake.reuse or is_transformed():
            return None
        state = [None, None]
        moments = [(begin, copied, plan.end(slot), plan.end_and_read(slot),
                    COPIES if turns is self.of_large else plan.stages[0], *(-1 if moment is None else moment for moment, *_ in stages))
                   for slot, (begin, copied, stages) in enumerate(turns)]
        return (steps.handle.value, tuple(moments), tuple(running.function for running in self.stages),
                tuple(running.made for running in self.stages), intake.held, intake.made, intake.batches, intake.versions,
                self.memory.late, intake.target, state, DEVICE_TYPES[intake.target.type], intake.target.index or 0)

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
