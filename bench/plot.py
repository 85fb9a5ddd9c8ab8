#!/usr/bin/env python3
"""Draws what overlap gains in the frozen-encoder experiment: the speed-up over the same work done serially, against the batch
size, for PyTorch and for sluice. Prints the page that the chart belongs to.

    python3 bench/frozen_encoder.py PROGRAM --json frozen_encoder.json
    python3 bench/plot.py frozen_encoder.json docs/performance/frozen_encoder_overlap.svg > docs/performance/frozen_encoder_batches.md

Takes reports of different batch sizes, too. Needs matplotlib.
"""

import os
import sys

import charts
from charts import plt
from frozen_encoder import memory_table, table

# What, over what. Colours that most colour-blind readers can tell apart, and markers besides: PyTorch's are hollow.
LINES = [
    ("sluice", "overlapped", "serial", "sluice, overlapped", "#332288", "o"),
    ("sluice", "graphed", "serial", "sluice, a graph a step", "#44aa99", "^"),
    ("pytorch", "streams", "serial", "PyTorch, two streams, as published without its races", "#cc6677", "o"),
    ("pytorch", "streams-last", "serial-last", "PyTorch, two streams, channels last", "#dd8833", "s"),
    ("pytorch", "forked-graph", "graph", "PyTorch, a forked graph over one that is not", "#777777", "D"),
]


def read(paths):
    """The reports as one, by batch size."""
    reports = [charts.read(path) for path in paths]
    for path, report in zip(paths, reports):
        if not report.get("rows"):
            sys.exit(f"{path}: expected a report of bench/frozen_encoder.py, found no rows")
    rows = {row["batch"]: row for report in reports for row in report["rows"]}
    return reports[0] | {"rows": [rows[batch] for batch in sorted(rows)]}


def gain(row, framework, overlapped, serial):
    runs = row[framework]
    if overlapped not in runs or serial not in runs:
        return None
    return runs[overlapped]["steps_per_second"] / runs[serial]["steps_per_second"]


def print_page(report, chart):
    print("# The frozen encoder on a GPU\n")
    print(f"Written by `bench/plot.py` from what `bench/frozen_encoder.py` measured on one {report['device']} a row, with "
          f"{report['framework']}: steps per second, medians, TF32 products. Beside each schedule stands PyTorch's best "
          "arrangement of its kind; `bench/pytorch/frozen_encoder.py` says what they are.\n")
    print(table(report["rows"]))
    print("\nSteps per second over those of the same work done serially:\n")
    print("| batch | " + " | ".join(label for *_, label, _, _ in LINES) + " |\n| --- |" + " --- |" * len(LINES))
    for row in report["rows"]:
        gains = [gain(row, *line[:3]) for line in LINES]
        print(f"| {row['batch']} | " + " | ".join("" if value is None else f"{value:.2f} ×" for value in gains) + " |")
    for row in report["rows"]:
        if row["batch"] == 8:
            print("\n" + memory_table(row))
    print(f"\n![What overlap gains, by batch size]({os.path.basename(chart)})")


def draw(report, path):
    rows = report["rows"]
    batches = [row["batch"] for row in rows]
    figure, axis = plt.subplots(figsize=(7.2, 4.8))
    for framework, overlapped, serial, label, colour, marker in LINES:
        gains = [(row["batch"], gain(row, framework, overlapped, serial)) for row in rows]
        points = [point for point in gains if point[1] is not None]
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
    figure.legend(*axis.get_legend_handles_labels(), fontsize=8, frameon=False, loc="lower center", ncols=2)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    charts.save(figure, path, "frozen_encoder")


def main():
    *reports, chart = charts.paths(__doc__, "plot.py REPORT.json... CHART.svg", lambda number: number >= 2)
    report = read(reports)
    print_page(report, chart)
    draw(report, chart)


if __name__ == "__main__":
    main()
