#!/usr/bin/env python3
"""The graph experiment in PyTorch, to run beside examples/graph_replay on the same GPU.

Prints microseconds a step, launched one by one and as a CUDA graph: a linear layer 150,528 -> 1,000 (in float32, which
is PyTorch's default, and in TF32), chains of 10, 100 and 1,000 tiny kernels, a loop of 1,000 kernels after each of which
the host reads whether to go on, and an iterative solver. A graph of PyTorch's cannot hold a loop whose length the device
decides, so the solver reads its condition back with `.item()` once a round; a round is one or eight iterations, launched
one by one or as a graph.

    python3 bench/pytorch/graphs.py --json graphs.json
"""

from __future__ import annotations  # some name what may be missing

import argparse
import json
import statistics
import time

try:
    import torch
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import Work, captured, require

ROWS = 64
DOMINANCE = 1.05
TOLERANCE = 1e-4
MOST_ITERATIONS = 10_000


def microseconds(work: Work, steps: int, warmup: int, repeats: int) -> list[float]:
    """Of one step, back to back, for each repeat."""
    times = []
    for _ in range(repeats):
        for _ in range(warmup):
            work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            work()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start) / steps)
    return times


def linear(batch: int, inputs: int, outputs: int) -> Work:
    model = torch.nn.Linear(inputs, outputs).cuda().requires_grad_(False)
    images = torch.rand(batch, inputs, device="cuda")

    def work() -> None:
        model(images)

    return work


def chain(length: int) -> Work:
    values = torch.rand(256, device="cuda")

    def work() -> None:
        for _ in range(length):
            values.mul_(0.75)

    return work


def read_back(iterations: int) -> Work:
    """A kernel, and whether to go on, which the host reads after each."""
    left = torch.zeros((), device="cuda", dtype=torch.int32)

    def work() -> None:
        left.fill_(iterations)
        while left.sub_(1).item() > 0:
            pass

    return work


class Solver:
    """Jacobi's iteration on the system of examples/graph_replay: positive, with a diagonal 1.05 times the row's rest."""

    def __init__(self) -> None:
        self.matrix = torch.rand(ROWS, ROWS, device="cuda") / ROWS
        self.matrix.fill_diagonal_(0)
        self.diagonal = DOMINANCE * self.matrix.sum(dim=1)
        self.matrix += torch.diag(self.diagonal)
        self.right = torch.rand(ROWS, device="cuda")
        self.x = torch.zeros(ROWS, device="cuda")
        self.worst = torch.zeros((), device="cuda")

    def iterate(self) -> None:
        residual = self.right - self.matrix @ self.x
        torch.amax(residual.abs(), dim=0, out=self.worst)
        self.x += residual / self.diagonal

    def loop(self, round_of: int, as_graph: bool) -> Work:
        def iterations() -> None:
            for _ in range(round_of):
                self.iterate()

        one_round = captured(iterations) if as_graph else iterations

        def work() -> None:
            self.x.zero_()
            for _ in range(MOST_ITERATIONS // round_of):
                one_round()
                if self.worst.item() <= TOLERANCE:
                    return

        return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--inputs", type=int, default=150_528)
    parser.add_argument("--outputs", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    require(missing)

    torch.manual_seed(1)
    runs = []

    def measure(part: str, schedule: str, work: Work) -> float:
        times = microseconds(work, arguments.steps, arguments.warmup, arguments.repeats)
        middle = statistics.median(times)
        runs.append({"part": part, "schedule": schedule, "step_microseconds": middle,
                     "least": min(times), "most": max(times)})
        return middle

    def compare(part: str, eager: Work, graph: Work) -> None:
        one_by_one, as_graph = measure(part, "serial", eager), measure(part, "graphed", graph)
        print(f"{part:18} {one_by_one:12.1f} {as_graph:12.1f} {one_by_one / as_graph:9.2f}x", flush=True)

    print(f"{'us a step':18} {'one by one':>12} {'as a graph':>12} {'speed-up':>10}")
    for precision in ("float32", "tf32"):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        work = linear(arguments.batch, arguments.inputs, arguments.outputs)
        compare(f"linear ({precision})", work, captured(work))
    torch.backends.cuda.matmul.allow_tf32 = False
    for length in (10, 100, 1000):
        work = chain(length)
        compare(f"chain:{length}", work, captured(work))
    read = measure("loop:1000", "serial", read_back(1000))
    print(f"{'loop:1000':18} {read:12.1f}", flush=True)
    solver = Solver()
    for round_of in (1, 8):
        compare(f"loop/unroll:{round_of}", solver.loop(round_of, False), solver.loop(round_of, True))

    if arguments.json:
        report = {"experiment": "graph_replay", "framework": f"PyTorch {torch.__version__}",
                  "device": torch.cuda.get_device_name(), "batch": arguments.batch, "steps": arguments.steps,
                  "runs": runs}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()
