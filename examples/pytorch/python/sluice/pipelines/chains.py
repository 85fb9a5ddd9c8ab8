"""A slot's graphs as the operators' library replays them, all in one call: see src/replays.hpp. A chain is taken down after a batch whose
stages were all replayed, and holds as long as nothing changes."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Sequence

import torch

from sluice.pipelines.compiled import TYPES
from sluice.pipelines.copies import lies_over_itself
from sluice.pipelines.holders import Baseline
from sluice.pipelines.intake import Intake
from sluice.pipelines.trees import tensors_of

CONSTANTS = (int, str, bytes, bool, type(None))
CREDITED, COUNT = 7, 6


class NoChain(Exception):
    """The library does not know such a batch."""


def fixed(leaf: Any, source: Any = None) -> tuple:
    """A tensor that stays where it is, as `Fixed` in src/replays.hpp; or a constant."""
    if type(leaf) in CONSTANTS:
        return (leaf,)
    if type(leaf) is not torch.Tensor or leaf.layout is not torch.strided or leaf.requires_grad:
        raise NoChain
    strides, simple = leaf.stride(), contiguous(leaf.shape)
    given = strides if source is None else source.stride()
    is_simple = leaf.dtype in TYPES and not leaf.is_neg() and strides == simple
    bytes_given = leaf.numel() * leaf.element_size() if is_simple and given == simple else -1
    return leaf, leaf.dtype, leaf.shape, leaf.data_ptr() if is_simple else 0, given, bytes_given


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides as `torch.empty` has them: `is_contiguous()` does not look at those of dimensions of size 1."""
    strides = [1] * len(shape)
    for place in range(len(shape) - 1, 0, -1):
        strides[place - 1] = strides[place] * max(shape[place], 1)
    return tuple(strides)


def all_fixed(tree: Any, sources: Any = None) -> tuple:
    if type(tree) in (tuple, list):
        return tuple([fixed(leaf, source) for leaf, source in zip(tree, [None] * len(tree) if sources is None else sources)])
    if type(tree) is not torch.Tensor:
        raise NoChain
    return (fixed(tree, sources),)


def stage_of(running: Any, slot: int, stream: int, is_last: bool) -> tuple:
    graphs = running.graphs
    recent = graphs.recent[slot]
    if recent is None or recent.form.reach is None or graphs.given.graph is False:
        raise NoChain
    graph, gradients = recent.found.graph, recent.found.gradients
    if gradients and not is_last:  # a later stage's guard may ask for them
        raise NoChain
    return graph.handle(), graph.replay, recent.form.reach.guard.lists(), tuple([each for pair in gradients for each in pair]), stream


def chain_of(stages: Sequence[Any], slot: int, streams: Sequence[int], batch: Any, brought: Any,
             baselines: Iterable[Baseline]) -> Optional[tuple]:
    """After a batch: `brought` is what it became in the slot's memory, all of which is in `baselines`. Nothing if there is no chain."""
    if type(batch) not in (torch.Tensor, tuple, list):
        return None
    watched = [number for baseline in baselines for cdata, (_, own) in baseline.watched.items() for number in (cdata, own)]
    try:
        replayed = [stage_of(running, slot, stream, running is stages[-1]) for running, stream in zip(stages, streams)]
        outputs = stages[-1].graphs.recent[slot].found.outputs
        if lies_over_itself(tensors_of(outputs)):  # the library copies one by one
            raise NoChain
        return (type(batch), all_fixed(brought, batch), tuple(watched), tuple(replayed), all_fixed(outputs), type(outputs), [0],
                [(running.graphs, running.graphs.recent[slot].form) for running in stages])
    except NoChain:
        return None


def credit(chain: Optional[tuple]) -> None:
    """Counts the replays of the library."""
    if chain is not None:
        count, chain[COUNT][0] = chain[COUNT][0], 0
        for graphs, form in chain[CREDITED]:
            graphs.replays += count
            form.replays += count


class Chains:
    """Those of a pipeline's slots."""

    def __init__(self, slots: int, intake: Intake, stages: Sequence[Any]) -> None:
        self.intake, self.stages = intake, stages
        self.of: list[Optional[tuple]] = [None] * slots
        self.dropped: list[int] = []  # graphs of each stage, by when chains were looked for last

    def look(self, slot: int, way: Optional[tuple], streams: Sequence[int], batch: Any, brought: Any) -> None:
        """After a batch that the library did not do: whether it can do the slot's next."""
        dropped = [running.graphs.dropped for running in self.stages]
        if dropped != self.dropped:  # what other slots' chains replay
            self.forget_all()
            self.dropped = dropped
        if way is not None and all(running.graphs.recent[slot] is not None for running in self.stages):
            baselines = [self.intake.slots[slot].fixed, *(running.fixed[slot] for running in self.stages[:-1])]
            self.of[slot] = chain_of(self.stages, slot, streams, batch, brought, baselines)

    def forget(self, slot: int) -> None:
        credit(self.of[slot])
        self.of[slot] = None
        for running in self.stages:
            running.batches[slot] = self.intake.batches[slot]

    def forget_all(self) -> None:
        for slot, chain in enumerate(self.of):
            if chain is not None:
                self.forget(slot)

    def credit(self) -> None:
        for chain in self.of:
            credit(chain)
