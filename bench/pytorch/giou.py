"""The masked GIoU experiment in PyTorch, on the GPU that examples/masked_giou and bench/giou run on.

256 × 256 grey images in batches of 1,024, at most 256 boxes an image, |N(0, 3)| of them, rounded down. Measures the mean of
the article's GIoU over the real boxes, in microseconds:

- `loop`, a loss a sample; `concatenation` of the real boxes; `padding` and a mask, plain and compiled; a kernel by Triton
  that computes every box (`fused`, with and without casts of the predictions to float32 before) or skips those that the
  mask leaves out (`conditional`); `nested`, jagged tensors of torch.nested, where that can do it: the gradient only with a
  tensor for each column.
- Each waiting for every step, back to back, and as a CUDA graph; forward, and forward with the gradient of the predictions.
- The copies of images and targets to the device: separate ones, padded ones, and one packed block.
- The forward pass of the detector in bfloat16, and a step of its training with a given gradient of the boxes and plain
  gradient descent, eager and compiled.

A variant that fails is left out of the table, with the reason. `--quick` leaves out what takes long; `--only NAME` all but
some lines.

    python3 bench/pytorch/giou.py --json giou.json
"""

from __future__ import annotations  # some name what may be missing

import argparse
import json
import statistics
import time
import warnings
from typing import Callable, Optional

try:
    import torch
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import Work, captured, require
from giou_losses import (IMAGE, Batch, article_giou, concatenation_loss, loop_loss, nested_columns_loss, nested_loss,
                         padding_loss, row_offsets, triton, triton_loss)


class Meter:
    """Times of steps, none for longer than a given number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def of(self, work: Work, wait: bool) -> dict:
        for _ in range(3):
            work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        once = time.perf_counter() - start
        repeats = 5
        steps = int(min(max(self.seconds / repeats / max(once, 1e-6), 1), 200))
        if once > self.seconds:
            repeats = 1
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in range(steps):
                work()
                if wait:
                    torch.cuda.synchronize()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - start) / steps)
        return {"microseconds": statistics.median(times), "least": min(times), "most": max(times)}


class Table:
    """Prints lines as they come, and keeps them."""

    def __init__(self, meter: Meter, started: float, limit: float, only: Optional[str]) -> None:
        self.meter, self.started, self.limit, self.only = meter, started, limit, only
        self.runs: list[dict] = []
        self.skipped: list[dict] = []
        print(f"{'us a step':34} {'waiting':>12} {'back to back':>12} {'as a graph':>12}", flush=True)

    def line(self, name: str, make: Callable[[], Work], graph: bool = True) -> None:
        if self.only is not None and self.only not in name:
            return
        if time.perf_counter() - self.started > self.limit:
            self.leave_out(name, "the time is up")
            return
        cells = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work = make()
                cells.append(self.entry(name, "waiting", work, True))
                cells.append(self.entry(name, "back to back", work, False))
        except Exception as error:  # a variant that this PyTorch cannot do
            self.leave_out(name, error)
            return
        if graph:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    cells.append(self.entry(name, "graph", captured(work), False))
            except Exception as error:
                torch.cuda.synchronize()
                self.leave_out(f"{name}, as a graph", error)
        text = "".join(f" {cell:12.1f}" for cell in cells)
        print(f"{name:34}{text}{' ' * 12 if len(cells) < 3 else ''}", flush=True)

    def entry(self, name: str, schedule: str, work: Work, wait: bool) -> float:
        found = self.meter.of(work, wait)
        self.runs.append({"part": name, "schedule": schedule, **found})
        return found["microseconds"]

    def leave_out(self, name: str, reason: object) -> None:
        sentence = (str(reason).strip() or type(reason).__name__).splitlines()[0][:150]
        self.skipped.append({"part": name, "reason": sentence})
        print(f"{name:34} left out: {sentence}", flush=True)


def both(loss: Work, leaf: torch.Tensor) -> Work:
    """The loss and the gradient of `leaf`, written over the last one's."""

    def work() -> None:
        (gradient,) = torch.autograd.grad(loss(), leaf)
        leaf.grad = gradient

    return work


def measure_losses(table: Table, batch: Batch, quick: bool) -> None:
    compiled = torch.compile(padding_loss, fullgraph=True)
    offsets = row_offsets(batch)
    packed_target = torch.cat(batch.separate)
    packed = batch.predictions.detach()[batch.mask].requires_grad_()

    def variants(leaf: torch.Tensor) -> list[tuple[str, Work, torch.Tensor, bool]]:
        parts = [
            ("concatenation", lambda: concatenation_loss(batch, leaf), leaf, True),
            ("padding", lambda: padding_loss(leaf, batch.padded, batch.mask), leaf, True),
            ("padding, compiled", lambda: compiled(leaf, batch.padded, batch.mask), leaf, True),
            ("padding, compiled, bfloat16", lambda: compiled(batch.predictions_16, batch.padded, batch.mask),
             batch.predictions_16, True),
            ("nested, packed already", lambda: nested_loss(packed, packed_target, offsets), packed, True),
            ("nested, a tensor a column", lambda: nested_columns_loss(packed, packed_target, offsets), packed, True),
        ]
        if not quick:
            parts.append(("loop", lambda: loop_loss(batch, leaf), leaf, True))
        return parts

    for name, loss, leaf, graph in variants(batch.predictions):

        def forward(loss: Work = loss) -> Work:
            def work() -> object:
                with torch.no_grad():
                    return loss()

            return work

        table.line(f"{name}: forward", forward, graph)
        table.line(f"{name}: both", lambda loss=loss, leaf=leaf: both(loss, leaf), graph)
    if triton is None:
        table.leave_out("fused kernels", "there is no Triton")
        return
    for name, skip, cast in (("fused, cast before", False, True), ("fused", False, False),
                             ("conditional, cast before", True, True), ("conditional", True, False)):
        table.line(f"{name}: forward", lambda skip=skip, cast=cast: triton_loss(batch, skip, cast))


def check(batch: Batch) -> None:
    """All variants must agree before their times mean anything."""
    with torch.no_grad():
        expected = padding_loss(batch.predictions.double(), batch.padded, batch.mask).item()
        packed = batch.predictions[batch.mask], torch.cat(batch.separate), row_offsets(batch)
        found = {"concatenation": concatenation_loss(batch, batch.predictions).item(),
                 "nested": nested_loss(*packed).item(), "nested, a tensor a column": nested_columns_loss(*packed).item()}
        if triton is not None:
            predictions = batch.predictions_16.float()
            expected_16 = padding_loss(predictions, batch.padded, batch.mask).item()
            try:
                for name, skip in (("fused", False), ("conditional", True)):
                    found[name] = triton_loss(batch, skip, False)().item() - expected_16 + expected
            except Exception as error:  # the table will say so again, and go on
                print(f"Triton's kernels do not run here: {error}", flush=True)
    for name, value in found.items():
        if abs(value - expected) > 1e-4 * max(1.0, abs(expected)):
            raise SystemExit(f"{name} gives {value}, and padding {expected}")
    leaf, target, offsets = packed[0].detach().requires_grad_(), *packed[1:]
    (wanted,) = torch.autograd.grad(article_giou(leaf, target).mean(), leaf)
    (given,) = torch.autograd.grad(nested_columns_loss(leaf, target, offsets), leaf)
    if (given - wanted).abs().max() > 1e-5 * wanted.abs().max():
        raise SystemExit("the gradient by nested tensors is another than that by plain ones")


def measure_copies(table: Table, batch: Batch) -> None:
    images = torch.randint(0, 256, (batch.rows, 1, IMAGE, IMAGE), dtype=torch.uint8)
    pinned_images = images.pin_memory()
    pinned_padded = batch.padded_host.pin_memory()
    pinned_separate = [t.pin_memory() for t in batch.separate_host]

    def packed() -> object:
        values = torch.cat(batch.separate_host)
        offsets = torch.nn.functional.pad(batch.lengths.cumsum(0), (1, 0))
        return values.cuda(), offsets.cuda()

    def padded_from_lists() -> object:
        return torch.nn.utils.rnn.pad_sequence(batch.separate_host, batch_first=True).cuda()

    for name, work in (
        ("copy: images, pageable", lambda: images.cuda()),
        ("copy: images, pinned", lambda: pinned_images.to("cuda", non_blocking=True)),
        ("copy: separate targets", lambda: [t.cuda() for t in batch.separate_host]),
        ("copy: separate targets, pinned", lambda: [t.to("cuda", non_blocking=True) for t in pinned_separate]),
        ("copy: padded targets", lambda: batch.padded_host.cuda()),
        ("copy: padded targets, pinned", lambda: pinned_padded.to("cuda", non_blocking=True)),
        ("copy: pad, then copy", padded_from_lists),
        ("copy: concatenate, then copy", packed),
    ):
        table.line(name, lambda work=work: work, graph=False)


def detector(max_boxes: int) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    channels, side = 1, IMAGE
    for wider in (4, 16, 64, 256):
        layers += [torch.nn.Conv2d(channels, wider, 3, padding="same"), torch.nn.MaxPool2d(2), torch.nn.ReLU()]
        channels, side = wider, side // 2
    layers += [torch.nn.Flatten(), torch.nn.Linear(channels * side * side, 16_384), torch.nn.ReLU(),
               torch.nn.Linear(16_384, 4 * max_boxes)]
    return torch.nn.Sequential(*layers)


def measure_detector(table: Table, batch: Batch) -> None:
    with torch.device("cuda"):
        model = detector(batch.width).requires_grad_(False)
    images = torch.randint(0, 256, (batch.rows, 1, IMAGE, IMAGE), dtype=torch.uint8, device="cuda")

    def forward(run: torch.nn.Module) -> Work:
        def work() -> object:
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                return run(images.float() / 255)

        return work

    table.line("detector: autocast, eager", lambda: forward(model), graph=False)
    table.line("detector: autocast, compiled", lambda: forward(torch.compile(model)))
    weights_16 = model.bfloat16()

    def forward_16(run: torch.nn.Module) -> Work:
        def work() -> object:
            with torch.no_grad():
                return run(images.bfloat16() / 255)

        return work

    table.line("detector: bfloat16, eager", lambda: forward_16(weights_16), graph=False)
    table.line("detector: bfloat16, compiled", lambda: forward_16(torch.compile(weights_16)))
    channels_last = weights_16.to(memory_format=torch.channels_last)
    table.line("detector: bfloat16, nhwc, compiled", lambda: forward_16(torch.compile(channels_last)))


def measure_detector_step(table: Table, batch: Batch, quick: bool) -> None:
    images = torch.randint(0, 256, (batch.rows, 1, IMAGE, IMAGE), dtype=torch.uint8, device="cuda")
    gradient = torch.randn(batch.rows, 4 * batch.width, device="cuda")

    def step(compiled: bool, channels_last: bool) -> Work:
        with torch.device("cuda"):
            model = detector(batch.width)
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        run = torch.compile(model) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, fused=True)

        def work() -> None:
            with torch.autocast("cuda", torch.bfloat16):
                boxes = run(images.float() / 255)
            boxes.backward(gradient.to(boxes.dtype))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return work

    if not quick:
        table.line("detector, step: autocast, eager", lambda: step(False, False), graph=False)
    table.line("detector, step: autocast, compiled", lambda: step(True, False), graph=False)
    table.line("detector, step: nhwc, compiled", lambda: step(True, True), graph=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--boxes", type=int, default=256, help="at most, for an image")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure, about")
    parser.add_argument("--limit", type=float, default=115, help="seconds after which no further line is begun")
    parser.add_argument("--part", choices=("all", "losses", "copies", "detector"), default="all")
    parser.add_argument("--only", metavar="NAME", help="lines whose name contains NAME, such as 'padding, compiled: '")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    require(missing)

    started = time.perf_counter()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    batch = Batch(arguments.batch, arguments.boxes)
    check(batch)
    table = Table(Meter(arguments.seconds), started, arguments.limit, arguments.only)
    if arguments.part in ("all", "losses"):
        measure_losses(table, batch, arguments.quick)
    if arguments.part in ("all", "copies"):
        measure_copies(table, batch)
    if arguments.part in ("all", "detector"):
        measure_detector(table, batch)
        measure_detector_step(table, batch, arguments.quick)

    if arguments.json:
        report = {"experiment": "masked_giou", "framework": f"PyTorch {torch.__version__}",
                  "device": torch.cuda.get_device_name(), "batch": arguments.batch, "boxes": arguments.boxes,
                  "real_boxes": sum(batch.counts), "runs": table.runs, "left_out": table.skipped}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()
