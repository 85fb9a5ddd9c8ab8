#!/usr/bin/env python3
"""Draws what overlap gains in the frozen-encoder experiment: the speed-up over the same work done serially, against the batch
size, for PyTorch and for sluice.

    python3 bench/frozen_encoder.py PROGRAM --json frozen_encoder.json
    python3 bench/plot.py frozen_encoder.json docs/results/frozen_encoder_overlap.svg

Needs matplotlib.
"""

import sys

import charts
from charts import plt

# What, over what. Colours that most colour-blind readers can tell apart, and markers besides: PyTorch's are hollow.
LINES = [
    ("sluice", "overlapped", "serial", "sluice, overlapped", "#332288", "o"),
    ("sluice", "graphed", "serial", "sluice, a graph a step", "#44aa99", "^"),
    ("pytorch", "streams", "serial", "PyTorch, two streams, as published", "#cc6677", "o"),
    ("pytorch", "streams-last", "serial-last", "PyTorch, two streams, channels last", "#dd8833", "s"),
    ("pytorch", "forked-graph", "graph", "PyTorch, a forked graph over one that is not", "#777777", "D"),
]


def read(path):
    report = charts.read(path)
    if not report.get("rows"):
        sys.exit(f"{path}: expected a report of bench/frozen_encoder.py, found no rows")
    return report


def draw(report, path):
    rows = sorted(report["rows"], key=lambda row: row["batch"])
    batches = [row["batch"] for row in rows]
    figure, axis = plt.subplots(figsize=(7.2, 4.2))
    for framework, overlapped, serial, label, colour, marker in LINES:
        points = [(row["batch"], row[framework][overlapped]["steps_per_second"] /
                   row[framework][serial]["steps_per_second"])
                  for row in rows if overlapped in row[framework] and serial in row[framework]]
        if points:
            axis.plot(*zip(*points), label=label, color=colour, marker=marker, markersize=5, linewidth=1.5,
                      markerfacecolor=colour if framework == "sluice" else "none")
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(batches, [str(batch) for batch in batches])
    axis.set_xlabel("images in a batch")
    axis.set_ylabel("steps per second over serial's")
    axis.set_title(f"What overlap gains: {report['device']}, {report['framework']}", fontsize=11)
    axis.grid(True, which="major", alpha=0.3)
    axis.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    charts.save(figure, path, "frozen_encoder")


def main():
    report, chart = charts.paths(__doc__, "plot.py REPORT.json CHART.svg", lambda number: number == 2)
    draw(read(report), chart)


if __name__ == "__main__":
    main()
