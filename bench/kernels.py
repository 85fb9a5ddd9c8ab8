#!/usr/bin/env python3
"""The kernels of a program's last step by `ncu --clock-control none`, each with its caches flushed before: time, and bytes of device memory.

    python3 bench/kernels.py [--json FILE] -- PROGRAM ARGUMENTS…

A step is the shortest row of kernels that comes twice at the end and has all kernels of the run's second half, so that the program
should make four steps or more. Prints kernels of one name together, the longest first.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0, "second": 1.0}
BYTES = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def number(text: str) -> float:
    return float(text.replace(",", ""))


def kernels_of(path: str) -> list[dict]:
    """From ncu's raw page: heads, units, then a line a kernel."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = csv.DictReader(lines)
    units = next(rows)
    return [{"name": row["Kernel Name"], "microseconds": 1e6 * number(row[TIME]) * SECONDS[units[TIME]],
             "bytes": sum(number(row[metric]) * BYTES[units[metric]] for metric in (READ, WRITTEN))} for row in rows]


def last_step(kernels: list[dict]) -> list[dict]:
    names = [kernel["name"] for kernel in kernels]
    for end in range(len(names), 3 * len(names) // 4, -1):  # a program may end with kernels of no step
        all_of_a_step = set(names[end // 2:end])
        for length in range(1, end // 2 + 1):
            row = names[end - length:end]
            if row == names[end - 2 * length:end - length] and set(row) == all_of_a_step:
                return kernels[end - length:end]
    sys.exit(f"kernels.py: of {len(names)} kernels, no row comes twice at the end; give it more steps")


def short(name: str) -> str:
    """Without parameters and the library's namespaces."""
    name = re.sub(r"\b(?:void|sluice|detail|nn|augment)(?:::| )", "", name)
    return name if len(name) <= 110 else f"{name[:107]}..."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if shutil.which("ncu") is None:
        sys.exit("kernels.py: ncu is not there; it comes with the CUDA Toolkit as Nsight Compute")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "kernels.csv")
        subprocess.run(["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--metrics", f"{TIME},{READ},{WRITTEN}",
                        "--log-file", log, *arguments.command], check=True,
                       stdout=subprocess.DEVNULL)
        step = last_step(kernels_of(log))
    together: dict[str, list[float]] = {}
    for kernel in step:
        entry = together.setdefault(kernel["name"], [0, 0.0, 0.0])
        entry[0] += 1
        entry[1] += kernel["microseconds"]
        entry[2] += kernel["bytes"]
    print(f"{len(step)} kernels, {sum(kernel['microseconds'] for kernel in step):,.1f} us")
    print(f"{'us':>10} {'count':>6} {'MB':>10} {'TB/s':>6}")
    for name, (count, microseconds, size) in sorted(together.items(), key=lambda one: -one[1][1]):
        print(f"{microseconds:10,.1f} {count:6} {size / 1e6:10,.1f} {size / microseconds / 1e6:6.2f}  {short(name)}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(step, file, indent=1)


if __name__ == "__main__":
    main()
