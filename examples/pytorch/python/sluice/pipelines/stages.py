"""Stages, and what is known of one while a pipeline runs."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any, Callable, Optional

import torch

from sluice.pipelines.devices import Device
from sluice.pipelines.graphs import StageGraphs
from sluice.pipelines.trees import call, tensors_of


class StageError(RuntimeError):
    """What a stage raised, with the stage and the batch; the original is its `__cause__`."""

    def __init__(self, text: str, stage: str = "", batch: int = -1) -> None:
        super().__init__(text)
        self.stage, self.batch = stage, batch

    def __reduce__(self) -> tuple:
        return type(self), (*self.args, self.stage, self.batch)


class StageOutOfMemoryError(StageError, torch.OutOfMemoryError):
    """The same, for `except torch.OutOfMemoryError`."""


def stage_error(stage: str, batch: int, error: BaseException) -> StageError:
    """The error of a stage, to be raised from `error`."""
    kind = StageOutOfMemoryError if isinstance(error, torch.OutOfMemoryError) else StageError
    text = " ".join(str(error).split()) or "no message"
    return kind(f"stage '{stage}', batch {batch}: {type(error).__name__}: {text}", stage, batch)


@dataclasses.dataclass(frozen=True)
class Stage:
    """A callable with a name. See `stage`."""

    function: Callable
    name: str
    stream: Any = None
    priority: int = 0
    graph: Optional[bool] = None


def stage(function: Callable, name: Optional[str] = None, *, stream: Any = None, priority: int = 0,
          graph: Optional[bool] = None) -> Stage:
    """A stage of a pipeline with options.

    `stream` is the caller's own: a `torch.cuda.Stream` (an `ExternalStream` too), an object with `__cuda_stream__`, or a
    handle. A lower `priority` runs first. Where the pipeline is `graphed`, a stage is captured if all that it reads on the host
    can be checked before each replay. `graph=False` keeps it eager. `graph=True` is the caller's word that what cannot be
    checked, as `report()` names it, does not change.
    """
    if not callable(function):
        raise TypeError(f"sluice.stage: {function!r} was given, expected a callable")
    return Stage(function, name or getattr(function, "__name__", type(function).__name__), stream, priority, graph)


class RunningStage:
    """A stage with its stream, and what it made for the batches that are under way."""

    def __init__(self, given: Stage, device: Device, slots: int) -> None:
        self.given = given
        self.name = given.name
        self.device = device
        self.stream = device.stream(given.priority) if given.stream is None else device.taken_stream(given.stream)
        self.done = [device.event() for _ in range(slots)]
        self.outputs: list[Any] = [None] * slots
        self.made: list[list[weakref.ref]] = [[] for _ in range(slots)]
        self.batches = [-1] * slots
        self.graphs = StageGraphs(given, device, slots)

    def run(self, batch: int, slot: int, inputs: Any, stream: Any, graphed: bool, is_last: bool) -> Any:
        """Enqueues the stage on `stream`, which waits already for what it reads and for the readers of its slot."""
        self.release(slot, is_last)
        self.batches[slot] = batch
        try:
            with self.device.on(stream):
                if graphed:
                    outputs, fixed = self.graphs.run(slot, stream, inputs)
                    if is_last and fixed:  # the next replay overwrites them
                        outputs = self.graphs.copied(outputs)
                else:
                    outputs, fixed = call(self.given.function, inputs), False
        except StageError:
            raise
        except Exception as error:
            raise stage_error(self.name, batch, error) from error
        if not fixed and not is_last:
            self.made[slot] = [weakref.ref(tensor) for tensor in tensors_of(outputs)]
            self.forget(slot, tensors_of(inputs))
        self.outputs[slot] = outputs
        self.device.record(self.done[slot], stream)
        return outputs

    def release(self, slot: int, is_last: bool) -> None:
        """Frees what was made for the batch before. The stream whose memory it is waits for its readers by now."""
        self.outputs[slot] = None
        made, self.made[slot] = self.made[slot], []
        if any(reference() is not None for reference in made):
            raise RuntimeError(f"stage '{self.name}', batch {self.batches[slot]}: a tensor that it returned is still held, and "
                               "its batch is over; expected stages to keep a clone() of what is to be kept")

    def forget(self, slot: int, tensors: list[Any]) -> None:
        """Tensors that are no longer this stage's to look after."""
        if self.made[slot]:
            self.made[slot] = [made for made in self.made[slot] if not any(made() is tensor for tensor in tensors)]

    def clear(self) -> None:
        """After all work is done."""
        self.outputs = [None] * len(self.outputs)
        self.made = [[] for _ in self.made]
