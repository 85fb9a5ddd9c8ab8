"""What waits for what, as tables: made once for a pipeline, and then only carried out, by `Steps` on any device or by CUDA calls.

A batch in flight has a slot. The order of the device's work follows from one chain: the caller's stream, when it asks for a
batch, then the copy, then the stages one after the other, then the caller's stream again, which reads the result. So whatever
runs for a batch comes after everything, on any stream, that was done for the last batch of its slot and with its result.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

RECORD, WAIT, CURRENT, RESTORE = range(4)  # operations: (RECORD, event, stream), (WAIT, event, stream), (CURRENT, 0, stream)
CALLER, COPIES = -1, 0  # streams; that of stage n has number n + 1, or that of an earlier stage, whose stream it shares


class Plan:
    """`moments[n]` are the operations of moment `n`: `begin(slot)` before a batch is copied on the stream of copies,
    `begin_small(slot)` before one is copied on the first stage's stream, `stage(slot, place)` before a stage is called (but for the
    first stage of a small batch), `end(slot)` after the last one, `end_and_read(slot)` the same where the next slot's result is read,
    `read(slot)`."""

    def __init__(self, stages: Sequence[int], slots: int) -> None:
        self.stages, self.slots = list(stages), slots  # the number of each stage's stream
        count = len(self.stages)
        self.size = count + 5
        self.events = slots * (count + 2)
        # Of the stages' events, the first that is recorded: the next stage has another stream, or is none.
        self.first_done = next(place for place in range(count) if self.stages[place:place + 2] != [self.stages[place]] * 2)
        self.moments: list[list[tuple[int, int, int]]] = []
        for slot in range(slots):
            copied, over, done = self.copied(slot), self.over(slot), [self.done(slot, place) for place in range(count)]
            first, last = self.stages[0], self.stages[-1]
            asked = (RECORD, over, CALLER)
            self.moments.append([asked, (WAIT, over, COPIES), (CURRENT, 0, COPIES)])
            self.moments.append([asked, (WAIT, over, first), (CURRENT, 0, first)])
            ended, read = (RECORD, done[-1], last), (WAIT, self.done((slot + 1) % slots, count - 1), CALLER)
            self.moments.append([ended, (RESTORE, 0, 0)])
            self.moments.append([ended, read, (RESTORE, 0, 0)])
            self.moments.append([(WAIT, done[-1], CALLER)])
            before, ready = COPIES, copied
            for place, stream in enumerate(self.stages):
                waits = [] if stream == before else [(RECORD, ready, before), (WAIT, ready, stream), (CURRENT, 0, stream)]
                self.moments.append(waits)
                before, ready = stream, done[place]

    def begin(self, slot: int) -> int:
        return slot * self.size

    def begin_small(self, slot: int) -> int:
        return slot * self.size + 1

    def end(self, slot: int) -> int:
        return slot * self.size + 2

    def end_and_read(self, slot: int) -> int:
        return slot * self.size + 3

    def read(self, slot: int) -> int:
        return slot * self.size + 4

    def stage(self, slot: int, place: int) -> int:
        return slot * self.size + 5 + place

    def over(self, slot: int) -> int:
        return slot * (len(self.stages) + 2)

    def copied(self, slot: int) -> int:
        return self.over(slot) + 1

    def done(self, slot: int, place: int) -> int:
        return self.over(slot) + 2 + place


class Steps:
    """Carries a plan out by a device's `record`, `wait` and `switch`. `streams[0]` is that of the copies. `start(moment, copied)` is
    for the begin of a batch, `step(moment)` for what is in it: they return an error for `fail_to_start` and `fail`, if there is one."""

    def __init__(self, device: Any, plan: Plan, streams: Sequence[Any]) -> None:
        self.device, self.plan, self.streams = device, plan, list(streams)
        self.events = [device.event() for _ in range(plan.events)]
        self.caller: Any = None
        self.inside = False  # the current stream is one of the pipeline's
        self.batch: Any = None  # does a whole batch, where there is such a function; and one of graphs alone
        self.replays: Any = None
        self.prefetched: Any = None
        self.start: Callable[[int, int], Optional[int]] = self.begin
        self.step: Callable[[int], Optional[int]] = self.run

    def begin(self, moment: int, copied: int) -> None:
        """A batch begins, once the event `copied` was reached, after which its slot's former batch is read no more on the host: that
        bounds how far the host is ahead, and what it holds."""
        self.device.wait_on_host(self.events[copied])
        self.caller = self.device.current_stream()
        self.run(moment)

    def run(self, moment: int) -> None:
        for operation, event, number in self.plan.moments[moment]:
            stream = self.caller if number == CALLER else self.streams[number]
            if operation == RECORD:
                self.device.record(self.events[event], stream)
            elif operation == WAIT:
                self.device.wait(stream, self.events[event])
            elif operation == CURRENT:
                self.device.switch(stream)
                self.inside = True
            else:
                self.restore()

    def fail_to_start(self, error: int, moment: int, copied: int) -> None:
        """Raises, or starts once it can."""

    def fail(self, error: int) -> None:
        """Raises."""

    def read(self, moment: int) -> None:
        """The caller, on the stream that is current now, reads a result."""
        self.caller = self.device.current_stream()
        self.run(moment)

    def restore(self) -> None:
        """The caller's stream is current again."""
        if self.inside:
            self.inside = False
            self.device.switch(self.caller)

    def is_reached(self, event: int) -> bool:
        return self.device.is_reached(self.events[event])

    def wait(self, event: int) -> None:
        """On the host."""
        self.device.wait_on_host(self.events[event])
