"""One batch of an overlapping pipeline: all that is enqueued for it."""

from __future__ import annotations

from typing import Any, Callable

import torch

from sluice.pipelines.compiled import UNHANDLED
from sluice.pipelines.holders import count, is_wrapped, kept, storages_of
from sluice.pipelines.history import has_history
from sluice.pipelines.refusals import require_copies
from sluice.pipelines.stages import stage_error
from sluice.pipelines.trees import call, held_by, tensors_of

TENSOR, STRIDED = torch.Tensor, torch.strided
STATE = 10  # in a way of the library
EVERY = 15  # a look at each 16th batch


class Submission:
    """How a pipeline submits a batch: by the operators' library, or here, eagerly or as graphs.

    Keeps `holders`, why there can be no graphs. Reads `device`, `slots`, `stages`, `intake`, `memory`, `chains`, `times`, `timing`,
    `before` and `ends`, and of the layout `steps`, `plan`, `begins`, `of_large`, `together` and `way`.
    """

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
        steps, memory = self.steps, self.memory  # after `by_size`, which may choose others
        late, over, step = [], list(memory.late), steps.step
        if error := steps.start(moment, copied):
            steps.fail_to_start(error, moment, copied)
        for storage in intake.made[slot]:
            if count(storage._cdata) > 1:
                late.append(storage)
        storage = intake.made[slot] = ()  # frees them
        try:
            data = intake.bring(slot, index, batch)
        except Exception:
            require_copies(index, batch, intake.target)
            raise
        for moment, made, is_last, function, running in stages:
            if moment is not None and (error := step(moment)):
                steps.fail(error)
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
                if type(data) is TENSOR and data.layout is STRIDED and not data.__dict__ and not is_wrapped(data):
                    made[slot] = (data.untyped_storage(),)
                else:
                    made[slot] = storages_of(held_by(data))
            except Exception as error:
                raise stage_error(running.name, index, error) from error
            if timed:
                self.times.mark(running.place, running.stream)
            if index == 0 and self.before == 0:  # cuDNN's benchmark and the like choose wrongly beside other work
                self.device.synchronize()
        if error := step(ends[slot]):
            steps.fail(error)
        if index == 0 and self.before == 0:
            self.device.release()  # such as what algorithms were tried with: each stage's stream would keep its own
        memory.late[:] = late
        for storage in over:
            if count(storage._cdata) > 1:
                memory.give_away(over)
                break
        if intake.reuse:
            self.wait_for_copy(slot)
        return data

    def submit_graphed(self, index: int, batch: Any, ends: list[int]) -> Any:
        """The same in memory of the slot, where stages become graphs, as long as the program holds none of it but results."""
        if self.holders:
            return self.submit(index, batch, ends)
        if index & EVERY == EVERY and self.together is not None and not self.timing and self.begins is not self.of_large:
            self.vote(index)
        slot = index % self.slots
        chain = self.chains.of[slot]
        if chain is not None:
            if self.way is not None and not self.timing:
                data = self.by_library(self.steps.replays, self.way, index, slot, batch, ends, chain)
                if data is not UNHANDLED:
                    return data
            self.chains.forget(slot)
        timed = self.timing and self.is_timed("graphed")
        intake, last = self.intake, self.stages[-1]
        place = intake.slots[slot]
        moment, copied, stages = (self.begins or self.by_size(batch))[slot]
        steps, memory = self.steps, self.memory
        late, ends_graphs = memory.late, ""
        over = list(late)
        if error := steps.start(moment, copied):
            steps.fail_to_start(error, moment, copied)
        held = memory.held_elsewhere(slot)
        if held:
            steps.restore()
            self.do_without_graphs(f"{held} is still held when its batch is over; expected a clone() of what is to be kept")
            return self.submit(index, batch, ends)
        late[:] = kept(intake.made[slot])
        intake.made[slot] = ()
        try:
            data = brought = intake.bring_into_slot(slot, index, batch)
        except Exception:
            require_copies(index, batch, intake.target)
            raise
        written = [place.fixed]
        last.graphs.around.known = None  # whatever the loop's body did
        for moment, made, is_last, _, running in stages:
            if moment is not None and (error := steps.step(moment)):
                steps.fail(error)
            if is_last:
                late += made[slot]
            elif made[slot]:
                late += kept(made[slot])
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
                    made[slot] = memory.own_of(slot, storages_of(held_by(outputs)))
            elif fixed:
                data = running.graphs.copied(outputs)
            elif any(map(has_history, tensors_of(outputs))):
                data, ends_graphs = outputs, f"'{running.name}' returned what carries autograd's history; expected detach()"
            else:
                data = memory.result_of(slot, outputs)
            del outputs
            if index == 0 and self.before == 0:
                self.device.synchronize()
        last.made[slot] = storages_of(held_by(data))
        if error := steps.step(ends[slot]):
            steps.fail(error)
        if index == 0 and self.before == 0:
            self.device.release()
        if over:
            memory.give_away(over)
        self.chains.look(slot, self.way, self.plan.stages, batch, brought)
        if intake.reuse:
            self.wait_for_copy(slot)
        if ends_graphs:
            self.do_without_graphs(ends_graphs)
        return data

    def by_library(self, work: Callable, way: tuple, index: int, slot: int, batch: Any, ends: list[int], *chain: tuple) -> Any:
        """A whole batch by a function of the operators' library, or `UNHANDLED` and nothing."""
        state = way[STATE]
        try:
            data = work(way, index, slot, batch, None if ends is self.ends[0] else True, *chain)
        except BaseException as error:
            place, state[0] = state[0], None
            if place is None or not isinstance(error, Exception):
                raise
            raise stage_error(self.stages[place].name, index, error) from error
        if state[1] is not None:
            over, state[1] = state[1], None
            self.memory.give_away(over)
        return data

    def wait_for_copy(self, slot: int) -> None:
        """On the host, for what the slot's batch was copied from."""
        for event in (self.plan.copied(slot), self.plan.done(slot, self.plan.first_done)):
            self.steps.wait(event)
        self.intake.forget_sources(slot)

    def do_without_graphs(self, reason: str) -> None:
        """What the program holds is its own, and graphs would go on writing it."""
        self.memory.settle()
        self.chains.forget_all()
        self.holders = reason
        for running in self.stages:
            running.graphs.stop(self.holders)
            for baseline in running.fixed:
                self.memory.give_away(storage for storage, _ in baseline.watched.values())
            running.clear(False)
        for slot in self.intake.slots:
            self.memory.give_away(storage for storage, _ in slot.fixed.watched.values())
        self.intake.renew()
