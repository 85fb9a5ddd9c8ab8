"""Runs ordinary training scripts by a plain loop, by each schedule and with prefetch, and compares all that they keep, bit by bit.

    python3 examples/pytorch/tests/trainings/run.py cuda -j 12             all of them on a GPU, two minutes on 16 cores
    python3 examples/pytorch/tests/trainings/run.py graphing loops/ gru    on a CPU with pretended graphs, those with such names

A script has `pipeline(*stages)`, `keep(value)`, `run_epochs(run, loader, epochs)`, which keeps what a pipeline yields, `device`, and `N`,
the number of batches. Its comments may say `schedules: …` (of those below), `refused: …` (those that must end with an error),
`batches: …` (the least N), `cuda only`, and `raises` where the plain loop does. Prints a line for each script:

    PASS      every way kept what the plain loop kept
    DIFF      a way kept something else, and did not say so
    RAISED    a way ended with an error where the plain loop did not: to be read, and looked for in the guide
    NONDET    two plain loops differ: the script is to be mended
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import hashlib
import os
import pathlib
import random
import re
import signal
import sys
import time
import traceback
import types
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch.utils._pytree import tree_map

import sluice

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ["serial", "overlapped", "graphed", "automatic", "prefetch"]


def moved(tree, device: str):
    """A batch on the device, as a plain training loop moves it."""
    if isinstance(tree, torch.Tensor):
        return tree.to(device, copy=True)
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(tree).copy()).to(device)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[moved(value, device) for value in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)(moved(value, device) for value in tree)
    if all(hasattr(tree, name) for name in ("data", "to", "keys")):  # transformers.BatchEncoding
        new = copy.copy(tree)
        new.data = {key: moved(value, device) for key, value in tree.items()}
        return new
    if isinstance(tree, dict):
        return type(tree)((key, moved(value, device)) for key, value in tree.items())
    if dataclasses.is_dataclass(tree):
        fields = {field.name: moved(getattr(tree, field.name), device) for field in dataclasses.fields(tree)}
        return dataclasses.replace(tree, **fields)
    return tree


class PlainLoop:
    """What `sluice.pipeline` returns, as a loop by hand; with `ahead`, over batches of `sluice.prefetch`."""

    def __init__(self, stages, device: str, ahead: bool):
        self.stages, self.device, self.ahead = stages, device, ahead
        self.loaders: dict = {}
        self.begun = 0

    def __call__(self, loader):
        self.begun = 0
        if self.ahead:  # one for each loader, which is kept so that its id stays its own
            ahead = self.loaders.setdefault(id(loader), (sluice.prefetch(loader, self.device), loader))[0]
        for batch in ahead if self.ahead else loader:
            self.begun += 1
            yield self.work(batch if self.ahead else moved(batch, self.device))

    def work(self, batch):
        for stage in self.stages:
            function = stage.function if isinstance(stage, sluice.Stage) else stage
            batch = function(*batch) if type(batch) in (tuple, list) else function(batch)
        return batch

    def sync(self) -> int:
        return self.begun

    def report(self):
        return None


def bits(value, found: list) -> None:
    """Appends what identifies a value: of a tensor its type, shape and bytes."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.is_sparse:
            tensor = tensor.coalesce()
            bits([tensor.indices(), tensor.values()], found)
        elif tensor.is_nested:
            bits(list(tensor.unbind()), found)
        else:
            tensor = tensor.int_repr() if tensor.is_quantized else tensor
            flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.cpu().reshape(-1))
            read = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
            total = flat.float().sum().item() if flat.numel() and not flat.is_complex() else 0.0
            found.append((f"{tensor.dtype}{tuple(tensor.shape)}", hashlib.md5(read).hexdigest(), total))
    elif isinstance(value, np.ndarray):
        bits(torch.from_numpy(np.ascontiguousarray(value)), found)
    elif callable(getattr(value, "items", None)):
        for key, each in value.items():
            found.append((str(key), "", 0.0))
            bits(each, found)
    elif isinstance(value, (list, tuple)):
        for each in value:
            bits(each, found)
    elif dataclasses.is_dataclass(value):
        bits([getattr(value, field.name) for field in dataclasses.fields(value)], found)
    else:
        found.append((value.hex() if isinstance(value, float) else repr(value), "", 0.0))


def copied(value):
    """A value that stays as it is, whatever the loop does to its tensors later."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def made_device(mode: str):
    if mode != "graphing":
        return mode
    sys.path.insert(0, str(HERE.parent))
    from graphing_device import GraphingDevice

    return GraphingDevice()


@dataclasses.dataclass
class Outcome:
    found: list
    error: str
    reports: list
    warned: list


def run_once(path: pathlib.Path, way: str, mode: str, batches: int) -> Outcome:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    device = "cuda" if mode == "cuda" else "cpu"
    kept: list = []
    pipelines: list = []

    def keep(value):
        # What an overlapping pipeline yields is the caller's to keep, so it is not copied there.
        kept.append(value if way in ("overlapped", "graphed", "automatic") else tree_map(copied, value))

    def pipeline(*stages, **options):
        if way in ("plain", "again", "prefetch"):
            pipelines.append(PlainLoop(stages, device, way == "prefetch"))
        else:
            pipelines.append(sluice.pipeline(*stages, schedule=way, device=made_device(mode), **options))
        return pipelines[-1]

    def run_epochs(run, loader, epochs):
        for _ in range(epochs):
            for value in run(loader):
                keep(value)

    module = types.ModuleType(f"training_{path.stem}_{way}")
    sys.modules[module.__name__] = module
    module.__dict__.update(device=device, pipeline=pipeline, keep=keep, run_epochs=run_epochs, N=batches, SCHEDULE=way, __file__=str(path))
    found: list = []
    error = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        except Exception as raised:
            cause = f" <- {type(raised.__cause__).__name__}: {raised.__cause__}" if raised.__cause__ else ""
            error = f"{type(raised).__name__}: {raised}{cause}"[:400]
    if mode == "cuda":
        torch.cuda.synchronize()
    bits(kept, found)
    reports = [report for report in (each.report() for each in pipelines) if report is not None]
    return Outcome(found, error, reports, [str(each.message) for each in warned if "sluice" in str(each.message)])


def said_by(report) -> str:
    counts = " ".join(f"{name}:{count}r/{report.eager[name]}e" for name, count in report.replays.items())
    return counts + "".join(f" | {name}: {why}" for name, why in report.refusals.items())


def difference(way: str, of: Outcome, plain: Outcome) -> str:
    at = next((i for i, (a, b) in enumerate(zip(of.found, plain.found)) if a != b), min(len(of.found), len(plain.found)))
    pair = [(each.found[at][0], each.found[at][2]) if at < len(each.found) else None for each in (of, plain)]
    return f"DIFF {way}: value {at} of {len(of.found)} is {pair[0]}, expected {pair[1]} of {len(plain.found)}; warned: {of.warned[:1]}"


def compare(path: pathlib.Path, mode: str, batches: int, verbose: bool) -> str:
    """The line of a script, and what the pipelines said."""
    text = path.read_text()
    listed = re.search(r"# schedules: (.*)", text)
    refused = re.search(r"# refused: (.*)", text)
    refusing = refused.group(1).split() if refused else []
    least = re.search(r"# batches: (\d+)", text)
    batches = int(least.group(1)) if least else batches
    if "# cuda only" in text and mode != "cuda":
        return "SKIPPED: needs CUDA"
    plain = run_once(path, "plain", mode, batches)
    if plain.error and "# raises" not in text:
        return f"BROKEN, the plain loop: {plain.error}"
    lines, notes = [], []
    if run_once(path, "again", mode, batches).found != plain.found:
        lines.append("NONDET")
    for way in listed.group(1).split() if listed else WAYS:
        outcome = run_once(path, way, mode, batches)
        if way in refusing:
            lines += [] if outcome.error else [f"DIFF {way}: expected an error"]
        elif outcome.error and outcome.error != plain.error:
            lines.append(f"RAISED {way}: {outcome.error}")
        elif outcome.found != plain.found:
            lines.append(difference(way, outcome, plain))
        if way in ("graphed", "automatic"):
            notes += [f"    {way}: {said_by(report)[:700]}" for report in outcome.reports]
        notes += [f"    {way} warned: {warning[:300]}" for warning in outcome.warned[:1]]
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()
    result = f"{' && '.join(lines) or 'PASS'} ({len(plain.found)} values)"
    return "\n".join([result, *(notes if verbose or lines else [])])


def begin(path: pathlib.Path, options) -> tuple[int, int]:
    """A process that compares one script. Returns its number and where its line comes from."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            text = compare(path, options.mode, options.batches, options.verbose)
        except BaseException as raised:
            text = f"BROKEN: {raised!r} {traceback.format_exc()[-600:]}"
        os.write(write, text.encode()[:60000])
        os._exit(0)
    os.close(write)
    return process, read


def end(process: int, read: int, is_late: bool) -> str:
    if is_late:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
    os.set_blocking(read, False)
    try:
        text = os.read(read, 70000).decode(errors="replace")
    except BlockingIOError:
        text = ""
    os.close(read)
    return text or ("TIMEOUT" if is_late else "CRASHED")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["cpu", "graphing", "cuda"])
    parser.add_argument("names", nargs="*", help="regular expressions of paths; all where none is given")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-n", "--batches", type=int, default=40)
    parser.add_argument("-t", "--seconds", type=float, default=60, help="for each script")
    parser.add_argument("-v", "--verbose", action="store_true", help="what was replayed, and why not")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    queue = [path for path in sorted(HERE.glob("*/*.py"))
             if not options.names or any(re.search(name, str(path.relative_to(HERE))) for name in options.names)]
    running, passed, count = {}, 0, len(queue)
    while queue or running:
        while queue and len(running) < options.jobs:
            path = queue.pop(0)
            process, read = begin(path, options)
            running[process] = (path, read, time.monotonic())
        time.sleep(0.05)
        for process, (path, read, begun) in list(running.items()):
            is_running = os.waitpid(process, os.WNOHANG)[0] == 0
            if is_running and time.monotonic() - begun <= options.seconds:
                continue
            text = end(process, read, is_running)
            del running[process]
            passed += text.startswith("PASS")
            print(f"{path.relative_to(HERE)}: {text}", flush=True)
    print(f"{passed} of {count} passed")
    return 0 if passed == count else 1


if __name__ == "__main__":
    sys.exit(main())
