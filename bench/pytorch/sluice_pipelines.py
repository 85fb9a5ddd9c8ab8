"""sluice's pipelines for PyTorch beside loops with streams and graphs written by hand, in the same process, on one GPU.

Steps per second, the median of several runs; sluice's schedules take turns.

- `frozen_encoder`: the encoder beside the decoder's training, by batch size, as in frozen_encoder.py. By hand: `serial`,
  `streams`, both also channels-last, and the whole step as one graph, plain and forked, channels-last. By sluice: all four
  schedules, and these channels-last. Weights that sluice's schedules end with are compared bit for bit.
- `augment`: a classifier that trains on augmented images, as in augment.py. By hand: training alone, the published chain
  `serial` and on `two-streams`. By sluice: its operator as a stage of its own, and in the same stage.
- `prefetch`: batches of 3 × 256 × 256 bytes for a step that takes about as long as their copy: a plain loop, a prefetcher by
  hand with `record_stream`, and `sluice.prefetch`. Bits after random delays over three epochs, and memory over 1,000 batches.

`--isolated N` runs sluice's overlapped frozen encoder N times, each in a process of its own, and says how each ended.
`--device cpu --small` shows on a CPU that the script runs.

    python3 bench/pytorch/sluice_pipelines.py --part frozen_encoder --batch 1 2 4 8 16 32 --json pipelines.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from typing import Callable, Iterator

try:
    import torch
    from torch import nn

    import sluice
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

import frozen_encoder
from captured import require
from frozen_encoder import CLASSES, POOL, make_decoder, make_encoder

SCHEDULES = ("serial", "overlapped", "graphed", "automatic")


class Lines:
    """Rates, printed as they come, and kept."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.runs: list[dict] = []

    def add(self, part: str, name: str, batch: int, rates: list[float], **more: object) -> None:
        self.runs.append({"part": part, "name": name, "batch": batch, "steps_per_second": rates, **more})
        notes = "".join(f"  {key} {value}" for key, value in more.items() if not isinstance(value, (list, str)))
        print(f"{part:15} batch {batch:4} {name:34} {statistics.median(rates):9.1f} steps/s  ({min(rates):.1f} to "
              f"{max(rates):.1f}){notes}", flush=True)

    def timed(self, part: str, name: str, batch: int, steps: int, run: Callable[[int], object]) -> None:
        """One way by itself; see `in_turns`."""
        self.in_turns(part, batch, steps, {name: run})

    def in_turns(self, part: str, batch: int, steps: int, ways: dict[str, Callable[[int], object]]) -> None:
        """Each of `ways(steps)` enqueues steps. They take turns, since a machine's host is not as fast at all times; what a
        line compares with the first way is the median of the rounds' ratios. A failure is a line, too."""
        rates: dict[str, list[float]] = {name: [] for name in ways}
        failures: dict[str, str] = {}
        for turn in range(self.repeats + 1):  # the first is not counted
            for name, run in ways.items():
                if name in failures:
                    continue
                try:
                    synchronize()
                    began = time.perf_counter()
                    run(steps)
                    synchronize()
                    if turn > 0:
                        rates[name].append(steps / (time.perf_counter() - began))
                except Exception as error:  # the others go on
                    failures[name] = " ".join(str(error).split())[:150]
        first = next(iter(ways))
        for name in ways:
            if name in failures:
                self.runs.append({"part": part, "name": name, "batch": batch, "failed": failures[name]})
                print(f"{part:15} batch {batch:4} {name:34} failed: {failures[name]}", flush=True)
            elif name == first or first in failures:
                self.add(part, name, batch, rates[name])
            else:
                ratio = statistics.median(mine / other for mine, other in zip(rates[name], rates[first]))
                self.add(part, name, batch, rates[name], ratio=round(ratio, 3))


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def pinned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def device_bytes() -> int:
    if not torch.cuda.is_available():
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free


class FrozenEncoder:
    """The experiment for `sluice.pipeline`: the same weights, batches and arithmetic as frozen_encoder.py's."""

    def __init__(self, device: str, batch: int, last: bool, small: bool) -> None:
        torch.manual_seed(1)
        channels = frozen_encoder.CHANNELS[:5] if small else frozen_encoder.CHANNELS
        side = 2 ** (len(channels) - 1)
        self.layout = torch.channels_last if last else torch.contiguous_format
        with torch.device(device):
            self.encoder = make_encoder(channels).requires_grad_(False).to(memory_format=self.layout)
            self.decoder = make_decoder(channels, CLASSES).to(memory_format=self.layout)
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=1e-3, fused=last)
        self.batches = [(pinned(torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)),
                         pinned(torch.randint(0, CLASSES, (batch, side, side), dtype=torch.uint8))) for _ in range(POOL)]

    def encode(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            return self.encoder(images.float().contiguous(memory_format=self.layout)), labels.long()

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(self.decoder(features).float(), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def loader(self, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return itertools.islice(itertools.cycle(self.batches), steps)


def same_results(lines: Lines, arguments: argparse.Namespace, batch: int, last: bool) -> None:
    """Twelve steps of each schedule from the same weights, with cuDNN's algorithms fixed and deterministic: the weights that
    they end with, bit for bit. PyTorch adds up the loss of an image in no fixed order, so losses may differ by rounding."""
    measuring = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
    weights, losses = [], []
    for schedule in SCHEDULES[:3]:
        experiment = FrozenEncoder(arguments.device, batch, last, arguments.small)
        pipe = sluice.pipeline(experiment.encode, experiment.train, schedule=schedule, device=arguments.device)
        losses.append(torch.stack(list(pipe(experiment.loader(12)))).double())
        synchronize()
        weights.append([parameter.detach() for parameter in experiment.decoder.parameters()])
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = measuring, False
    same = all(torch.equal(a, b) for other in weights[1:] for a, b in zip(weights[0], other))
    apart = max(((other - losses[0]) / losses[0]).abs().max().item() for other in losses[1:])
    lines.runs.append({"part": "frozen_encoder", "name": "the same results", "channels_last": last, "batch": batch,
                       "weights_same": same, "losses_apart": apart})
    print(f"frozen_encoder  batch {batch:4}{', channels-last' if last else ''}: weights after 12 steps of each schedule have the "
          f"same bits: {same}; losses at most {apart:.1e} apart", flush=True)


def run_frozen_encoder(lines: Lines, arguments: argparse.Namespace) -> None:
    for batch in arguments.batch:
        if arguments.device == "cuda":
            for name in ("serial", "streams", "serial-last", "streams-last", "graph", "forked-graph"):
                measured = frozen_encoder.measure({"arrangement": name, "batch": batch, "warmup": 10, "steps": arguments.steps,
                                                   "repeats": lines.repeats})
                lines.add("frozen_encoder", f"by hand, {name}", batch, measured["steps_per_second"])
        for last in (False, True):
            suffix = ", channels-last" if last else ""
            pipes = {}
            for schedule in arguments.only or SCHEDULES:
                experiment = FrozenEncoder(arguments.device, batch, last, arguments.small)
                pipes[schedule] = sluice.pipeline(experiment.encode, experiment.train, schedule=schedule, device=arguments.device)
            lines.in_turns("frozen_encoder", batch, arguments.steps, {
                f"sluice, {schedule}{suffix}": lambda steps, pipe=pipe: list(pipe(experiment.loader(steps)))
                for schedule, pipe in pipes.items()})
            if "automatic" in pipes:
                print(pipes["automatic"].report(), flush=True)
            del pipes, experiment
            same_results(lines, arguments, batch, last)


def run_augment(lines: Lines, arguments: argparse.Namespace) -> None:
    import augment  # needs torchvision

    for batch in arguments.batch:
        training = augment.Training(batch, "published")
        fixed = torch.rand(batch, 3, 256, 256, device="cuda"), torch.randint(0, CLASSES, (batch,), device="cuda")
        samples = [sluice.sample_ids(torch.arange(batch) + batch * i).pin_memory() for i in range(4)]
        loader = list(zip(training.images, samples, training.labels))

        def alone(steps: int) -> None:
            for _ in range(steps):
                training.train(*fixed)

        def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            training.optimizer.zero_grad(set_to_none=True)
            loss = training.loss(training.model(images), labels)
            loss.backward()
            training.optimizer.step()
            return loss.detach()

        def chain(images: torch.Tensor, ids: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return sluice.augment(images, ids), labels

        def both(images: torch.Tensor, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return step(*chain(images, ids, labels))

        lines.timed("augment", "training alone", batch, arguments.steps, alone)
        lines.timed("augment", "by hand, serial", batch, max(arguments.steps // 4, 10), training.serial)
        lines.timed("augment", "by hand, two-streams", batch, max(arguments.steps // 4, 10), training.two_streams)
        for name, stages in (("a stage of its own", (chain, step)), ("in one stage", (both,))):
            for schedule in SCHEDULES:
                pipe = sluice.pipeline(*stages, schedule=schedule)
                lines.timed("augment", f"sluice, {name}, {schedule}", batch, arguments.steps, lambda steps: list(
                    pipe(itertools.islice(itertools.cycle(loader), steps))))


def by_hand(loader: Iterator, device: str) -> Iterator[torch.Tensor]:
    """What many projects have: the next batch on a side stream, its memory marked as used by the other."""
    stream = torch.cuda.Stream()
    ready = None
    for (batch,) in loader:
        with torch.cuda.stream(stream):
            following = batch.to(device, non_blocking=True)
        if ready is not None:
            yield ready
        torch.cuda.current_stream().wait_stream(stream)
        following.record_stream(torch.cuda.current_stream())
        ready = following
    if ready is not None:
        yield ready


def run_prefetch(lines: Lines, arguments: argparse.Namespace) -> None:
    size = 16 if arguments.small else 256
    for batch in arguments.batch:
        data = [(pinned(torch.randint(0, 256, (batch, 3, size, size), dtype=torch.uint8)),) for _ in range(8)]

        def loader(steps: int) -> Iterator:
            return itertools.islice(itertools.cycle(data), steps)

        class Loader:
            def __iter__(self) -> Iterator:
                return loader(arguments.steps)

        once = sluice.prefetch(Loader(), arguments.device)

        def work(x: torch.Tensor) -> torch.Tensor:
            return x.float().mul_(2).sum()

        ways: dict[str, Callable[[Iterator], Iterator[torch.Tensor]]] = {
            "plain loop": lambda source: (b.to(arguments.device, non_blocking=True) for (b,) in source),
            "sluice.prefetch": lambda source: (b for (b,) in once),
        }
        if arguments.device == "cuda":
            ways["by hand, record_stream"] = lambda source: by_hand(source, arguments.device)
        for name, way in ways.items():
            before = device_bytes()

            def run(steps: int, way: Callable = way) -> None:
                for x in way(loader(steps)):
                    work(x)
                    del x

            lines.timed("prefetch", name, batch, arguments.steps, run)
            lines.runs[-1]["device_bytes"] = device_bytes() - before
        ahead = sluice.prefetch([data[i % 8] for i in range(100)], arguments.device)
        wrong = grown = 0
        generator = torch.Generator().manual_seed(1)
        for epoch in range(10 if arguments.device == "cuda" else 1):
            for i, (x,) in enumerate(ahead):
                if epoch < 3:
                    if arguments.device == "cuda":
                        torch.cuda._sleep(int(torch.randint(0, 500_000, (1,), generator=generator)))
                    wrong += not torch.equal(x.cpu(), data[i % 8][0])
            grown = device_bytes() if epoch == 0 else grown
        synchronize()
        print(f"prefetch        batch {batch:4} batches that were wrong: {wrong}; device memory grew by "
              f"{device_bytes() - grown} bytes over the epochs after the first", flush=True)
        lines.runs.append({"part": "prefetch", "name": "bits", "batch": batch, "wrong": wrong, "grown": device_bytes() - grown})


def isolated(arguments: argparse.Namespace) -> list[dict]:
    """Sluice's overlapped loop, each time in a process of its own."""
    ends = []
    for run in range(arguments.isolated):
        command = [sys.executable, __file__, "--once", "--device", arguments.device, "--steps", str(arguments.steps)]
        done = subprocess.run(command + (["--small"] if arguments.small else []), capture_output=True, text=True, check=False)
        ends.append({"code": done.returncode, "losses": done.stdout.strip()[-200:], "error": done.stderr.strip()[-200:]})
        print(f"isolated run {run}: code {done.returncode}, {ends[-1]['losses'] or ends[-1]['error']}", flush=True)
    print(f"all ended alike: {len({(end['code'], end['losses']) for end in ends}) == 1}")
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("all", "frozen_encoder", "augment", "prefetch"), default="all")
    parser.add_argument("--batch", type=int, nargs="+", default=[8])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="schedules of sluice's")
    parser.add_argument("--isolated", type=int, metavar="RUNS", default=0)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.device == "cuda" or missing is not None:
        require(missing)

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    if arguments.once:
        torch.backends.cudnn.benchmark = False  # which chooses by time, and so may sum in another order each run
        experiment = FrozenEncoder(arguments.device, arguments.batch[0], False, arguments.small)
        pipe = sluice.pipeline(experiment.encode, experiment.train, device=arguments.device)
        losses = torch.stack(list(pipe(experiment.loader(arguments.steps)))).tolist()
        print(f"{losses[0]} at first, {losses[-1]} at last")
        return
    lines = Lines(arguments.repeats)
    report = {"experiment": "sluice_pipelines", "framework": f"PyTorch {torch.__version__}",
              "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU", "runs": lines.runs}
    if arguments.isolated:
        report["isolated"] = isolated(arguments)
    else:
        for name, run in (("frozen_encoder", run_frozen_encoder), ("augment", run_augment), ("prefetch", run_prefetch)):
            if arguments.part in ("all", name) and (name != "augment" or arguments.device == "cuda"):
                run(lines, arguments)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()
