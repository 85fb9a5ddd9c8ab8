"""Stages of Python callables over successive batches, each on its stream, ordered by events."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import torch

from sluice.arguments import flag_of, is_integer, named, shown
from sluice.pipelines.chains import Chains
from sluice.pipelines.choice import AutomaticChoice
from sluice.pipelines.devices import Device, device_of
from sluice.pipelines.intake import Intake, checked_slots, require_batches
from sluice.pipelines.iteration import NONE, Iteration, Unasked
from sluice.pipelines.layout import Layout
from sluice.pipelines.memory import Memory
from sluice.pipelines.position import Position
from sluice.pipelines.prefetch import Prefetch
from sluice.pipelines.report import Report, Times
from sluice.pipelines.sharing import Sharing
from sluice.pipelines.stages import RunningStage, Stage, stage as make_stage, streams_of
from sluice.pipelines.submission import Submission
from sluice.pipelines.trees import attribute_of
from sluice.pipelines.verify import Verification

SCHEDULES = ("serial", "overlapped", "graphed", "automatic")


def pipeline(*stages: Union[Callable, Stage], schedule: str = "overlapped", slots: Optional[int] = None,
             device: Union[None, int, str, torch.device, Device] = None, reuse: bool = False, verify: bool = False,
             state: Sequence[Any] = (), timed_batches: int = 64) -> "Pipeline":
    """A pipeline of `stages`: call it with a loader, and iterate over the results of the last stage.

        train = sluice.pipeline(encode, step, schedule="overlapped")
        for loss in train(loader):
            ...

    A stage is a callable, or a `sluice.stage` with options. The first is called with the batch on the device, the others with
    what the one before returned: a tuple or list becomes the arguments, anything else the only one. It enqueues its work on
    the current stream, and need not know which that is. What it keeps of what it was given or returned is
    its own.

    - "serial": a plain loop on the caller's stream. A batch's result comes before the next batch is asked for.
    - "overlapped": each stage on a stream of its own; a stage works on one batch while the next works on the one before.
    - "graphed": the same, each stage captured as a CUDA graph for each slot after a few batches. What the stage read on the host,
      such as a learning rate, is checked before each replay: changed, it runs eagerly until it is captured anew. What
      cannot be checked or captured runs eagerly, a batch of another shape too; `report()` says why.
    - "automatic": runs some batches by each, and goes on with the fastest.

    But for "serial", batches are copied on a stream of their own, `slots` are under way (one more than there are stages, unless
    given), and results come `slots - 1` batches late: what the loop's body changes acts on batches that have not begun. Before
    memory of a batch is used again, its stream waits for all who read it, the consumer of the results too. Results may be kept.
    Of the first batch each stage runs alone, since algorithms that are chosen by measuring, as by cuDNN's benchmark, are chosen
    then. Stages that use a model which one of them changes say so, see `stage`; else that is found in the first batches, which wait
    for each other.

    `reuse=True` is for loaders that refill their own memory. `verify=True` first runs some batches serially, puts back what
    `state` names (modules, optimizers: all with `state_dict`, and random numbers by themselves), runs them as the
    schedule says, and raises `VerifyError` where results differ in a bit. A stage that raises ends the iteration with a
    `StageError`, which names the stage and the batch, after all results before it; the pipeline can be used again.
    """
    return Pipeline(stages, schedule, slots, device, reuse, verify, state, timed_batches)


class Pipeline(Iteration, Submission, Layout):
    """Made by `pipeline`. Here is what it consists of, and what a program asks of it."""

    def __init__(self, stages: Sequence[Union[Callable, Stage]], schedule: str, slots: Optional[int],
                 device: Union[None, int, str, torch.device, Device], reuse: bool, verify: bool, state: Sequence[Any],
                 timed_batches: int) -> None:
        if hasattr(state, "state_dict"):
            state = [state]
        elif hasattr(state, "__iter__"):
            state = list(state)  # an iterator has it once
        require_valid(stages, schedule, state, timed_batches)
        reuse, verify = flag_of("pipeline", "reuse", reuse), flag_of("pipeline", "verify", verify)
        self.schedule = schedule
        self.device = device_of(device)
        self.slots = checked_slots("pipeline", slots, 2, len(stages) + 1)  # the copy is one more
        given = [s if isinstance(s, Stage) else make_stage(s) for s in stages]
        self.stages = [RunningStage(s, self.device, self.slots) for s in given]
        self.intake = Intake(self.device, self.slots, reuse)
        numbers = streams_of(self.stages, self.device)
        self.stream = self.device.stream()  # of the copies
        self.streams = [self.stream, *(running.stream for running in self.stages)]
        self.left = self.device.event()
        self.memory = Memory(self.device, self.streams, self.intake, self.stages)
        self.chains = Chains(self.slots, self.intake, self.stages)  # graphs that the library replays
        self.choice = AutomaticChoice(self.device, self.slots, self.stages) if schedule == "automatic" else None
        self.verification = Verification(state, self.slots * (len(stages) + 4)) if verify else None
        self.times = Times(self.device, [s.name for s in self.stages], timed_batches)
        self.timing = True
        self.position = Position("pipeline")
        self.stages[-1].graphs.is_last = True
        for running in self.stages:
            running.graphs.careful = self.choice is not None
            running.graphs.around = self.stages[0].graphs.around
        # Of the layout.
        self.sharing: Optional[Sharing] = None  # while it is looked for
        self.shared: list[str] = []  # what was found
        self.has_looked = False
        self.apart: Any = None  # what orders stages on streams of their own
        self.together: Any = None  # the same with one stream for all stages, if that may be
        self.votes = 0  # for the other way, one after another
        self.begins: list = []  # either of them
        self.way: Optional[tuple] = None  # that for the operators' library, if it does batches
        self.lay(numbers)
        # Of submissions.
        ends = self.plan.end, self.plan.end_and_read
        self.ends = [[end(slot) for slot in range(self.slots)] for end in ends]
        self.holders = ""  # why there can be no graphs
        # Of iterations.
        self.running = False
        self.begun = 0  # batches of this iteration
        self.pushed: Any = NONE  # a batch that the next schedule begins with
        self.before = 0  # those of iterations before
        self.seconds = 0.0

    def __call__(self, batches: Iterable) -> Iterator[Any]:
        """The results of the last stage, in the order of the batches."""
        self.refuse_another()
        require_batches("pipeline", batches)
        if isinstance(batches, Prefetch) and self.schedule != "serial":
            raise TypeError("sluice.pipeline: the loader is a sluice.prefetch, whose memory has a batch only until the next one; expected "
                            "its loader, since a pipeline copies ahead by itself")
        return self.run(batches, Unasked())

    def report(self) -> Report:
        """What ran how, and how long. Waits for the device."""
        self.chains.credit()
        return Report(self)

    def sync(self) -> int:
        """Waits until all that was begun is done, and returns how many batches of this iteration that are: whatever the stages change,
        such as a model's weights, is what it is after as many steps of a plain loop, until the next result is asked for."""
        self.device.synchronize()
        return self.begun

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is: behind the batches that have begun, which are what the stages' state has seen after `sync()`."""
        return self.position.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration begins where that of `state` was."""
        self.refuse_another()
        self.position.load_state_dict(state)

    @property
    def batches(self) -> int:
        """How many were begun, in all iterations."""
        return self.before + (self.begun if self.running else 0)

    def __repr__(self) -> str:
        names = ", ".join(running.name for running in self.stages)
        return f"sluice.pipeline({names}, schedule='{self.schedule}', slots={self.slots}, device='{self.device.device}')"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("sluice.pipeline: its memory and its streams cannot be copied or pickled; expected another one, "
                        "made by sluice.pipeline(...)")


def lazy_kind(function: Any) -> str:
    """Of what does its work later: on whatever stream is current then, with memory that no one holds for it."""
    while isinstance(function, functools.partial):
        function = function.func
    called = function if isinstance(function, (types.FunctionType, types.MethodType)) else attribute_of(type(function), "__call__")
    is_generator = inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)
    return "coroutine" if inspect.iscoroutinefunction(called) else "generator" if is_generator else ""


def require_valid(stages: Sequence[Any], schedule: str, state: Sequence[Any], timed_batches: int) -> None:
    if not stages:
        raise ValueError("sluice.pipeline: there are no stages, expected at least one callable")
    for given in stages:
        function = given.function if isinstance(given, Stage) else given
        if isinstance(function, Pipeline):  # which returned an iterator that nobody would ask
            raise TypeError(f"sluice.pipeline: a stage is {function!r}, which works on a loader; expected a callable on a batch")
        if kind := lazy_kind(function):
            raise TypeError(f"sluice.pipeline: the stage {shown(function)} is a {kind} function, which does nothing when it is called; "
                            f"expected one without {'async' if kind == 'coroutine' else 'yield'}")
    if schedule not in SCHEDULES:
        raise ValueError(f"sluice.pipeline: schedule is {shown(schedule)}, expected one of {', '.join(SCHEDULES)}")
    if not is_integer(timed_batches) or timed_batches < 0:
        raise ValueError(f"sluice.pipeline: timed_batches is {shown(timed_batches)}, expected an integer of 0 or more")
    if not hasattr(state, "__iter__"):
        raise TypeError(f"sluice.pipeline: state is {shown(state)}, expected a list of modules and optimizers")
    for each in state:
        if not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
            raise TypeError(f"sluice.pipeline: state has {named(type(each))}, expected objects with state_dict() and "
                            "load_state_dict(), such as modules and optimizers")
