"""Draws the heavier-loop study of examples/masked_giou: the time of a box loss by the work per box, a panel for each
degree to which rows are filled, with every box computed, padding skipped, and ragged rows.

    masked_giou --part work --json work.json
    python3 bench/plot_work.py work.json docs/performance/giou_work.svg

Needs matplotlib.
"""

import sys

import charts
from charts import plt

# Colours that most colour-blind readers can tell apart, and markers besides.
LINES = {
    "fused": ("every box computed", "#332288", "o"),
    "conditional": ("padding skipped", "#dd8833", "s"),
    "ragged": ("ragged rows, no padding", "#44aa99", "^"),
}


def read(path):
    """The runs of the study: {fill: {variant: [(work, microseconds), ...]}}, and the report they are in."""
    report = charts.read(path)
    panels = {}
    for run in report.get("runs", []):
        if run.get("part") == "work":
            lines = panels.setdefault(run["fill"], {})
            lines.setdefault(run["variant"], []).append((run["work"], run["step_microseconds"]))
    if not panels:
        sys.exit(f"{path}: expected runs of `masked_giou --part work`, found none")
    return panels, report


def draw(panels, report, path):
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 3.6), sharey=True, squeeze=False)
    for axis, (fill, lines) in zip(axes[0], sorted(panels.items())):
        for variant, points in lines.items():
            label, colour, marker = LINES[variant]
            points.sort()
            axis.plot(*zip(*points), label=label, color=colour, marker=marker, markersize=4, linewidth=1.5)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"{100 * fill:.1f} % of the room filled", fontsize=10)
        axis.set_xlabel("work per box (formulas)")
        axis.grid(True, which="major", alpha=0.3)
    axes[0][0].set_ylabel("µs a loss")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.suptitle(f"When does skipping padding pay? {report['device']}", fontsize=11)
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    charts.save(figure, path, "giou_work")


def main():
    path, chart = charts.paths(__doc__, "plot_work.py REPORT.json CHART.svg", lambda number: number == 2)
    panels, report = read(path)
    draw(panels, report, chart)


if __name__ == "__main__":
    main()
