"""Draws samples per second of the input ladder for ResNet-18, rung by rung, ours beside PyTorch's, and each rung's step alone.

    python3 bench/resnet18.py build/release/examples/resnet18/resnet18 --json resnet18.json
    python3 bench/plot_resnet18.py resnet18.json docs/performance/resnet18.svg

Whiskers go from the least to the most of a figure's runs. Needs matplotlib.
"""

import sys

import charts
from charts import plt

CHANGES = ["one loading\nthread", "loading\nworkers", "pinned,\nown stream", "batches\nof 512", "copies\nof bytes",
           "gradients\nnot zeroed", "float16,\n1,024", "compiled;\na graph", "copies of\n32×32"]
# The floor of a step in float16 by bytes, without overlap of memory and operations; docs/performance/resnet18.md says how it
# comes about.
FLOOR = 36_400
FIRST_IN_FLOAT16 = 6


def bars(axis, places, runs, label, colour, hatch):
    """Bars with whiskers; a place without a run stays empty."""
    shown = [(place, run) for place, run in zip(places, runs) if run]
    rates = [run["samples_per_second"] for _, run in shown]
    spread = [[rate - run["least"] for rate, (_, run) in zip(rates, shown)],
              [run["most"] - rate for rate, (_, run) in zip(rates, shown)]]
    axis.bar([place for place, _ in shown], rates, 0.26, label=label, color=colour, hatch=hatch, edgecolor="white",
             yerr=spread, capsize=2, error_kw={"linewidth": 0.8})


def draw(rows, device, path):
    figure, axis = plt.subplots(figsize=(8.6, 4.8))
    places = list(range(len(rows)))
    bars(axis, [place - 0.28 for place in places], [row["pytorch"].get(str(row["rung"])) for row in rows],
         "PyTorch", "#cc6677", "//")
    bars(axis, places, [row["pytorch"].get("best") for row in rows], "PyTorch, best arrangement", "#dd8833", "\\\\")
    bars(axis, [place + 0.28 for place in places], [row["sluice"] for row in rows], "sluice", "#332288", "")
    alone = [row["sluice"].get("samples_per_second_alone") for row in rows]
    axis.plot([place + 0.28 for place in places], [rate or float("nan") for rate in alone], "_", color="#44aa99",
              markersize=14, markeredgewidth=2, label="sluice, the step alone")
    in_float16 = [place for place, row in zip(places, rows) if row["rung"] >= FIRST_IN_FLOAT16]
    if in_float16:
        axis.hlines(FLOOR, in_float16[0] - 0.5, in_float16[-1] + 0.5, color="#777777", linewidth=0.8, linestyle="--",
                    label="floor of a step in float16")
    axis.set_yscale("log")
    axis.set_xticks(places, [f"{row['rung']}\n{CHANGES[row['rung']]}" for row in rows], fontsize=8)
    axis.set_ylabel("samples a second")
    axis.set_title(f"ResNet-18, from rung to rung: {device}", fontsize=11)
    axis.grid(True, which="major", axis="y", alpha=0.3)
    axis.legend(fontsize=8, frameon=False, loc="upper left")
    figure.tight_layout()
    charts.save(figure, path, "resnet18")


def main():
    path, chart = charts.paths(__doc__, "plot_resnet18.py REPORT.json CHART.svg", lambda number: number == 2)
    report = charts.read(path)
    if not report.get("rows"):
        sys.exit(f"{path}: expected rungs of bench/resnet18.py, found none")
    draw(report["rows"], report.get("device", ""), chart)


if __name__ == "__main__":
    main()
