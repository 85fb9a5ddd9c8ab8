"""Whether a schedule gives the bits of a serial run."""

from __future__ import annotations

import copy
import itertools
import random
import sys
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch
from torch.utils import _pytree as pytree

from sluice.arguments import counted, shown
from sluice.pipelines.intake import require_batches
from sluice.pipelines.refusals import require_copies
from sluice.pipelines.trees import as_tensor, leaves_of, map_batch, same_bits


class VerifyError(RuntimeError):
    """Results of a schedule that are not those of a serial run."""


def copied(tree: Any) -> Any:
    """Arrays become tensors in it."""
    return map_batch(lambda tensor: tensor.detach().clone(), tree)


def taken(index: int, batch: Any, work: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A loader's batch of copies."""
    try:
        return map_batch(work, batch)
    except Exception:
        require_copies(index, batch, torch.device("cpu"))
        raise


def apart(tensor: torch.Tensor) -> torch.Tensor:
    """One that leads back to no other, and requires a gradient where that does."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def difference(found: Any, expected: Any) -> str:
    """What differs, or nothing."""
    first, second = list(leaves_of(found)), list(leaves_of(expected))
    if len(first) != len(second):
        return f"{counted(len(first), 'value')} in place of {len(second)}"
    for place, (a, b) in enumerate(zip(map(as_tensor, first), map(as_tensor, second))):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            if not same_bits(a, b):
                return f"value {place}, a tensor of shape {list(a.shape)}"
        elif not same_value(a, b):
            return f"value {place}, {shown(a)} in place of {shown(b)}"
    return ""


def same_value(a: Any, b: Any) -> bool:
    """NaN is NaN, wherever it comes from; arrays are compared as a whole."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return False
    try:
        return bool(a == b) or bool(a != a and b != b)
    except Exception:  # of an object's own, too
        return shown(a) == shown(b)


class Saved:
    """What an object with `state_dict` held. It is put back in place where it can be: graphs, and others who hold these
    tensors, go on with them."""

    def __init__(self, named: Any) -> None:
        self.named = named
        self.state = copy.deepcopy(named.state_dict())
        self.gradients = [(tensor, tensor.grad, None if tensor.grad is None else tensor.grad.clone())
                          for tensor in self.parameters()]

    def parameters(self) -> list[torch.Tensor]:
        if isinstance(self.named, torch.nn.Module):
            return list(self.named.parameters())
        if isinstance(self.named, torch.optim.Optimizer):
            return [tensor for group in self.named.param_groups for tensor in group["params"]]
        return []

    def put_back(self) -> None:
        in_place = isinstance(self.named, (torch.nn.Module, torch.optim.Optimizer)) and self.copied_in_place()
        if not in_place:
            self.named.load_state_dict(self.state)
        with torch.no_grad():
            for tensor, gradient, values in self.gradients:
                tensor.grad = gradient
                if gradient is not None:
                    gradient.copy_(values)

    def copied_in_place(self) -> bool:
        now, then = pytree.tree_flatten(self.named.state_dict()), pytree.tree_flatten(self.state)
        if now[1] != then[1]:
            return False
        for a, b in zip(now[0], then[0]):
            tensors = isinstance(a, torch.Tensor), isinstance(b, torch.Tensor)
            if any(tensors) and not (all(tensors) and a.shape == b.shape and a.dtype == b.dtype) or (
                    not any(tensors) and not same_value(a, b)):
                return False
        with torch.no_grad():
            for a, b in zip(now[0], then[0]):
                if isinstance(a, torch.Tensor):
                    a.detach().copy_(b)
        return True


class Verification:
    """The first batches of an iteration, run serially before."""

    def __init__(self, state: Sequence[Any], batches: int) -> None:
        self.state = state
        self.batches = batches
        self.expected: list[Any] = []
        self.failure = ""  # of the batch behind these

    def serially(self, pipeline: Any, source: Iterator[Any]) -> Iterator[Any]:
        """Runs the first batches one stage after the other; returns all batches again, with the state as it was."""
        from sluice.pipelines.trees import call

        held = [taken(index, batch, torch.clone) for index, batch in enumerate(itertools.islice(source, self.batches))]
        saved = [Saved(named) for named in self.state]
        numbers = self.random_state()
        self.expected, self.failure = [], ""
        try:
            for batch in held:
                try:
                    data = map_batch(lambda tensor: apart(tensor).to(pipeline.device.device, copy=True), batch)
                    for running in pipeline.stages:
                        data = call(running.given.function, data)
                except Exception as error:  # the loop comes to that batch, too
                    self.failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
                    break
                self.expected.append(copied(data))
        finally:
            pipeline.device.synchronize()
            for state in saved:
                state.put_back()
            self.restore(numbers)
        pipeline.enter()
        return itertools.chain(held, source)

    def compare(self, index: int, result: Any) -> None:
        if self.failure and index == len(self.expected):
            raise VerifyError(f"batch {index} raised {self.failure} in a serial run before, and did not here; expected the same: a stage "
                              "keeps state that `state` does not name")
        if index < len(self.expected):
            what = difference(result, self.expected[index])
            if what:
                raise VerifyError(f"batch {index} differs from a serial run in {what}; expected the same bits: a stage keeps "
                                  "state that `state` does not name, is not deterministic, or works beside its stream")

    def require_all(self, handed: int) -> None:
        if handed < len(self.expected):
            raise VerifyError(f"{counted(handed, 'result')} came for {counted(len(self.expected), 'batch')}; expected one each")

    @staticmethod
    def random_state() -> Any:
        """PyTorch's, Python's, and NumPy's where a program has that."""
        numpy = sys.modules.get("numpy.random")
        return (torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [], random.getstate(),
                None if numpy is None else numpy.get_state())

    @staticmethod
    def restore(numbers: Any) -> None:
        torch.set_rng_state(numbers[0])
        if numbers[1]:
            torch.cuda.set_rng_state_all(numbers[1])
        random.setstate(numbers[2])
        if numbers[3] is not None:
            sys.modules["numpy.random"].set_state(numbers[3])


def verify_schedules(make: Callable[[str], Any], batches: Iterable,
                     schedules: Sequence[str] = ("serial", "overlapped", "graphed")) -> dict[str, int]:
    """Calls `make(schedule)` for each schedule, which returns a pipeline from the same start each time, runs it over
    `batches`, and raises `VerifyError` where a result differs in a bit from those of the first schedule. Returns how many
    results each had. Raises `ValueError` where nothing would be compared: for fewer than two schedules, or no batch."""
    require_batches("verify_schedules", batches)
    if not callable(make):
        raise TypeError(f"sluice.verify_schedules: make is {shown(make)}, expected a callable that makes a pipeline of a schedule")
    if isinstance(schedules, str) or not isinstance(schedules, Sequence) or len(schedules) < 2:
        raise ValueError(f"sluice.verify_schedules: schedules is {shown(schedules)}, expected two or more to be compared")
    kept = [taken(index, batch, apart) for index, batch in enumerate(batches)]
    if not kept:
        raise ValueError("sluice.verify_schedules: there are no batches, expected at least one to be compared")
    expected: list[Any] = []
    counts = {}
    for place, schedule in enumerate(schedules):
        run = make(schedule)
        if not callable(run) or getattr(run, "schedule", schedule) != schedule:
            raise ValueError(f"sluice.verify_schedules: make({schedule!r}) gave {shown(run)}, expected a pipeline of that schedule")
        results = [copied(result) for result in run(kept)]
        counts[schedule] = len(results)
        if place == 0:
            expected = results
        if len(results) != len(expected):
            raise VerifyError(f"{schedule} gave {counted(len(results), 'result')}, expected {len(expected)}, as {schedules[0]} gave")
        for index, (found, wanted) in enumerate(zip(results, expected)):
            what = difference(found, wanted)
            if what:
                raise VerifyError(f"batch {index} of {schedule} differs from {schedules[0]} in {what}; expected the same bits")
    return counts
