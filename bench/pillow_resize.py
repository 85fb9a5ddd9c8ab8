#!/usr/bin/env python3
"""Enlarging images from 32x32 to 224x224 by Pillow and by sluice's examples, in turns on one core:

    pip install --target /tmp/pillow pillow
    PYTHONPATH=/tmp/pillow python3 bench/pillow_resize.py build/release/bench/images

Pillow's time is that of `Image.resize` alone, of images that are there already, 64 in turn. The program's are those of its
benchmarks host/enlarge, bytes to bytes as Pillow, and host/enlarge_float, which normalises as well. Medians of the rounds, and
the ratio of each round's times, of which the median and the least are printed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

import PIL
from PIL import Image

NAMES = ["host/enlarge", "host/enlarge_float"]


def pillow_microseconds(images: list[Image.Image]) -> float:
    """Of an image: the median of 20 passes over all."""
    passes = []
    for _ in range(20):
        start = time.perf_counter()
        for image in images:
            image.resize((224, 224), Image.Resampling.BILINEAR)
        passes.append((time.perf_counter() - start) / len(images) * 1e6)
    return statistics.median(passes)


def program_microseconds(program: str) -> dict[str, float]:
    """Of an image, by benchmark: the median of its repetitions."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "times.json")
        subprocess.run([program, "--benchmark_filter=^host/enlarge", f"--benchmark_out={path}"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            runs = json.load(file)["benchmarks"]
    runs = [run for run in runs if run["run_type"] == "iteration"]
    return {name: statistics.median(run["step_ns"] for run in runs if name in run["name"].split("/iterations")[0:1])
            / 1e3 for name in NAMES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/release/bench/images")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()

    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})  # the program inherits it
    numbers = random.Random(1)
    images = [Image.frombytes("RGB", (32, 32), numbers.randbytes(3072)) for _ in range(64)]
    pillow = []
    sluice = {name: [] for name in NAMES}
    for _ in range(arguments.rounds):
        pillow.append(pillow_microseconds(images))
        for name, time_taken in program_microseconds(arguments.program).items():
            sluice[name].append(time_taken)

    print(f"Pillow {PIL.__version__}, core {core}, {arguments.rounds} rounds")
    print(f"{'':24}{'us an image':>14}{'images/s':>12}{'Pillow / this':>16}{'least':>8}")
    median = statistics.median(pillow)
    print(f"{'Pillow resize':24}{median:14.1f}{1e6 / median:12.0f}")
    for name in NAMES:
        median = statistics.median(sluice[name])
        ratios = [a / b for a, b in zip(pillow, sluice[name])]
        print(f"{name:24}{median:14.1f}{1e6 / median:12.0f}{statistics.median(ratios):16.1f}{min(ratios):8.1f}")


if __name__ == "__main__":
    main()
