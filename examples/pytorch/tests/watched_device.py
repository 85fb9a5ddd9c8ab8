"""A device on which nothing runs, but every access to memory is checked: vector clocks follow what streams and events order.

It finds a missing wait whatever the timing, on a machine without a GPU.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Sequence

import torch

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
        self.overlaps = True
        self.waits = 0
        self.streams: list[WatchedStream] = []
        self.current = [self.stream()]
        self.host: dict[int, int] = {}
        self.accesses: dict[Any, list[tuple[int, int, bool]]] = {}
        self.races: list[str] = []
        self.memory: dict[int, tuple[str, Any, WatchedStream]] = {}  # by storage: a name, a weak reference, whose stream it is
        self.free: list[tuple[str, WatchedStream]] = []
        self.given: dict[str, set[int]] = {}  # streams that the allocator waits for

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

    def switch(self, stream: WatchedStream) -> None:
        self.current[-1] = stream

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

    def allocated(self, tensor: torch.Tensor, what: str) -> None:
        """Work on the current stream made `tensor`: in any memory of that stream which was freed by now."""
        stream = self.current_stream()
        for name, owner in self.freed():
            if owner is stream:
                self.access(name, True, what)
                self.free.remove((name, owner))
        storage = tensor.untyped_storage()
        self.memory[storage._cdata] = (f"{what} #{len(self.accesses)}", storage._weak_ref(), stream)
        self.access(self.memory[storage._cdata][0], True, what)

    def freed(self) -> list[tuple[str, WatchedStream]]:
        for storage, (name, alive, stream) in list(self.memory.items()):
            if torch.UntypedStorage._expired(alive):
                self.free.append((name, stream))
                torch.UntypedStorage._free_weak_ref(alive)
                del self.memory[storage]
        return list(self.free)

    def read(self, tensor: torch.Tensor, what: str) -> None:
        self.access(self.memory[tensor.untyped_storage()._cdata][0], False, what)

    def give_away(self, memory: torch.Tensor, streams: Sequence[WatchedStream]) -> None:
        if memory.untyped_storage()._cdata in self.memory:
            name = self.memory[memory.untyped_storage()._cdata][0]
            self.given.setdefault(name, set()).update(stream.name for stream in streams)

    def access(self, memory: Any, writes: bool, what: str) -> None:
        """Work on the current stream reads or writes `memory`."""
        stream = self.current_stream()
        merge(stream.clock, self.host)
        for other, count, wrote in self.accesses.setdefault(memory, []):
            if other in self.given.get(memory, ()):
                continue
            if (writes or wrote) and other != stream.name and stream.clock.get(other, 0) < count:
                self.races.append(f"{what}: {memory} is not ordered after work of stream {other}")
        stream.clock[stream.name] += 1
        self.accesses[memory].append((stream.name, stream.clock[stream.name], writes))
