"""What the scripts share: options, synthetic batches, a device."""

from __future__ import annotations

import argparse
import time
from typing import Callable, Iterable

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batches", type=int, default=100 if DEVICE == "cuda" else 6)
    parser.add_argument("--batch", type=int, default=8 if DEVICE == "cuda" else 2, help="samples in a batch")
    parser.add_argument("--small", action="store_true", default=DEVICE == "cpu", help="a small model and small images")
    parser.add_argument("--schedule", default="automatic", choices=("serial", "overlapped", "graphed", "automatic"))
    return parser.parse_args()


def pinned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.pin_memory() if DEVICE == "cuda" else tensor


def synthetic(batches: int, make: Callable[[], tuple[torch.Tensor, ...]], kept: int = 4) -> Iterable:
    """Batches of random numbers; a few of them come round again."""
    data = [tuple(pinned(tensor) for tensor in make()) for _ in range(min(kept, batches))]
    return [data[i % len(data)] for i in range(batches)]


def timed(name: str, losses: Iterable[torch.Tensor]) -> list[float]:
    """Runs a loop to its end, prints its rate, and returns what it yielded."""
    started = time.perf_counter()
    kept = list(losses)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"{name}: {len(kept) / (time.perf_counter() - started):.1f} steps a second")
    return [loss.item() for loss in kept]
