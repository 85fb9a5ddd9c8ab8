"""Draws steps per second against the batch size for each way to augment what a classifier trains on: ours and PyTorch's.

    gpu_augment --sweep --json ours.json
    python3 bench/pytorch/augment.py --part training --batch 8 16 32 64 128 256 --json pytorch.json
    python3 bench/plot_augment.py ours.json pytorch.json docs/performance/augment_training.svg

Takes any number of reports; where two hold the same figure, the later one counts. Needs matplotlib.
"""

import sys

import charts
from charts import plt

# Colours that most colour-blind readers can tell apart, and markers besides: PyTorch's are hollow.
OURS = {
    ("cpu", "overlapped"): ("on the CPU, in the loader's workers", "#cc6677", "o"),
    ("device", "serial"): ("on the GPU, in the training's stream", "#dd8833", "s"),
    ("device", "overlapped"): ("on the GPU, in a stream of its own", "#332288", "^"),
    ("device", "graphed"): ("the same, a graph a step", "#44aa99", "D"),
    ("none", "graphed"): ("not at all: training alone, as a graph", "#777777", "x"),
}
PYTORCH = {
    "workers": ("cpu", "overlapped"),
    "serial": ("device", "serial"),
    "two-streams": ("device", "overlapped"),
}


def lines_of(reports):
    """{(framework, way): {batch: steps per second}}."""
    lines = {}
    for report in reports:
        for run in report.get("runs", []):
            if "framework" in report:
                way = PYTORCH.get(run["variant"]) if run["part"] == "training" else None
                key = ("PyTorch", way)
            else:
                way = (run["augment"], run["schedule"]) if run.get("part") == "train" else None
                key = ("sluice", way)
            if way in OURS:
                lines.setdefault(key, {})[run["batch"]] = run["steps_per_second"]
    return lines


def draw(lines, device, path):
    figure, axis = plt.subplots(figsize=(7.6, 5.4))
    for framework, style, face in (("sluice", "-", None), ("PyTorch", "--", "white")):
        for way, (label, colour, marker) in OURS.items():
            points = sorted(lines.get((framework, way), {}).items())
            if points:
                axis.plot(*zip(*points), style, label=f"{framework}: {label}", color=colour, marker=marker,
                          markersize=5, markerfacecolor=face or colour, linewidth=1.5)
    batches = sorted({batch for points in lines.values() for batch in points})
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(batches, [str(batch) for batch in batches])
    axis.set_xlabel("images of 3×256×256 a batch")
    axis.set_ylabel("steps a second")
    axis.set_title(f"Where to augment? {device}", fontsize=11)
    axis.grid(True, which="major", alpha=0.3)
    axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    figure.tight_layout()
    charts.save(figure, path, "augment")


def main():
    *paths, chart = charts.paths(__doc__, "plot_augment.py REPORT.json ... CHART.svg", lambda number: number >= 2)
    reports = [charts.read(path) for path in paths]
    lines = lines_of(reports)
    if not lines:
        sys.exit(f"{paths[0]}: expected trainings of `gpu_augment` or of bench/pytorch/augment.py, found none")
    draw(lines, reports[0].get("device", ""), chart)


if __name__ == "__main__":
    main()
