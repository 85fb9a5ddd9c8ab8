"""The host's time for a batch of two tiny stages: a plain loop, `sluice.pipeline` by each schedule, and `sluice.prefetch`.

Each way goes over 400 batches of 4,096 pinned floats again and again, all ways in turns; the median of its epochs, in µs a batch, the
ratio to the plain loop's, and the first epochs by themselves, since a pipeline begins by looking at its stages. `--device cpu` shows on
a CPU that the script runs.

    python3 bench/pytorch/step_cost.py --epochs 40
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

try:
    import torch

    import sluice
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import require

BATCHES, FIRST = 400, 8


def first(t):
    return t.add_(1)


def second(t):
    return t.sum()


def ways_of(device: str) -> dict:
    """Each takes a list of batches."""
    def plain(batches):
        for (t,) in batches:
            second(first(t.to(device, non_blocking=True)))

    def whole(run):
        def over(batches):
            for _ in run(batches):
                pass
        return over

    def prefetched(batches):
        for (t,) in loader:
            second(first(t))

    loader = sluice.prefetch(data_for(device), device)
    return {"plain loop": plain,
            **{name: whole(sluice.pipeline(first, second, schedule=name, device=device)) for name in ("serial", "overlapped", "graphed")},
            "prefetch and a plain loop": prefetched}


def data_for(device: str) -> list:
    batches = [(torch.zeros(4096),) for _ in range(BATCHES)]
    return [(t.pin_memory(),) for (t,) in batches] if device == "cuda" else batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.device == "cuda" or missing is not None:
        require(missing)
    batches, ways = data_for(arguments.device), ways_of(arguments.device)
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.epochs):
        for name, run in ways.items():
            begin = time.perf_counter()
            run(batches)
            spent[name].append(1e6 * (time.perf_counter() - begin) / BATCHES)
            if arguments.device == "cuda":
                torch.cuda.synchronize()
    plain = statistics.median(spent["plain loop"][FIRST:] or spent["plain loop"])
    for name, times in spent.items():
        later = statistics.median(times[FIRST:] or times)
        print(f"{name:26} {later:7.1f} us a batch, {later / plain:5.2f} of the plain loop's; the first {FIRST} epochs "
              f"{' '.join(f'{t:.0f}' for t in times[:FIRST])}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"experiment": "step_cost", "framework": f"PyTorch {torch.__version__}", "microseconds": spent}, file, indent=2)


if __name__ == "__main__":
    main()
