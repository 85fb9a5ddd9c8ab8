"""What pipelines are made of: streams and events of a CUDA device, or of the CPU, where work is done when it is called."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, ContextManager, Optional, Sequence, Union

import torch

from sluice.arguments import is_integer, shown
from sluice.pipelines.captures import GraphMemory, capture, moved
from sluice.pipelines.compiled import CompiledCopies, CompiledSteps, library
from sluice.pipelines.plan import CALLER, CURRENT, RECORD, RESTORE, Plan, Steps


class CpuDevice:
    """Streams are mere names and everything runs in the order of calls: a pipeline gives the same results as on a GPU, and
    overlaps nothing."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.has_graphs = False
        self.overlaps = False
        self.serial_stream: Any = None

    def stream(self, priority: int = 0) -> Any:
        return object()

    def taken_stream(self, stream: Any) -> Any:
        raise ValueError("sluice.stage: a stream was given in a pipeline of the CPU; expected none")

    def current_stream(self) -> Any:
        return self.serial_stream

    def on(self, stream: Any) -> ContextManager:
        return contextlib.nullcontext()

    def switch(self, stream: Any) -> None:
        """Makes `stream` the current one."""

    def steps(self, plan: Plan, streams: Sequence[Any]) -> Steps:
        """What carries `plan` out."""
        return Steps(self, plan, streams)

    def event(self) -> Any:
        return object()

    def record(self, event: Any, stream: Any) -> None:
        pass

    def wait(self, stream: Any, event: Any) -> None:
        """Work that is enqueued on `stream` from now on comes after what was recorded last."""

    def wait_on_host(self, event: Any) -> None:
        pass

    def copies(self) -> Any:
        """What copies a plain loop's batches by the operators' library, or nothing."""
        return None

    def is_reached(self, event: Any) -> bool:
        return False

    def give_away(self, memory: torch.Tensor, streams: Sequence[Any]) -> None:
        """`memory` may be freed at any time, by its holder, who works on any of `streams`."""

    def synchronize(self) -> None:
        pass

    def release(self) -> None:
        """Gives back memory that is held for later and not in use."""

    def mark(self, stream: Any) -> float:
        """A moment in the stream's work, for `milliseconds`."""
        return time.perf_counter()

    def milliseconds(self, begin: Any, end: Any) -> float:
        return 1e3 * (end - begin)


STREAMS: dict[tuple[int, int], list[torch.cuda.Stream]] = {}  # that are free, by device and priority


class CudaDevice:
    """A GPU: `torch.cuda` streams and events. All calls are made with the device current."""

    def __init__(self, device: torch.device) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        self.has_graphs = self.overlaps = True

    def stream(self, priority: int = 0) -> torch.cuda.Stream:
        stream = torch.cuda.Stream(self.device, priority=priority)  # of PyTorch's pool, which lives as long as the process
        # By its handle, as the library makes it current: one stream is known by one name.
        return stream if library() is None else torch.cuda.ExternalStream(stream.cuda_stream, self.device)

    def switch(self, stream: torch.cuda.Stream) -> None:
        torch.cuda.set_stream(stream)

    def steps(self, plan: Plan, streams: Sequence[torch.cuda.Stream]) -> Steps:
        calls = library()
        return CudaSteps(self, plan, streams) if calls is None else CompiledSteps(calls, self.device.index, plan, streams)

    def copies(self) -> Optional[CompiledCopies]:
        calls = library()
        return None if calls is None or calls.alone is None else CompiledCopies(calls, self.device.index, self.device)

    def taken_stream(self, stream: Any) -> torch.cuda.Stream:
        """A stream of the caller's: PyTorch's own, one with `__cuda_stream__` (another library's), or a handle."""
        if isinstance(stream, torch.cuda.Stream):
            taken = stream
        elif hasattr(stream, "__cuda_stream__"):
            taken = torch.cuda.ExternalStream(stream.__cuda_stream__()[1], self.device)
        elif isinstance(stream, int) and stream > 2:  # 0, 1 and 2 name default streams
            taken = torch.cuda.ExternalStream(stream, self.device)
        else:
            raise ValueError(f"sluice.stage: the stream is {shown(stream)}; expected a torch.cuda.Stream, an object with "
                             "__cuda_stream__, or the handle of a stream that is not a default one")
        if taken.device != self.device:
            raise ValueError(f"sluice.stage: the stream is one of {taken.device}, expected {self.device}, the pipeline's")
        return taken

    def current_stream(self) -> torch.cuda.Stream:
        return torch.cuda.current_stream(self.device)

    def on(self, stream: torch.cuda.Stream) -> ContextManager:
        return torch.cuda.stream(stream)

    def event(self) -> torch.cuda.Event:
        return torch.cuda.Event()

    def record(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        event.record(stream)

    def wait(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        stream.wait_event(event)

    def wait_on_host(self, event: torch.cuda.Event) -> None:
        event.synchronize()

    def give_away(self, memory: torch.Tensor, streams: Sequence[torch.cuda.Stream]) -> None:
        if memory.is_cuda:
            for stream in streams:
                memory.record_stream(stream)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def release(self) -> None:
        torch.cuda.empty_cache()

    def mark(self, stream: torch.cuda.Stream) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def milliseconds(self, begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
        return begin.elapsed_time(end)

    def graph_memory(self, shared: bool) -> GraphMemory:
        return GraphMemory(self.device, shared)

    def capture(self, stream: torch.cuda.Stream, work: Callable[[], Any], memory: GraphMemory,
                generators: Sequence[torch.Generator]) -> tuple[Any, Any]:
        """A graph of what `work` enqueues, and what it returned."""
        return capture(self.device, stream, work, memory, generators)

    def random_state(self, generators: Sequence[torch.Generator]) -> Any:
        all_of_them = [torch.default_generator, torch.cuda.default_generators[self.device.index], *generators]
        return [(generator, generator.get_state()) for generator in all_of_them]

    def set_random_state(self, state: Any) -> None:
        for generator, numbers in state:
            moved(generator).set_state(numbers)


class CudaSteps(Steps):
    """The same by PyTorch's own calls, each looked up once: a look-up of a stream or of a device in a batch, and no context."""

    def __init__(self, device: CudaDevice, plan: Plan, streams: Sequence[torch.cuda.Stream]) -> None:
        super().__init__(device, plan, streams)
        self.index = device.device.index
        self.known: dict[Any, torch.cuda.Stream] = {}  # the caller's streams
        base = torch._C._CudaEventBase
        record, wait = ([bound.__get__(event) for event in self.events] for bound in (base.record, base.wait))
        self.reached = [base.query.__get__(event) for event in self.events]
        self.calls: list[list[tuple]] = []  # of each moment; without arguments where that is the caller's stream
        for operations in plan.moments:
            calls: list[tuple] = []
            for operation, event, number in operations:
                if operation == RESTORE:
                    calls.append((self.restore, ()))
                elif operation == CURRENT:
                    calls.append((torch._C._cuda_setStream, self.numbers_of(self.streams[number])))
                else:
                    call = (record if operation == RECORD else wait)[event]
                    calls.append((call, None if number == CALLER else (self.streams[number],)))
            self.calls.append(calls)
        self.back: tuple = ()
        self.back_device = self.index

    @staticmethod
    def numbers_of(stream: torch.cuda.Stream) -> tuple[int, int, int]:
        return stream.stream_id, stream.device_index, stream.device_type

    def is_reached(self, event: int) -> bool:
        return self.reached[event]()

    def look_up(self) -> None:
        self.back = torch._C._cuda_getCurrentStream(self.index)
        self.back_device = torch._C._cuda_getDevice()
        caller = self.known.get(self.back)
        if caller is None:
            number, index, kind = self.back
            caller = self.known[self.back] = torch.cuda.Stream(stream_id=number, device_index=index, device_type=kind)
        self.caller = caller

    def begin(self, moment: int, copied: int) -> None:
        if not self.reached[copied]():
            self.events[copied].synchronize()  # without the interpreter's lock
        self.look_up()
        self.inside = True
        self.run(moment)

    def run(self, moment: int) -> None:
        for call, arguments in self.calls[moment]:
            if arguments is None:
                call(self.caller)
            else:
                call(*arguments)

    def read(self, moment: int) -> None:
        self.look_up()
        self.run(moment)

    def restore(self) -> None:
        if self.inside:
            self.inside = False
            torch._C._cuda_setStream(*self.back)
            if self.back_device != self.index:
                torch._C._cuda_setDevice(self.back_device)


Device = Union[CpuDevice, CudaDevice]


def device_of(device: Union[None, int, str, torch.device, Device]) -> Device:
    """CUDA's current device where there is one, unless another is named; a number is one of CUDA's."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if isinstance(device, (CpuDevice, CudaDevice)):
        return device
    try:
        is_number = is_integer(device) and not isinstance(device, bool)  # of NumPy's, too
        named = torch.device("cuda", int(device)) if is_number else torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"sluice: the device is {shown(device)}, expected 'cpu', 'cuda', or the number of a CUDA device") from None
    if named.type == "cpu":
        return CpuDevice()
    if named.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"sluice: the device is '{named}', and PyTorch finds no CUDA device; expected 'cpu'")
        if named.index is not None and named.index >= torch.cuda.device_count():
            raise ValueError(f"sluice: the device is '{named}', expected one below {torch.cuda.device_count()}, which PyTorch finds")
        return CudaDevice(named)
    raise ValueError(f"sluice: the device is '{named}', expected 'cpu' or 'cuda'")


def seconds_of(device: Device) -> float:
    """The time when all that was enqueued is done."""
    device.synchronize()
    return time.perf_counter()
