"""Random numbers that the loop's body draws as what runs ahead of it does: they come in another order than in a plain loop."""

from __future__ import annotations

import ctypes
import random
import sys
from typing import Any, Generator, Iterator

import torch

from sluice.arguments import warn
from sluice.pipelines.holders import is_transformed

LOOKS = 4  # batches of an iteration
PYTORCH, PYTHON, NUMPY, DEVICE = "PyTorch's generator of the CPU", "Python's random", "NumPy's random", "PyTorch's generator of the device"


def bits_of(state: torch.Tensor) -> bytes:
    """Without an operation, which a mode around the loop would see, such as one of fake tensors."""
    return ctypes.string_at(state.data_ptr(), state.numel())


def states(device: torch.device) -> dict[str, Any]:
    found: dict[str, Any] = {PYTORCH: bits_of(torch.get_rng_state()), PYTHON: random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        state = numpy.random.get_state(legacy=False)
        found[NUMPY] = repr(state["state"].get("pos")), bytes(memoryview(state["state"]["key"])) if "key" in state["state"] else repr(state)
    if device.type == "cuda":
        found[DEVICE] = bits_of(torch.cuda.default_generators[device.index].get_state())
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name, state in after.items() if name in before and before[name] != state}


def heeded(results: Generator, device: torch.device, owner: str, ahead: str) -> Iterator[Any]:
    """The same results. What is drawn before the first of them, such as a sampler's seed, is drawn there in a plain loop, too."""
    inside: set[str] = set()
    body: set[str] = set()
    before: dict[str, Any] = {}
    try:
        for _ in () if is_transformed() else range(LOOKS):  # whose tensors of states have no memory
            try:
                result = next(results)
            except StopIteration:
                return
            then = states(device)
            inside |= changed(before, then)
            yield result
            del result
            before = states(device)
            body |= changed(then, before)
            for name in sorted(inside & body):
                warn(f"sluice.{owner}: the loop's body draws from {name}, as {ahead}: these numbers are others than in a plain loop; "
                     "expected a generator of its own for one of them")
                yield from results
                return
        yield from results
    finally:
        results.close()
