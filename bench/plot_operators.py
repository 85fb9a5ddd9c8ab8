r"""Draws what augmentation costs on a GPU, and prints it as tables: each operator's bytes per second as a fraction of a
copy's, and the published chain beside PyTorch's.

    augment --benchmark_filter=cuda/ --benchmark_out=bench.json
    python3 bench/pytorch/augment.py --part operators --batch 32 256 --json pytorch.json
    python3 bench/plot_operators.py bench.json pytorch.json docs/performance/augment_operators.svg \
        > docs/performance/augment_operators.md

Needs matplotlib.
"""

import os
import re
import statistics
import sys

import charts
from charts import plt

COLOURS = ["#332288", "#dd8833"]  # of batches; most colour-blind readers can tell them apart
CHAINS = {  # of PyTorch, and how they are called here
    "published": "PyTorch, as published",
    "torchvision": "torchvision, one draw a batch",
    "exact, in stages": "PyTorch, compiled",
    "exact, in stages, graph": "PyTorch, compiled, graph",
    "affine, in stages, graph": "PyTorch, one grid_sample, graph",
}


def medians(report, path):
    """{(batch, operator, beside): {counter: median}} of the program `augment`."""
    found = {}
    # As they were registered: they are run in a shuffled order.
    for run in sorted(report.get("benchmarks", []), key=lambda run: run["family_index"]):
        match = re.match(r"cuda/batch:(\d+)/(\w+)/beside_(\w+)", run["name"])
        if match and run.get("run_type") == "iteration":
            key = (int(match[1]), match[2], match[3])
            found.setdefault(key, []).append(run)
    if not found:
        sys.exit(f"{path}: expected benchmarks named cuda/batch:N/OPERATOR/beside_copy, found none")
    counters = ("step_ns", "baseline_ns", "ratio", "bytes")
    return {key: {name: statistics.median(run[name] for run in runs) for name in counters if name in runs[0]}
            for key, runs in found.items()}


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def chain_times(found, pytorch, batches):
    """[(name, [microseconds for each batch])], the slowest first."""
    lines = []
    for variant, name in CHAINS.items():
        times = {run["batch"]: run["step_microseconds"] for run in pytorch["runs"]
                 if run["part"] == "operators" and run["variant"] == variant}
        if times:
            lines.append((name, [times.get(batch) for batch in batches]))
    lines.append(("three plain kernels", [found.get((b, "published", "by_hand"), {}).get("baseline_ns", 0) / 1e3 or None
                                          for b in batches]))
    lines.append(("sluice, fused", [found[b, "published", "copy"]["step_ns"] / 1e3 for b in batches]))
    lines.append(("sluice, fused, to float16", [found[b, "published_half", "copy"]["step_ns"] / 1e3 for b in batches]))
    return lines


def print_tables(found, operators, lines, batches, device):
    print("# Augmentation on a GPU\n")
    print(f"Written by `bench/plot_operators.py` from a run of `augment` and one of `bench/pytorch/augment.py`, on one {device} each: "
          "images of 3 × 256 × 256 bytes to float, parameters drawn for each sample. \"Of a copy\": a copy within device "
          "memory that moves as many bytes took that part of the operator's time; what 32 images become fits in the cache, "
          "for the copy too.\n")
    rows = []
    for operator in operators:
        row = [f"`{operator}`"]
        for batch in batches:
            values = found[batch, operator, "copy"]
            row += [f"{values['step_ns'] / 1e3:.1f}", f"{values['bytes'] / values['step_ns']:,.0f}",
                    f"{100 / values['ratio']:.0f} %"]
        rows.append(row)
    table(["operator"] + [text for batch in batches for text in (f"µs, batch {batch}", "GB/s", "of a copy")], rows)
    rows = [[name] + [f"{t:,.1f}" if t else "–" for t in times] for name, times in lines]
    table(["the published chain, µs"] + [f"batch {batch}" for batch in batches], rows)


def draw(found, operators, lines, batches, device, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6))
    height = 0.8 / len(batches)
    for index, (batch, colour) in enumerate(zip(batches, COLOURS)):
        offset = height * (index - (len(batches) - 1) / 2)
        fractions = [100 / found[batch, operator, "copy"]["ratio"] for operator in operators]
        left.barh([i + offset for i in range(len(operators))], fractions, height, color=colour, label=f"batch {batch}")
        points = [(i + offset, times[index]) for i, (_, times) in enumerate(lines) if times[index]]
        right.barh([at for at, _ in points], [t for _, t in points], height, color=colour)
        for at, t in points:
            right.text(1.1 * t, at, f"{t:,.0f}", va="center", fontsize=8)
    left.axvline(100, color="#444444", linewidth=0.8)
    left.set_yticks(range(len(operators)), operators)
    left.set_xlabel("bytes per second, % of a copy's")
    right.set_yticks(range(len(lines)), [name for name, _ in lines])
    right.set_xscale("log")
    right.set_xlim(right=8 * max(t for _, times in lines for t in times if t))
    right.set_xlabel("the published chain, µs a batch")
    for axis in (left, right):
        axis.invert_yaxis()
        axis.grid(True, axis="x", alpha=0.3)
        axis.set_axisbelow(True)
    figure.suptitle(f"Augmentation of 3 × 256 × 256 images, {device}", fontsize=11)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    charts.save(figure, path, "augment")


def main():
    ours, theirs, chart = charts.paths(__doc__, "plot_operators.py BENCH.json PYTORCH.json CHART.svg",
                                       lambda number: number == 3)
    pytorch = charts.read(theirs)
    found = medians(charts.read(ours), ours)
    batches = sorted({batch for batch, _, beside in found if beside == "copy"})[:len(COLOURS)]
    operators = [operator for batch, operator, beside in found if batch == batches[0] and beside == "copy"]
    lines = chain_times(found, pytorch, batches)
    print_tables(found, operators, lines, batches, pytorch["device"])
    print(f"![Bytes per second by operator, and times of the chain]({os.path.basename(chart)})")
    draw(found, operators, lines, batches, pytorch["device"], chart)


if __name__ == "__main__":
    main()
