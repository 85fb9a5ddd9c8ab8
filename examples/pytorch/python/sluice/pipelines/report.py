"""What a pipeline did, in numbers and in words."""

from __future__ import annotations

from typing import Any, Optional

from sluice.arguments import counted
from sluice.pipelines.devices import Device


def distinct(names: list[str]) -> list[str]:
    """Names that differ: the second of the same name is followed by its place among the stages."""
    found: list[str] = []
    for place, name in enumerate(names):
        while name in found:
            name = f"{name} ({place})"
        found.append(name)
    return found


class Times:
    """When stages began and ended, for some batches after the first ones."""

    SKIPPED = 8  # first batches: allocations, and choices that libraries make

    def __init__(self, device: Device, names: list[str], batches: int) -> None:
        self.device = device
        self.names = distinct(names)
        self.most = batches
        self.seen = 0
        self.schedule: Optional[str] = None
        self.marks: list[list[list[Any]]] = []  # of each batch, of each stage: begin and end

    def begin(self, schedule: str) -> bool:
        """Whether the batch that comes is timed. Only those of the latest schedule are."""
        if schedule != self.schedule:
            self.schedule, self.seen, self.marks = schedule, 0, []
        self.seen += 1
        if self.seen <= self.SKIPPED or len(self.marks) >= self.most:
            return False
        self.marks.append([[] for _ in self.names])
        return True

    def mark(self, stage: int, stream: Any) -> None:
        self.marks[-1][stage].append(self.device.mark(stream))

    def whole(self) -> list[list[list[Any]]]:
        """Without a batch that an error cut short."""
        return [batch for batch in self.marks if all(len(marks) == 2 for marks in batch)]

    def stage_milliseconds(self) -> dict[str, float]:
        """Medians."""
        found = {}
        for place, name in enumerate(self.names):
            values = sorted(self.device.milliseconds(*batch[place]) for batch in self.whole())
            if values:
                found[name] = values[len(values) // 2]
        return found

    def batch_milliseconds(self) -> Optional[float]:
        """From the end of one batch to the end of the next, the median: between two iterations nothing may be under way."""
        ends = [batch[-1][1] for batch in self.whole()]
        values = sorted(self.device.milliseconds(begin, end) for begin, end in zip(ends, ends[1:]))
        return values[len(values) // 2] if values else None


class Report:
    """Attributes for programs, `str()` for people. Stages of the same name are told apart by their place: "<lambda> (1)"."""

    def __init__(self, pipeline: Any) -> None:
        pipeline.device.synchronize()
        self.schedule = pipeline.current_schedule()
        self.batches = pipeline.batches
        self.seconds = pipeline.seconds
        self.slots = pipeline.slots
        self.slot_bytes = pipeline.intake.bytes()
        self.stage_milliseconds = pipeline.times.stage_milliseconds()
        self.batch_milliseconds = pipeline.times.batch_milliseconds()
        stages = dict(zip(pipeline.times.names, pipeline.stages))
        self.replays = {name: s.graphs.replays for name, s in stages.items()}
        self.eager = {name: s.graphs.eager for name, s in stages.items()}
        self.refusals = {name: s.graphs.refusal for name, s in stages.items() if s.graphs.refusal}
        self.changes = {name: dict(s.graphs.changes) for name, s in stages.items() if s.graphs.changes}
        self.choice = [] if pipeline.choice is None else pipeline.choice.lines()
        self.shared = list(pipeline.shared)
        self.device = pipeline.device.device

    def advice(self) -> str:
        """What the times say about overlapping, in a sentence; nothing without times."""
        stages, batch = self.stage_milliseconds, self.batch_milliseconds
        if batch is None or not stages or len(stages) == 1 or self.device.type == "cpu":
            return ""
        slowest = max(stages, key=stages.__getitem__)
        total = sum(stages.values())
        if batch < 0.95 * total:
            return f"{total / batch:.2f} x of a batch is under way at a time; '{slowest}' bounds it"
        if self.schedule == "serial":
            return f"'{slowest}' alone takes {stages[slowest] / total:.0%} of a batch, which bounds what overlapping can gain"
        return "the stages do not overlap: one of them fills the device, waits on the host, or is launched too slowly"

    def __repr__(self) -> str:
        return f"<sluice.Report: {self.schedule} on {self.device}, {counted(self.batches, 'batch')}>"

    def __str__(self) -> str:
        rate = f", {self.batches / self.seconds:.1f} a second" if self.seconds > 0 else ""
        lines = [f"{self.schedule} on {self.device}: {counted(self.batches, 'batch')}{rate}; {self.slots} slots, "
                 f"{self.slot_bytes / 1e6:.1f} MB"]
        lines += self.choice
        lines += [f"  {sentence}" for sentence in self.shared]
        lines += [f"  {name}: {value:.3f} ms" for name, value in self.stage_milliseconds.items()]
        if self.batch_milliseconds is not None:
            lines.append(f"  a batch: {self.batch_milliseconds:.3f} ms")
        for name, count in self.replays.items():
            if count or self.eager[name]:
                lines.append(f"  {name}: {counted(count, 'replay')}, {counted(self.eager[name], 'batch')} eagerly")
        lines += [f"  {name} was not captured: {reason}" for name, reason in self.refusals.items()]
        lines += [f"  {name} was captured anew {count} x: {changed} changed"
                  for name, changes in self.changes.items() for changed, count in changes.items()]
        if self.advice():
            lines.append(f"  {self.advice()}")
        return "\n".join(lines)
