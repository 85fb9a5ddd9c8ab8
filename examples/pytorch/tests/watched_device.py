"""A device on which nothing runs, but every access to memory is checked: vector clocks follow what streams and events order.

It finds a missing wait whatever the timing, on a machine without a GPU.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from sluice.pipelines.devices import CpuDevice


class WatchedStream:
    def __init__(self, name: int) -> None:
        self.name = name
        self.clock: dict[int, int] = {name: 0}  # of each stream, how much of its work comes before this one's next


class WatchedEvent:
    def __init__(self) -> None:
        self.clock: dict[int, int] = {}


def merge(into: dict[int, int], other: dict[int, int]) -> None:
    for name, count in other.items():
        into[name] = max(into.get(name, 0), count)


class WatchedDevice(CpuDevice):
    """`skip` leaves out the wait of that number, to see that it is missed."""

    def __init__(self, skip: int = -1) -> None:
        super().__init__()
        self.skip = skip
        self.waits = 0
        self.streams: list[WatchedStream] = []
        self.current = [self.stream()]
        self.host: dict[int, int] = {}
        self.accesses: dict[Any, list[tuple[int, int, bool]]] = {}
        self.races: list[str] = []

    def stream(self, priority: int = 0) -> WatchedStream:
        self.streams.append(WatchedStream(len(self.streams)))
        return self.streams[-1]

    def current_stream(self) -> WatchedStream:
        return self.current[-1]

    @contextlib.contextmanager
    def on(self, stream: WatchedStream) -> Iterator[None]:
        self.current.append(stream)
        try:
            yield
        finally:
            self.current.pop()

    def event(self) -> WatchedEvent:
        return WatchedEvent()

    def record(self, event: WatchedEvent, stream: WatchedStream) -> None:
        merge(stream.clock, self.host)
        event.clock = dict(stream.clock)

    def wait(self, stream: WatchedStream, event: WatchedEvent) -> None:
        self.waits += 1
        if self.waits - 1 != self.skip:
            merge(stream.clock, event.clock)

    def wait_on_host(self, event: WatchedEvent) -> None:
        merge(self.host, event.clock)

    def synchronize(self) -> None:
        for stream in self.streams:
            merge(self.host, stream.clock)

    def access(self, memory: Any, writes: bool, what: str) -> None:
        """Work on the current stream reads or writes `memory`."""
        stream = self.current_stream()
        merge(stream.clock, self.host)
        for other, count, wrote in self.accesses.setdefault(memory, []):
            if (writes or wrote) and other != stream.name and stream.clock.get(other, 0) < count:
                self.races.append(f"{what}: {memory} is not ordered after work of stream {other}")
        stream.clock[stream.name] += 1
        self.accesses[memory].append((stream.name, stream.clock[stream.name], writes))
