"""A device of the CPU with the library's functions of CUDA's streams over a pretended CUDA, see pretended_cuda.cpp."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sluice.pipelines.compiled import UNHANDLED, CompiledSteps, Library
from sluice.pipelines.devices import CpuDevice
from sluice.pipelines.report import Times


def built(folder: Path) -> Path:
    """The library's functions over a pretended CUDA."""
    compiler = shutil.which("c++") or shutil.which("g++")
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    if compiler is None or not (toolkit / "cuda_runtime_api.h").exists():
        pytest.skip("there is no compiler, or no CUDA header")
    path = folder / "pretended.so"
    torch_headers = Path(torch.__file__).parent / "include"
    source = Path(__file__).parent / "pretended_cuda.cpp"
    if not (source.parent.parent / "src").exists():
        pytest.skip("the tests are not in sluice's repository")
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-DUSE_CUDA", "-DTORCH_TARGET_VERSION=0x020b000000000000",
                    "-isystem", str(torch_headers), "-isystem", str(toolkit), str(source), "-Wl,-Bsymbolic", "-o", str(path),
                    str(torch_headers.parent / "lib" / "libtorch_cpu.so")], check=True)
    return path


class Pretended(CpuDevice):
    """Tensors of the CPU, with the library's whole batches over a pretended CUDA."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.calls, self.pretended, self.made, self.given = Library(path), ctypes.CDLL(str(path)), 1000, []
        self.pretended.pretended_notes.restype = ctypes.c_char_p
        self.unhandled = self.handled = 0
        whole = self.calls.overlapped

        def counted(*arguments):
            result = whole(*arguments)
            self.unhandled += result is UNHANDLED
            self.handled += result is not UNHANDLED
            return result

        self.calls.overlapped = counted

    def stream(self, priority: int = 0) -> SimpleNamespace:
        self.made += 1
        return SimpleNamespace(cuda_stream=self.made)

    def current_stream(self) -> int:
        return self.pretended.pretended_state() // 10

    def steps(self, plan, streams) -> CompiledSteps:
        return CompiledSteps(self.calls, 1, plan, streams)

    def give_away(self, memory, streams) -> None:
        self.given.append(memory.data_ptr())


def do_by_library(monkeypatch: pytest.MonkeyPatch, kind: type, path: Path) -> list[bool]:
    """Devices of `kind` have their batches done by the library, from the first on. Returns a list to which whole batches of graphs add whether
    the library did them."""
    done: list[bool] = []
    numbers = iter(range(1000, 1 << 30))
    calls = Library(path)
    replays = calls.graphed

    def counted(*arguments: Any) -> Any:
        result = replays(*arguments)
        done.append(result is not UNHANDLED)
        return result

    calls.graphed = counted
    pretended = ctypes.CDLL(str(path))
    pretended.pretended_clear(0)
    pretended.pretended_stream(90, 1)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(kind, "stream", lambda self, priority=0: SimpleNamespace(cuda_stream=next(numbers)))
    monkeypatch.setattr(kind, "current_stream", lambda self: 90)
    monkeypatch.setattr(kind, "steps", lambda self, plan, streams: CompiledSteps(calls, 1, plan, streams))
    monkeypatch.setattr(Times, "begin", lambda self, schedule: False)
    monkeypatch.setattr(Times, "most", property(lambda self: 0, lambda self, value: None), raising=False)
    return done
