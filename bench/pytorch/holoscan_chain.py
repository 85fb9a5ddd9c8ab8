"""Frames at a pace through chains of two and four small stages: how old a result is when the host has it, by NVIDIA's Holoscan SDK,
by sluice's pipelines for PyTorch, and by a Python loop by hand. All three launch the same kernels through ctypes.

A frame each 200 us, of 4,096 floats: the first stage fills it, each other one adds 1, and the host takes one float of what comes
out, which must be right. Latency is from before the first stage's launch until then. In microseconds, by its middle and its 99th percentile.

- `by hand`: one stream, and a copy that is waited for.
- `sluice`: one iteration over a generator that waits for the last stage's result before it takes the next frame, `serial` and
  `overlapped`; and a call of the pipeline for each frame.
- `Holoscan`: a source on its clock, an operator a stage, tensors from its pool, its scheduler sleeping or polling. Left out where its
  package is missing: Python 3.12 and glibc 2.39, `pip install --no-deps holoscan-core-cu13==5.0.0`, or the wheel unpacked and
  named in PYTHONPATH.

C++ beside by hand is `live_input --part paced`. `--device cpu` shows on a CPU that the script runs.

    python3 bench/pytorch/holoscan_chain.py --frames 5000 --json holoscan.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
from datetime import timedelta
from typing import Any, Callable, Iterator, List, Optional

try:
    import torch
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

FLOATS = 4096
KERNELS = r"""
#include <cuda_runtime.h>
__global__ void fill(float* out, float value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void add(float* out, const float* in) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at] + 1.0F;
}
extern "C" int launch_fill(void* stream, void* out, float value) {
    fill<<<16, 256, 0, (cudaStream_t)stream>>>((float*)out, value);
    return cudaGetLastError();
}
extern "C" int launch_add(void* stream, void* out, const void* in) {
    add<<<16, 256, 0, (cudaStream_t)stream>>>((float*)out, (const float*)in);
    return cudaGetLastError();
}
extern "C" float first(void* stream, const void* in) { // waits for the stream
    static thread_local float* pinned = [] { float* p = nullptr; cudaMallocHost(&p, sizeof(float)); return p; }();
    if (cudaMemcpyAsync(pinned, in, sizeof(float), cudaMemcpyDeviceToHost, (cudaStream_t)stream) != cudaSuccess ||
        cudaStreamSynchronize((cudaStream_t)stream) != cudaSuccess)
        return -1;
    return *pinned;
}
"""


class Cuda:
    """The kernels, on streams and memory by their addresses."""

    device = "cuda"

    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        source, library = os.path.join(folder, "kernels.cu"), os.path.join(folder, "libkernels.so")
        pathlib.Path(source).write_text(KERNELS)
        subprocess.run(["nvcc", "-O2", "-arch=native", "-shared", "-Xcompiler", "-fPIC", source, "-o", library], check=True)
        self.library = ctypes.CDLL(library)
        pointer = ctypes.c_void_p
        self.library.launch_fill.argtypes = [pointer, pointer, ctypes.c_float]
        self.library.launch_add.argtypes = [pointer, pointer, pointer]
        self.library.first.argtypes, self.library.first.restype = [pointer, pointer], ctypes.c_float
        torch.cuda.init()

    def fill(self, stream: int, out: int, value: float) -> None:
        if self.library.launch_fill(stream, out, value):
            raise RuntimeError("fill was not launched")

    def add(self, stream: int, out: int, given: int) -> None:
        if self.library.launch_add(stream, out, given):
            raise RuntimeError("add was not launched")

    def first(self, stream: int, given: int) -> float:
        return self.library.first(stream, given)

    def current_stream(self) -> int:
        return torch.cuda.current_stream().cuda_stream


class Cpu:
    """The same at once, so that the script can be tried."""

    device = "cpu"

    @staticmethod
    def floats(address: int) -> Any:
        return (ctypes.c_float * FLOATS).from_address(address)

    def fill(self, stream: int, out: int, value: float) -> None:
        self.floats(out)[0] = value

    def add(self, stream: int, out: int, given: int) -> None:
        self.floats(out)[0] = self.floats(given)[0] + 1

    def first(self, stream: int, given: int) -> float:
        return self.floats(given)[0]

    def current_stream(self) -> int:
        return 0


class Latencies:
    """Of the frames of one row, on the host's clock."""

    def __init__(self, frames: int, stages: int) -> None:
        self.begun, self.done, self.stages = [0] * frames, [0] * frames, stages
        self.wrong = 0

    def end(self, frame: int, value: float) -> None:
        self.done[frame] = time.perf_counter_ns()
        self.wrong += value != frame + self.stages - 1

    def row(self, name: str, **more: Any) -> dict:
        # The first tenth warms up.
        pairs = [(b, d) for b, d in zip(self.begun, self.done) if b and d][len(self.begun) // 10:]
        sorted_us = sorted((d - b) / 1e3 for b, d in pairs)
        if not sorted_us:
            return {"name": name, "stages": self.stages, "error": "no frame came out", **more}
        return {"name": name, "stages": self.stages, "frames": len(pairs), "wrong": self.wrong,
                "p50_us": round(sorted_us[len(sorted_us) // 2], 1), "p99_us": round(sorted_us[len(sorted_us) * 99 // 100], 1),
                "longest_us": round(sorted_us[-1], 1), **more}


def paced(frames: int, period_us: int) -> Iterator[int]:
    """Their numbers, each in time."""
    begun = time.perf_counter_ns()
    for frame in range(frames):
        due = begun + frame * period_us * 1000
        while time.perf_counter_ns() < due:
            pass
        yield frame


def by_hand(kernels: Any, stages: int, frames: int, period_us: int) -> dict:
    memory = [torch.zeros(FLOATS, device=kernels.device) for _ in range(stages)]
    buffers = [each.data_ptr() for each in memory]
    kept = torch.cuda.Stream() if kernels.device == "cuda" else None
    stream = kept.cuda_stream if kept else 0
    latencies = Latencies(frames, stages)
    for frame in paced(frames, period_us):
        latencies.begun[frame] = time.perf_counter_ns()
        kernels.fill(stream, buffers[0], float(frame))
        for before, out in zip(buffers, buffers[1:]):
            kernels.add(stream, out, before)
        latencies.end(frame, kernels.first(stream, buffers[-1]))
    return latencies.row("by hand, one stream")


def by_sluice(kernels: Any, stages: int, frames: int, period_us: int, schedule: str, call_each: bool) -> dict:
    # Without the operators' library, which the pipelines don't need.
    package = types.ModuleType("sluice")
    package.__path__ = [str(pathlib.Path(__file__).parents[2] / "examples/pytorch/python/sluice")]
    sys.modules.setdefault("sluice", package)
    from sluice.pipelines import pipeline

    last: List[Any] = []

    def fill(value: float) -> Any:
        out = torch.empty(FLOATS, device=kernels.device)
        kernels.fill(kernels.current_stream(), out.data_ptr(), value)
        return out

    def add(given: Any) -> Any:
        out = torch.empty(FLOATS, device=kernels.device)
        kernels.add(kernels.current_stream(), out.data_ptr(), given.data_ptr())
        return out

    def end(given: Any) -> None:
        # The stage's own stream, which the generator waits for.
        last[:] = [kernels.current_stream(), add(given)]

    latencies = Latencies(frames, stages)

    def look(frame: int) -> None:
        stream, out = last
        latencies.end(frame, kernels.first(stream, out.data_ptr()))

    def source() -> Iterator[float]:
        for frame in paced(frames, period_us):
            latencies.begun[frame] = time.perf_counter_ns()
            yield float(frame)
            look(frame)

    run = pipeline(fill, *[add] * (stages - 2), end, schedule=schedule, device=kernels.device)
    if call_each:
        for frame in paced(frames, period_us):
            latencies.begun[frame] = time.perf_counter_ns()
            for _ in run([float(frame)]):
                look(frame)
    else:
        for _ in run(source()):
            pass
    return latencies.row(f"sluice, {schedule}, {'a call a frame' if call_each else 'one iteration'}")


class HoloscanChain:
    """What Holoscan's operators of a chain share."""

    depth = 4  # of a queue

    def __init__(self, kernels: Any, stages: int, frames: int, period_us: int) -> None:
        from holoscan import tensor as ht

        self.kernels, self.stages, self.frames = kernels, stages, frames
        self.period = timedelta(microseconds=period_us)
        self.on_device = kernels.device == "cuda"
        self.tensors, self.floats = ht, ht.DLDataType(2, 32, 1)
        self.kind = ht.MemoryKind.CUDA_DEVICE if self.on_device else ht.MemoryKind.HOST
        self.latencies = Latencies(frames, stages)
        self.refused = self.ticks = self.sunk = 0

    def output(self) -> Any:
        bounds = self.tensors.TensorBounds(max_rank=1, max_shape=[FLOATS], max_byte_span=FLOATS * 4)
        return self.tensors.OutputSpec(storage=self.tensors.OutputStorage.RUNTIME_POOL, memory_kind=self.kind, dtype=self.floats,
                                       rank=1, bounds=bounds)

    def given(self) -> Any:
        return self.tensors.InputSpec(memory_kind=self.kind, dtype=self.floats, rank=1)

    def stream_of(self, context: Any) -> int:
        return context.stream().__cuda_stream__()[1] if self.on_device else 0


def source_of(chain: HoloscanChain, hs: Any) -> type:
    from holoscan.errors import BackpressuredError, HoloscanError

    class Source(hs.Operator):
        out = hs.Output("out", hs.payload.TensorType)

        def __init__(self) -> None:
            super().__init__()
            self.frame = 0

        def setup(self, spec: Any) -> None:
            spec.output(self.out).produces_tensor(chain.output())

        def contract(self) -> Any:
            return hs.Contract().trigger(hs.OnClock(period=chain.period))

        def compute(self, context: Any) -> None:
            chain.ticks += 1
            if self.frame >= chain.frames:
                if self.frame <= chain.sunk or chain.ticks > 60 * chain.frames:
                    context.request_completion()
                return
            if self.frame - chain.sunk >= chain.depth * (chain.stages - 1):  # all queues may be full
                chain.refused += 1
                return
            chain.latencies.begun[self.frame] = time.perf_counter_ns()
            try:
                with self.out.allocate_tensor(shape=[FLOATS], dtype=chain.floats) as loan:
                    chain.kernels.fill(chain.stream_of(context), loan.tensor.data, float(self.frame))
            except HoloscanError as error:  # the queue or the pool is full: the next tick tries again
                if type(error) is not BackpressuredError and "kResourceExhausted" not in str(error):
                    raise
                chain.refused += 1
                return
            self.frame += 1

    return Source


def stages_of(chain: HoloscanChain, hs: Any) -> "tuple[type, type]":
    """The operators between the source and the end, and the one at the end."""

    class Middle(hs.Operator):
        inp = hs.Input("inp", hs.payload.TensorType)
        out = hs.Output("out", hs.payload.TensorType)

        def __init__(self) -> None:
            super().__init__()

        def setup(self, spec: Any) -> None:
            spec.input(self.inp).expects_tensor(chain.given())
            spec.output(self.out).produces_tensor(chain.output())

        def compute(self, context: Any) -> None:
            tensor = self.inp.receive_data()
            with self.out.allocate_tensor(shape=[FLOATS], dtype=chain.floats) as loan:
                chain.kernels.add(chain.stream_of(context), loan.tensor.data, tensor.data)

    class Sink(hs.Operator):
        inp = hs.Input("inp", hs.payload.TensorType)

        def __init__(self) -> None:
            super().__init__()

        def setup(self, spec: Any) -> None:
            spec.input(self.inp).expects_tensor(chain.given())

        def compute(self, context: Any) -> None:
            tensor, stream = self.inp.receive_data(), chain.stream_of(context)
            chain.kernels.add(stream, tensor.data, tensor.data)
            chain.latencies.end(chain.sunk, chain.kernels.first(stream, tensor.data))
            chain.sunk += 1

    return Middle, Sink


def planned(chain: HoloscanChain, hs: Any, polls: bool) -> Any:
    from holoscan import execution as ex

    middle, sink = stages_of(chain, hs)
    graph = hs.Graph("chain", default_clock=hs.RealtimeClock)
    deployment = ex.DeploymentBinding()
    operators = [graph.op(source_of(chain, hs), "source")]
    operators += [graph.op(middle, f"middle{number}") for number in range(chain.stages - 2)]
    if chain.on_device:
        for name in ["source", *(f"middle{number}" for number in range(chain.stages - 2))]:
            deployment = deployment.bind_tensor_output_device(operator_path=name, output_port="out",
                                                              device=ex.DeviceId(0)) or deployment
    for before, after in zip(operators, [*operators[1:], graph.op(sink, "sink")]):
        graph.add_flow(before.out, after.inp, queue_depth=chain.depth)
    if polls:
        graph.partition("all").include_all()
        deployment = deployment.bind_thread_placement(
            "all", ex.ThreadPlacement(wake_mode=ex.WakeMode.BUSY_POLL)) or deployment
    return hs.compile(graph, hs.CompileOptions(deployment=deployment))


def by_holoscan(kernels: Any, hs: Any, stages: int, frames: int, period_us: int, polls: bool) -> dict:
    chain = HoloscanChain(kernels, stages, frames, period_us)
    plan = planned(chain, hs, polls)
    name = f"Holoscan, {'polling' if polls else 'sleeping'}"
    if not plan.ok:
        return {"name": name, "stages": stages, "error": plan.summary()[:1000]}
    session = hs.run_async(plan)
    with session:
        if not session.wait(timeout=10.0 + 3e-6 * frames * period_us):
            session.request_stop()
    if chain.on_device:
        torch.cuda.synchronize()
    return chain.latencies.row(name, refused=chain.refused, ended=str(session.termination))


def main() -> Optional[str]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=5000, help="of each row")
    parser.add_argument("--period", type=int, default=200, help="microseconds from frame to frame")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    if missing is not None:
        return f"{missing}; expected PyTorch 2.11 or later"
    if options.device == "cuda" and not torch.cuda.is_available():
        return "there is no CUDA device; --device cpu tries the script"
    try:
        import holoscan as hs
    except ImportError as error:
        hs = None
        print(f"Holoscan is left out: {error}")
    kernels = Cuda() if options.device == "cuda" else Cpu()
    rows = []

    def show(name: str, stages: int, measure: Callable[[], dict]) -> None:
        try:
            row = measure()
        except Exception as error:  # the other rows are worth having
            row = {"name": name, "stages": stages, "error": repr(error)[:1000]}
        rows.append(row)
        if "error" in row:
            print(f"{stages} stages, {row['name']}: {row['error']}", flush=True)
        else:
            print(f"{stages} stages, {row['name']:<36} p50 {row['p50_us']:8.1f}  p99 {row['p99_us']:8.1f}  "
                  f"longest {row['longest_us']:9.1f}  of {row['frames']}, wrong {row['wrong']}", flush=True)

    for stages in (2, 4):
        run = (stages, options.frames, options.period)
        show("by hand", stages, lambda: by_hand(kernels, *run))
        for schedule, call_each in (("serial", False), ("overlapped", False), ("serial", True)):
            show("sluice", stages, lambda: by_sluice(kernels, *run, schedule, call_each))
        for polls in (False, True) if hs is not None else ():
            show("Holoscan", stages, lambda: by_holoscan(kernels, hs, *run, polls))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return "a result is wrong" if any(row.get("wrong") for row in rows) else None


if __name__ == "__main__":
    sys.exit(main())
