"""A device of the CPU whose graphs are those of a GPU, without a GPU: a capture computes nothing that lasts, and keeps the operations
with their numbers and their memory; a replay runs these again, and none of the stage's Python code."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sluice.pipelines.devices import CpuDevice
from sluice.pipelines.trees import is_plain, map_tensors, tensors_of
from sluice.pipelines.watching import storages_of

NOT_PERMITTED = "operation not permitted when stream is capturing"


def aliases(tree: Any) -> Any:
    return map_tensors(lambda tensor: tensor.detach() if is_plain(tensor) else tensor, tree)


class Recorded(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, dict, Any]] = []
        self.saved: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.made: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        watched = sys.getprofile()
        sys.setprofile(None)  # this is no code of the stage's
        try:
            return self.record(func, args, kwargs or {})
        finally:
            sys.setprofile(watched)

    def record(self, func: Any, args: Any, kwargs: dict) -> Any:
        if torch.Tag.data_dependent_output in func.tags:
            raise RuntimeError(NOT_PERMITTED)
        if func._schema.is_mutable or "batch_norm" in str(func):
            for tensor, address in storages_of([args, kwargs]):
                if address not in self.made:
                    self.saved.append((tensor.detach(), tensor.detach().clone()))
        given = aliases([list(args), kwargs])  # as they are now: an operation in place may change their shape
        result = func(*args, **kwargs)
        if any(tensor.layout is not torch.strided for tensor in tensors_of([args, kwargs, result])):
            raise RuntimeError(NOT_PERMITTED)  # how many values a sparse tensor has is asked on the host
        self.made.update({address for _, address in storages_of(result)} - {address for _, address in storages_of([args, kwargs])})
        if torch.Tag.inplace_view not in func.tags:
            self.calls.append((func, given[0], given[1], aliases(result)))
        return result

    def undo(self) -> None:
        for tensor, was in reversed(self.saved):
            tensor.copy_(was)
        self.saved = []


class Graph:
    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded

    def handle(self) -> None:
        """It is more than a launch."""

    def replay(self) -> None:
        with torch.no_grad():
            for func, args, kwargs, result in self.recorded.calls:
                for kept, found in zip(tensors_of(result), tensors_of(func(*args, **kwargs))):
                    if not kept._is_zerotensor() and kept.data_ptr() != found.data_ptr():
                        kept.detach().copy_(found)


class GraphingDevice(CpuDevice):
    def __init__(self) -> None:
        super().__init__()
        self.has_graphs = self.overlaps = True
        self.captures = 0

    def graph_memory(self, shared: bool) -> None:
        return None

    def capture(self, stream: Any, work: Callable[[], Any], memory: Any, generators: Any) -> tuple[Graph, Any]:
        self.captures += 1
        numbers = self.random_state(generators)
        recorded = Recorded()
        try:
            with recorded:
                result = work()
        finally:
            with torch.no_grad():
                recorded.undo()
            self.set_random_state(numbers)
        return Graph(recorded), result

    def random_state(self, generators: Any) -> Any:
        return [(generator, generator.get_state()) for generator in [torch.default_generator, *generators]]

    def set_random_state(self, state: Any) -> None:
        for generator, numbers in state:
            generator.set_state(numbers)
