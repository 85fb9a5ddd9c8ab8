"""A plan's moments by one call of the operators' library each (src/steps_cuda.cpp), where that was built with CUDA."""

from __future__ import annotations

import ctypes
import functools
import weakref
from pathlib import Path
import sys
import sysconfig
from typing import Any, Optional, Sequence

import torch

from sluice.pipelines.guards import ADDRESS, ANY_AUTOCAST, AUTOCAST, AUTOCAST_TYPE, MODES, STACKS, modes_around
from sluice.pipelines.holders import count, storages_of
from sluice.pipelines.plan import Plan, Steps
from sluice.pipelines.trees import CHILDLESS, call, held_by

NOT_YET = -1
UNHANDLED: Any = object()  # what a function of the library returns for a batch that it leaves to Python
# Their numbers in PyTorch's ABI (c10::ScalarType), and bytes.
TYPES = {dtype: place << 8 | dtype.itemsize for place, dtype in (
    (0, torch.uint8), (1, torch.int8), (2, torch.int16), (3, torch.int32), (4, torch.int64), (5, torch.float16), (6, torch.float32),
    (7, torch.float64), (11, torch.bool), (15, torch.bfloat16))}
DEVICE_TYPES = {"cpu": 0, "cuda": 1}  # in its ABI, too
CONSTANTS = CHILDLESS - {torch.Tensor, torch.nn.Parameter}


class Library:
    """Its functions. Short ones keep the interpreter's lock, since giving it up costs more than they do; `wait` gives it up."""

    def __init__(self, path: Path) -> None:
        short, long = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
        integer, address = ctypes.c_int, ctypes.c_void_p
        integers, addresses = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_void_p)
        self.make = self.function(long.sluice_steps_make, address, integer, integers, integers, integer, addresses, integer, integer)
        self.free = self.function(long.sluice_steps_free, None, address)
        self.begin = self.function(short.sluice_steps_begin, integer, address, integer, integer)
        self.run = self.function(short.sluice_steps_run, integer, address, integer)
        self.read = self.function(short.sluice_steps_read, integer, address, integer)
        self.restore = self.function(short.sluice_steps_restore, integer, address)
        self.wait = self.function(long.sluice_steps_wait, integer, address, integer)
        self.is_reached = self.function(short.sluice_steps_is_reached, integer, address, integer)
        self.message = self.function(short.sluice_steps_message, ctypes.c_char_p, integer)
        self.overlapped: Any = None  # see src/flow.hpp
        self.graphed: Any = None  # and src/replays.hpp
        self.holds: Any = None
        self.prefetched: Any = None  # and src/prefetches.hpp
        self.alone: Any = None
        self.wait_alone: Any = None
        if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
            words = (UNHANDLED, torch.Tensor, tuple, list, CONSTANTS, torch.strided, torch.Tensor.to, {"non_blocking": True}, count,
                     storages_in, call, (), None, self.fail, TYPES, torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs,
                     ADDRESS, MODES, (ANY_AUTOCAST, AUTOCAST, AUTOCAST_TYPE, "cuda", "cpu"), (*STACKS, modes_around), True)
            made = self.function(short.sluice_steps_functions, ctypes.py_object, ctypes.py_object)(words)
            self.overlapped, self.graphed, self.holds, self.prefetched, self.alone, self.wait_alone = made

    def fail(self, error: int) -> None:
        torch.cuda.synchronize()  # PyTorch's own words, if work has failed
        raise RuntimeError(f"sluice.pipeline: CUDA refuses what orders streams: {self.message(error).decode()}")

    @staticmethod
    def function(found: Any, result: Any, *arguments: Any) -> Any:
        found.restype, found.argtypes = result, arguments
        return found


@functools.lru_cache(None)
def library() -> Optional[Library]:
    """Nothing where the package was built for the CPU alone, or runs from its sources."""
    path = Path(__file__).parents[1] / "libsluice_ops_cuda.so"
    if torch.version.cuda is None or not path.exists():
        return None
    try:
        return Library(path)
    except (OSError, AttributeError):  # of another version
        return None


class CompiledCopies:
    """Copies of a plain loop's batches: `bring(batch)`, and `wait()` for the last."""

    def __init__(self, calls: Library, index: int, target: torch.device) -> None:
        with torch.cuda.device(index):
            handle = calls.make(index, None, (ctypes.c_int32 * 1)(0), 0, None, 0, 1)
        if not handle:
            raise RuntimeError("sluice.pipeline: CUDA made no events")
        # As `way_of` in layout.py.
        way = (handle, *[None] * 6, {}, None, target, None, DEVICE_TYPES[target.type], target.index or 0)
        self.bring, self.wait = functools.partial(calls.alone, way), functools.partial(calls.wait_alone, way)
        weakref.finalize(self, calls.free, ctypes.c_void_p(handle))


class CompiledSteps(Steps):
    """`Steps` for streams of CUDA."""

    def __init__(self, calls: Library, index: int, plan: Plan, streams: Sequence[torch.cuda.Stream]) -> None:
        self.calls, self.plan, self.streams = calls, plan, list(streams)  # which live as long
        operations = [number for moment in plan.moments for operation in moment for number in operation]
        first = [0]
        for moment in plan.moments:
            first.append(first[-1] + len(moment))
        handles = [stream.cuda_stream for stream in streams]
        with torch.cuda.device(index):  # on which events are made
            handle = calls.make(index, (ctypes.c_int32 * len(operations))(*operations), (ctypes.c_int32 * len(first))(*first),
                                len(plan.moments), (ctypes.c_void_p * len(handles))(*handles), len(handles), plan.events)
        if not handle:
            raise RuntimeError("sluice.pipeline: CUDA made no events")
        self.handle = ctypes.c_void_p(handle)
        self.step = functools.partial(calls.run, self.handle)
        self.start = functools.partial(calls.begin, self.handle)
        self.batch, self.replays, self.prefetched = calls.overlapped, calls.graphed, calls.prefetched
        weakref.finalize(self, calls.free, self.handle)

    def begin(self, moment: int, copied: int) -> None:
        error = self.start(moment, copied)
        if error:
            self.fail_to_start(error, moment, copied)

    def fail_to_start(self, error: int, moment: int, copied: int) -> None:
        if error == NOT_YET:
            self.wait(copied)
            error = self.start(moment, copied)
        if error:
            self.fail(error)

    def run(self, moment: int) -> None:
        error = self.step(moment)
        if error:
            self.fail(error)

    def read(self, moment: int) -> None:
        error = self.calls.read(self.handle, moment)
        if error:
            self.fail(error)

    def restore(self) -> None:
        error = self.calls.restore(self.handle)
        if error:
            self.fail(error)

    def is_reached(self, event: int) -> bool:
        return self.calls.is_reached(self.handle, event) != 0

    def wait(self, event: int) -> None:
        error = self.calls.wait(self.handle, event)
        if error:
            self.fail(error)

    def fail(self, error: int) -> None:
        self.calls.fail(error)


def storages_in(tree: Any) -> list[Any]:
    """Of all that it holds."""
    return storages_of(held_by(tree))
