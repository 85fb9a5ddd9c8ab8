"""CUDA graphs: captures that give everything back when they fail, and random numbers that no two graphs share."""

from __future__ import annotations

import contextlib
import traceback
import weakref
from typing import Any, Callable, Iterator, Sequence

import torch

FAILED: list[torch.cuda.CUDAGraph] = []  # PyTorch's host allocator asks them still whether they capture


class Twin:
    """A generator of a stage's own, in place of one that it draws from while it is captured, with its numbers.

    PyTorch gives all graphs of a generator one place on the device for its seed and offset: of two graphs that run beside each
    other, one would read what was meant for the other.
    """

    def __init__(self, source: torch.Generator) -> None:
        self.source = source
        self.own = torch.Generator(source.device)  # whose state takes the other's place
        self.seed = source.initial_seed()
        self.own.manual_seed(self.seed)
        self.start = 0

    def follow(self) -> None:
        """Goes to where the generator is that it stands for."""
        seed = self.source.initial_seed()
        if seed != self.seed:
            self.seed = seed
            self.own.manual_seed(seed)
        self.start = self.source.get_offset()
        self.own.set_offset(self.start)

    def lead(self) -> bool:
        """Moves the other on by what was drawn here; whether something was."""
        now = self.own.get_offset()
        if now == self.start:
            return False
        moved(self.source).set_offset(now)
        return True


def moved(generator: torch.Generator) -> torch.Generator:
    """Another object with the generator's state, through which that is set. Set through its own, cuDNN would begin the dropout of
    recurrent networks anew: PyTorch takes it for a seed."""
    return generator.graphsafe_get_state() if generator.device.type == "cuda" else generator


def is_of(generator: torch.Generator, device: torch.device) -> bool:
    """One that was made for "cuda" has no number."""
    return generator.device.type == device.type and generator.device.index in (None, device.index)


class GraphMemory:
    """What the graphs of a stage share: memory, and generators. Graphs that run one after another, and whose results are
    copied before the next of them runs, or lie elsewhere, may have the same memory (`shared`)."""

    def __init__(self, device: torch.device, shared: bool) -> None:
        self.device = device
        self.shared = shared
        self.pool: Any = None
        self.graphs: weakref.WeakSet = weakref.WeakSet()  # in that pool
        self.twins: list[Twin] = []

    def pool_for_capture(self) -> Any:
        if not self.shared:
            return torch.cuda.MemPool()
        if not self.graphs:  # PyTorch gives up a pool for pinned memory with its last graph, and refuses to begin it again
            self.pool = torch.cuda.MemPool()
        return self.pool

    def twins_of(self, generators: Sequence[torch.Generator]) -> list[Twin]:
        """For the device's own generator, and `generators`."""
        found = []
        for source in [torch.cuda.default_generators[self.device.index], *generators]:
            if not is_of(source, self.device) or any(twin.source is source for twin in found):
                continue
            twin = next((twin for twin in self.twins if twin.source is source), None)
            if twin is None:
                twin = Twin(source)
                self.twins.append(twin)
            found.append(twin)
        return found


class CapturedGraph:
    """A graph, with all that must outlive it."""

    def __init__(self, graph: torch.cuda.CUDAGraph, pool: Any, twins: list[Twin]) -> None:
        self.pool = pool  # is destroyed after the graph
        self.graph = graph
        self.twins = twins
        self.new = True

    def handle(self) -> Any:
        """For CUDA's call that launches it, where that is all that a replay does."""
        return None if self.new or self.twins else self.graph.raw_cuda_graph_exec()

    def replay(self) -> None:
        if not self.twins:
            self.graph.replay()
            self.new = False
            return
        for twin in self.twins:
            twin.follow()
        self.graph.replay()
        drawn_from = [twin for twin in self.twins if twin.lead()]
        if self.new:
            self.new, self.twins = False, drawn_from

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.graph.reset()


@contextlib.contextmanager
def in_place_of_generators(twins: Sequence[Twin]) -> Iterator[None]:
    """What draws from a generator draws from its twin."""
    before = [twin.source.graphsafe_get_state() for twin in twins]
    try:
        for twin in twins:
            twin.follow()
            twin.source.graphsafe_set_state(twin.own.graphsafe_get_state())
        yield
    finally:
        for twin, state in zip(twins, before):
            twin.source.graphsafe_set_state(state)


def capture(device: torch.device, stream: torch.cuda.Stream, work: Callable[[], Any], memory: GraphMemory,
            generators: Sequence[torch.Generator] = ()) -> tuple[CapturedGraph, Any]:
    """A graph of what `work` enqueues on `stream`, and what it returned. Other threads, such as a loader's, go on unhindered.
    After a failure PyTorch's generators and allocator are as before."""
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph()
    pool = memory.pool_for_capture()
    twins = memory.twins_of(generators)
    with in_place_of_generators(twins):
        with torch.cuda.stream(stream):
            for twin in twins[1:]:
                graph.register_generator_state(twin.source)
            try:
                graph.capture_begin(pool=pool.id, capture_error_mode="thread_local")
                result = work()
                graph.capture_end()
            except BaseException as error:
                memory.twins.clear()  # they count as being captured for ever
                give_back(device, graph, pool, error)
                raise
    captured = CapturedGraph(graph, pool, twins)
    memory.graphs.add(captured)
    return captured, result


def give_back(device: torch.device, graph: torch.cuda.CUDAGraph, pool: Any, error: BaseException) -> None:
    """Ends a capture that failed: where its end fails too, PyTorch goes on giving out that pool, and never frees it."""
    with contextlib.suppress(Exception):
        graph.capture_end()
    with contextlib.suppress(Exception):  # it was ended already
        torch._C._cuda_endAllocateToPool(device.index, pool.id)
        torch._C._cuda_releasePool(device.index, pool.id)
    with contextlib.suppress(Exception):
        graph.reset()
    FAILED.append(graph)
    traceback.clear_frames(error.__traceback__)  # which hold tensors of the pool
