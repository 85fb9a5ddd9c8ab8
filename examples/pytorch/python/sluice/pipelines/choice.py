"""Which schedule is the fastest, found by running batches by each."""

from __future__ import annotations

from typing import Any, Sequence

from sluice.pipelines.devices import Device, seconds_of
from sluice.pipelines.trial import Trial

SETTLING, TIMED = 12, 24  # batches of each schedule: until its memory is there, and for its time
CAPTURING = 8  # batches more for each slot, until graphs are captured


class AutomaticChoice:
    """The schedule of each batch. The first batches run by each schedule for a while; the batches are real, so nothing is
    computed twice, and their results are the same by every schedule: a stage that is not guarded in full, or whose graph gave
    other bits than its Python code, runs eagerly where the others are graphs. Where the loop's body changes what stages read, or
    stages share memory that one of them writes, the loop stays a plain one."""

    def __init__(self, device: Device, slots: int = 3, stages: Sequence[Any] = ()) -> None:
        self.device = device
        self.capturing = CAPTURING * slots
        self.candidates = ["serial", "overlapped", "graphed"] if device.has_graphs else ["serial"]
        self.milliseconds: dict[str, float] = {}
        self.schedule = self.candidates[0]
        self.chosen = len(self.candidates) == 1
        self.trial = None if self.chosen else Trial(device, stages)  # while it lasts
        self.reason = ""
        self.tried = 0  # batches of the present candidate
        self.started = 0.0
        self.seconds = 0.0  # of timed batches in iterations before

    def settling(self) -> int:
        return SETTLING + (self.capturing if self.schedule == "graphed" else 0)

    def is_timing(self) -> bool:
        return not self.chosen and self.tried > self.settling()

    def enter(self) -> None:
        """An iteration begins: what was between it and the one before is no schedule's time."""
        if self.is_timing():
            self.started = seconds_of(self.device)

    def leave(self, clean: bool) -> None:
        """An iteration has ended; after an error its time tells nothing."""
        if not clean:
            self.tried = 0
        elif self.is_timing():
            self.seconds += seconds_of(self.device) - self.started

    def before(self) -> bool:
        """Is called before each batch; whether the schedule changes with it."""
        if self.chosen:
            return False
        changed = False
        if self.tried == self.settling():
            self.started, self.seconds = seconds_of(self.device), 0.0
        elif self.tried == self.settling() + TIMED:
            self.seconds += seconds_of(self.device) - self.started
            self.milliseconds[self.schedule] = 1e3 * self.seconds / TIMED
            self.tried = 0
            changed = True
            following = self.candidates.index(self.schedule) + 1
            if following < len(self.candidates):
                self.schedule = self.candidates[following]
            else:
                self.schedule = min(self.milliseconds, key=self.milliseconds.__getitem__)
                self.chosen = True
        self.tried += 1
        return changed

    def tried_serially(self) -> None:
        """A batch of the trial is over, and the loop's body after it."""
        assert self.trial is not None
        self.trial.after_body()
        self.reason = self.trial.reason
        if self.reason:
            self.chosen = True
        if self.reason or self.tried >= SETTLING:
            self.trial = None

    def lines(self) -> list[str]:
        if not self.device.has_graphs:
            return ["automatic: serial, since a CPU overlaps nothing"]
        if self.reason:
            return [f"automatic: serial, since {self.reason}"]
        found = ", ".join(f"{name} {value:.3f} ms" for name, value in self.milliseconds.items())
        return [f"automatic: {self.schedule if self.chosen else 'not chosen yet'} (a batch: {found or 'not measured yet'})"]
