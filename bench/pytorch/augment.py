#!/usr/bin/env python3
"""The augmentation experiment in PyTorch, to run beside examples/gpu_augment and bench/augment on the same machine.

Images of 3 × 256 × 256 bytes; each gets parameters of its own: to float32, a crop of 128 × 128, resized to 256 × 256, turned
by up to 45 degrees, blurred by 7 × 7 weights of a sigma from 0.1 to 2, normalised. Parts:

- `operators`: the chain on the GPU, in microseconds a batch. `published` crops through `roi_align` and turns image by image;
  `torchvision` is its batched transforms, which draw one set of parameters for the whole batch; `exact` computes crop,
  resize and rotation of the published chain as one expression, `affine` as one bilinear `grid_sample`, both with the blur
  as shifted products and sums; both also compiled, whole and in stages. Back to back, and as CUDA graphs. Drawing the
  parameters counts in the first two.
- `processor`: torchvision on the CPU, in images a second: one process with one thread, and a loader with workers.
- `training`: steps a second of the experiment's classifier alone, with augmentation in the loader's workers (`workers`), on
  the GPU in the training stream (`serial`), and in a stream of its own, batch N+1 while batch N trains (`two-streams`).

In the published two-stream loop nothing keeps a batch from being overwritten or freed while it is read; here each stream
waits for what it reads, and memory is marked as used by the stream that reads it.

    python3 bench/pytorch/augment.py --part operators --batch 32 256 --json augment.json
"""

from __future__ import annotations  # some name what may be missing

import argparse
import itertools
import json
import statistics
import time
from typing import Callable, Iterator, Optional

try:
    import torch
    from torch import nn
except ImportError:  # `missing` says so
    pass

from augment_chains import (SIZE, Parameters, affine_sample, chain_of, check, compiled, exact_sample, missing, published,
                            transforms)
from captured import Work, captured, require

CHANNELS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
CLASSES = 10


class Table:
    """Measures rates, prints them as they come, and keeps them."""

    def __init__(self, seconds: float, only: Optional[list[str]]) -> None:
        self.seconds, self.only = seconds, only
        self.runs: list[dict] = []
        self.left_out: list[dict] = []

    def wants(self, name: str) -> bool:
        return self.only is None or any(text in name for text in self.only)

    def line(self, part: str, name: str, batch: int, run: Callable[[int], object], steps: int = 0) -> None:
        """`run(steps)` is timed until the device is done, three times or more; by itself it finds how many steps fit."""
        if not self.wants(name):
            return
        try:
            if steps == 0:
                run(2)
                torch.cuda.synchronize()
                start = time.perf_counter()
                run(2)
                torch.cuda.synchronize()
                steps = max(2, int(2 * self.seconds / 3 / (time.perf_counter() - start)))
            times = []
            for _ in range(3):
                torch.cuda.synchronize()
                start = time.perf_counter()
                run(steps)
                torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / steps)
        except Exception as error:  # a variant that this PyTorch cannot do
            torch.cuda.synchronize()
            sentence = (str(error).strip() or type(error).__name__).splitlines()[0][:150]
            self.left_out.append({"part": part, "variant": name, "batch": batch, "reason": sentence})
            print(f"{part:10} {name:26} {batch:5}  left out: {sentence}", flush=True)
            return
        middle = statistics.median(times)
        self.runs.append({"part": part, "variant": name, "batch": batch, "step_microseconds": 1e6 * middle,
                          "least": 1e6 * min(times), "most": 1e6 * max(times), "steps_per_second": 1 / middle,
                          "images_per_second": batch / middle})
        print(f"{part:10} {name:26} {batch:5} {1e6 * middle:12.1f} us {1 / middle:10.1f} /s "
              f"{batch / middle:12.0f} images/s", flush=True)


def repeated(work: Work) -> Callable[[int], None]:
    def run(steps: int) -> None:
        for _ in range(steps):
            work()

    return run


def measure_operators(table: Table, batch: int) -> None:
    images = torch.randint(0, 256, (batch, 3, SIZE, SIZE), dtype=torch.uint8, device="cuda")
    given = Parameters(batch, "cuda")
    table.line("operators", "published", batch, repeated(lambda: published(images, Parameters(batch, "cuda"))))
    whole = transforms()
    table.line("operators", "torchvision", batch, repeated(lambda: whole(images)))
    for name, sample in (("exact", exact_sample), ("affine", affine_sample)):
        for kind, make in (("eager", lambda: chain_of(sample)), ("compiled", lambda: compiled(chain_of(sample))),
                           ("in stages", lambda: chain_of(sample, compiled))):
            full = f"{name}, {kind}"
            if not table.wants(full):
                continue
            chain = make()

            def work() -> torch.Tensor:
                return chain(images, *given.on_device())

            table.line("operators", full, batch, repeated(work))
            table.line("operators", f"{full}, graph", batch, repeated(captured(work)))


class Samples:
    """A data set of random images, augmented one at a time where they are asked for."""

    def __init__(self) -> None:
        self.images = torch.randint(0, 256, (64, 3, SIZE, SIZE), dtype=torch.uint8)
        self.chain = transforms()

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.chain(self.images[index % 64]), index % CLASSES


def loaded(batch: int, workers: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches without end, after those that the workers have put by before they were asked."""
    loader = torch.utils.data.DataLoader(Samples(), batch_size=batch, num_workers=workers, pin_memory=True)
    batches = iter(loader)
    for _ in range(2 * workers):
        next(batches)
    return batches


def rounds(workers: int) -> int:
    """Steps to be timed of a loader, whose workers are done at about the same time: whole rounds of them."""
    return 2 * max(workers, 1)


def measure_processor(table: Table, batch: int, workers: int) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    samples = Samples()
    count = itertools.count()
    table.line("processor", "one thread", 1, repeated(lambda: samples[next(count)]))
    torch.set_num_threads(threads)
    name = f"{workers} workers"
    if table.wants(name):
        batches = loaded(batch, workers)
        table.line("processor", name, batch, repeated(lambda: next(batches)), rounds(workers))


class Training:
    """The classifier, and the three ways to augment what it trains on."""

    def __init__(self, batch: int, chain: str) -> None:
        torch.manual_seed(1)
        layers: list[nn.Module] = [nn.Conv2d(3, CHANNELS[0], 1), nn.ReLU()]
        for index, (narrow, wide) in enumerate(zip(CHANNELS, CHANNELS[1:])):
            layers.append(nn.Conv2d(narrow, wide, 2, stride=2))
            if index + 2 < len(CHANNELS):
                layers.append(nn.ReLU())
        self.model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(CHANNELS[-1], CLASSES)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.loss = nn.CrossEntropyLoss()
        self.batch = batch
        self.chain = chain_of(exact_sample, compiled) if chain == "compiled" else None
        self.images = [torch.randint(0, 256, (batch, 3, SIZE, SIZE), dtype=torch.uint8).pin_memory() for _ in range(4)]
        self.labels = [torch.randint(0, CLASSES, (batch,)).pin_memory() for _ in range(4)]

    def train(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(images), labels).backward()
        self.optimizer.step()

    def augmented(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        images = self.images[step % 4].to("cuda", non_blocking=True)
        labels = self.labels[step % 4].to("cuda", non_blocking=True)
        given = Parameters(self.batch, "cuda")
        with torch.no_grad():
            chosen = self.chain(images, *given.on_device()) if self.chain else published(images, given)
        return chosen, labels

    def serial(self, steps: int) -> None:
        for step in range(steps):
            self.train(*self.augmented(step))

    def two_streams(self, steps: int) -> None:
        augment, train = self.streams
        augment.wait_stream(torch.cuda.current_stream())
        train.wait_stream(torch.cuda.current_stream())

        def produce(step: int) -> tuple:
            with torch.cuda.stream(augment):
                return *self.augmented(step), augment.record_event()

        ready = produce(0)
        for step in range(steps):
            images, labels, done = ready
            with torch.cuda.stream(train):
                train.wait_event(done)
                images.record_stream(train)
                labels.record_stream(train)
                self.train(images, labels)
            if step + 1 < steps:
                ready = produce(step + 1)
        torch.cuda.current_stream().wait_stream(train)

    @property
    def streams(self) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
        if not hasattr(self, "kept"):
            self.kept = torch.cuda.Stream(), torch.cuda.Stream()
        return self.kept


def measure_training(table: Table, batch: int, workers: int, chain: str) -> None:
    training = Training(batch, chain)
    fixed = torch.rand(batch, 3, SIZE, SIZE, device="cuda"), torch.randint(0, CLASSES, (batch,), device="cuda")
    suffix = "" if chain == "published" else f", {chain}"
    table.line("training", "alone", batch, repeated(lambda: training.train(*fixed)))
    count = itertools.count()
    table.line("training", f"augmentation alone{suffix}", batch, repeated(lambda: training.augmented(next(count))))
    table.line("training", f"serial{suffix}", batch, training.serial)
    table.line("training", f"two-streams{suffix}", batch, training.two_streams)
    if table.wants("workers") and chain == "published":
        batches = loaded(batch, workers)

        def step() -> None:
            images, labels = next(batches)
            training.train(images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True))

        table.line("training", "workers", batch, repeated(step), rounds(workers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("all", "operators", "processor", "training"), default="all")
    parser.add_argument("--batch", type=int, nargs="+", default=[32], help="one or more sizes")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="variants whose name contains one of these")
    parser.add_argument("--chain", choices=("published", "compiled"), default="published",
                        help="what `serial` and `two-streams` augment with; compiled: `exact` in stages")
    parser.add_argument("--workers", type=int, default=8, help="processes of the loader")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure, about")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    require(missing)

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    table = Table(arguments.seconds, arguments.only)
    wanted = [arguments.part] if arguments.part != "all" else ["operators", "processor", "training"]
    if "operators" in wanted:
        check()
    for batch in arguments.batch:
        if "operators" in wanted:
            measure_operators(table, batch)
        if "processor" in wanted:
            measure_processor(table, batch, arguments.workers)
        if "training" in wanted:
            measure_training(table, batch, arguments.workers, arguments.chain)

    if arguments.json:
        report = {"experiment": "gpu_augment", "framework": f"PyTorch {torch.__version__}",
                  "device": torch.cuda.get_device_name(), "runs": table.runs, "left_out": table.left_out}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()
