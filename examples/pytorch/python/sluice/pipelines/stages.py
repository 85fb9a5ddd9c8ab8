"""Stages, and what is known of one while a pipeline runs."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional

import torch

from sluice.arguments import flag_of, is_integer, shown
from sluice.pipelines.devices import Device
from sluice.pipelines.graphs import StageGraphs
from sluice.pipelines.holders import Baseline, storages_of
from sluice.pipelines.trees import ORDINARY, attribute_of, call, map_tensors, tensors_of, with_attributes


class StageError(RuntimeError):
    """What a stage raised, with the stage and the batch; the original is its `__cause__`."""

    def __init__(self, text: str, stage: str = "", batch: int = -1) -> None:
        super().__init__(text)
        self.stage, self.batch = stage, batch

    def __reduce__(self) -> tuple:
        return type(self), (*self.args, self.stage, self.batch)


class StageOutOfMemoryError(StageError, torch.OutOfMemoryError):
    """The same, for `except torch.OutOfMemoryError`."""


class StageMemoryError(StageError, MemoryError):
    """The same, for `except MemoryError`, which NumPy raises."""


KINDS = {torch.OutOfMemoryError: StageOutOfMemoryError, MemoryError: StageMemoryError}


def stage_error(stage: str, batch: int, error: BaseException) -> StageError:
    """The error of a stage, to be raised from `error`."""
    kind = next((kind for cause, kind in KINDS.items() if isinstance(error, cause)), StageError)
    try:
        text = " ".join(str(error).split()) or "no message"
    except Exception:  # what a stage raised is there as the cause
        text = "no message"
    return kind(f"stage '{stage}', batch {batch}: {type(error).__name__}: {text}", stage, batch)


@dataclasses.dataclass(frozen=True)
class Stage:
    """A callable with a name. See `stage`."""

    function: Callable
    name: str
    stream: Any = None
    priority: int = 0
    graph: Optional[bool] = None
    shares: tuple = ()


def stage(function: Callable, name: Optional[str] = None, *, stream: Any = None, priority: int = 0,
          graph: Optional[bool] = None, shares: Any = ()) -> Stage:
    """A stage of a pipeline with options.

    `stream` is the caller's own: a `torch.cuda.Stream` (an `ExternalStream` too), an object with `__cuda_stream__`, or a
    handle. A lower `priority` runs first. Where the pipeline is `graphed`, a stage is captured if all that it reads on the host
    can be checked before each replay. `graph=False` keeps it eager. `graph=True` is the caller's word that what cannot be
    checked, as `report()` names it, does not change.

    `shares` is what other stages use too, and one of them changes: a model, or a list of models. Stages that name the same object
    run on one stream, in the order of a plain loop. What is not named is found where it shows in the first batches, with a warning.
    """
    if not callable(function):
        raise TypeError(f"sluice.stage: {shown(function)} was given, expected a callable")
    if not isinstance(name, (str, type(None))):
        raise TypeError(f"sluice.stage: name is {shown(name)}, expected a string")
    if not is_integer(priority):
        raise TypeError(f"sluice.stage: priority is {shown(priority)}, expected an integer")
    if graph is not None:
        graph = flag_of("stage", "graph", graph)
    return Stage(function, name or attribute_of(function, "__name__", type(function).__name__), stream, int(priority), graph, shared(shares))


def shared(shares: Any) -> tuple:
    """What is known by identity: two calls of `parameters()` or `state_dict()`, and equal strings, may be the same or not."""
    objects = () if shares is None else tuple(shares) if isinstance(shares, (tuple, list, set, frozenset)) else (shares,)
    for each in objects:
        if each is None or isinstance(each, (dict, str, bytes, int, float)) or hasattr(each, "__next__"):
            raise TypeError(f"sluice.stage: shares has {shown(each)}, expected a model, or a list of models, which other stages name too")
    return objects


def another(tensor: torch.Tensor) -> torch.Tensor:
    """The same in another object, where that may be a graph's."""
    return tensor if tensor.requires_grad or type(tensor) not in ORDINARY else with_attributes(tensor.detach(), tensor)


class RunningStage:
    """A stage with its stream, and what it made for the batches that are under way."""

    def __init__(self, given: Stage, device: Device, slots: int) -> None:
        self.given = given
        self.name = given.name
        self.function = given.function
        self.device = device
        self.stream: Any = None  # see `streams_of`
        self.place = 0
        self.made: list[Any] = [()] * slots  # storages of what it made for the slot's batch
        self.graphs = StageGraphs(given, device, slots)
        self.fixed = [Baseline() for _ in range(slots)]  # memory that the slot's next batch overwrites
        self.seen: list[Any] = [None] * slots  # the graph whose memory that is
        self.batches = [-1] * slots

    def run_graphed(self, batch: int, slot: int, inputs: Any, is_last: bool, before: list[Baseline]) -> tuple[Any, bool]:
        """What the stage returned, as a graph, if there is one or can be, and whether that lies in memory that the slot's next batch
        overwrites. `before` is such memory of the batch and of earlier stages, which a graph holds."""
        self.batches[slot] = batch
        graphs, fixed = self.graphs, self.fixed[slot]
        again = graphs.again(slot, inputs)
        if again is not None:
            outputs = again.outputs
            if self.seen[slot] is outputs:
                return outputs, True
        else:  # its Python code runs, and a holder of an object of a graph would not be counted
            inputs = map_tensors(another, inputs)
            if is_last and self.given.graph is False:
                graphs.eager += 1
                return call(self.function, inputs), False
            outputs, is_fixed = graphs.run(slot, self.stream, inputs, before)
            if not is_fixed:
                return outputs, False
        self.seen[slot] = outputs if self.given.graph is not False else None
        # What passes through is looked at where it comes from: a graph that is captured later may hold it.
        known = [baseline.watched for baseline in (fixed, *before)]
        fixed.watch([tensor for tensor in tensors_of(outputs)
                     if not any(s._cdata in watched for s in storages_of((tensor,)) for watched in known)])
        return outputs, True

    def clear(self, clean: bool) -> None:
        """After all work is done. An exception, whose traceback may hold a batch, is no reason for another."""
        self.made[:] = [()] * len(self.made)
        if not clean:
            self.seen = [None] * len(self.seen)
            for baseline in self.fixed:
                baseline.clear()


def streams_of(stages: list[RunningStage], device: Device) -> list[int]:
    """Gives each stage its stream, and tells their numbers, from 1. Stages that share something have one stream."""
    numbers: list[int] = []
    for place, running in enumerate(stages):
        running.place = place
        names = {id(shared) for shared in running.given.shares}
        friends = [other for other in range(place) if names & {id(shared) for shared in stages[other].given.shares}]
        if running.given.stream is not None and not friends:
            running.stream = device.taken_stream(running.given.stream)
        elif friends:
            if running.given.stream is not None:
                raise ValueError(f"sluice.pipeline: stage '{running.name}' shares what '{stages[friends[0]].name}' uses, and has a stream "
                                 "of its own; expected it at the first of them")
            for other in friends[1:]:  # two groups become one
                old, new = numbers[other], numbers[friends[0]]
                for member in range(place):
                    if numbers[member] == old:
                        numbers[member], stages[member].stream = new, stages[friends[0]].stream
            running.stream = stages[friends[0]].stream
            numbers.append(numbers[friends[0]])
            continue
        else:
            running.stream = device.stream(running.given.priority)
        numbers.append(place + 1)
    return numbers
