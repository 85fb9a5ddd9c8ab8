#!/usr/bin/env python3
"""The frozen-encoder experiment by sluice and by PyTorch, in turns on one GPU: one table with ratios.

    python3 bench/frozen_encoder.py build/release/examples/frozen_encoder/frozen_encoder --json frozen_encoder.json
    python3 bench/frozen_encoder.py PROGRAM --batches 8 --compiled --bfloat16 --published 9
    python3 bench/plot.py frozen_encoder.json docs/performance/frozen_encoder_overlap.svg > docs/performance/frozen_encoder_batches.md

The program runs under its three schedules before, between and after PyTorch's arrangements, which pytorch/frozen_encoder.py
explains; a figure is the median of its runs, with the least and the most in the JSON. All start from pinned memory. Losses of
200 steps are compared from the same first weights on the same batches: the published ones, whose random labels nothing learns,
and handwritten digits, whose losses fall.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from programs import PyTorch, run_program

HERE = os.path.dirname(os.path.abspath(__file__))
PYTORCH = os.path.join(HERE, "pytorch", "frozen_encoder.py")
SCHEDULES = ["serial", "overlapped", "graphed"]
STANDARD = ["serial", "streams", "serial-last", "streams-last", "graph", "forked-graph"]
COMPILED = ["compiled-graph", "compiled-forked-graph"]
BFLOAT16 = ["bfloat16-serial-last", "bfloat16-graph", "bfloat16-forked-graph"]


def summary(rates: list[float], **further) -> dict:
    return {"steps_per_second": statistics.median(rates), "least": min(rates), "most": max(rates), **further}


def compare(program: str, pytorch: PyTorch, batch: int, names: list[str], rounds: int, precision: str = "tf32") -> dict:
    """One batch size: ours before, between and after groups of theirs."""
    steps = max(20, min(200, 1600 // batch))
    their_steps = max(20, steps // 2)  # three times, and each takes longer
    rates: dict[str, list[float]] = {name: [] for name in SCHEDULES}
    further: dict[str, dict] = {}
    theirs = {}

    def ours() -> None:
        for run in run_program(program, ["--backend", "cuda", "--batch", str(batch), "--steps", str(steps), "--warmup", "10",
                                         "--precision", precision, "--schedule", ",".join(SCHEDULES)])["runs"]:
            rates[run["schedule"]].append(run["steps_per_second"])
            further[run["schedule"]] = {"device_bytes": run["device_bytes"],
                                        "identical_to_serial": run["identical_to_serial"]}

    ours()
    for i in range(rounds):
        for name in names[i::rounds]:
            result = pytorch.measure(arrangement=name, batch=batch, steps=their_steps, warmup=10, repeats=3)
            theirs[name] = summary(result["steps_per_second"], allocated_bytes=result["allocated_bytes"],
                                   device_bytes=result["device_bytes"])
        ours()
    return {"batch": batch, "steps": steps, "pytorch_steps": their_steps, "precision": precision,
            "sluice": {name: summary(values, **further[name]) for name, values in rates.items()},
            "pytorch": {name: theirs[name] for name in names}}


def compare_losses(program: str, pytorch: PyTorch, data: str, batch: int, steps: int) -> dict:
    """Both from the same weights on the same batches."""
    with tempfile.TemporaryDirectory() as folder:
        start = os.path.join(folder, "start.safetensors")
        common = ["--data", data, "--batch", str(batch), "--steps", str(steps), "--warmup", "0"]
        report = run_program(program, ["--backend", "cuda", *common, "--schedule", "serial", "--losses", "--save-start", start])
        ours = report["runs"][0]["losses"]
        theirs = pytorch.measure(arrangement="serial", batch=batch, steps=steps, warmup=0, start=start,
                                 losses=True)["losses"]
    apart = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"{'synthetic data' if data == 'synthetic' else 'digits'}, {steps} steps at batch {batch}: losses from "
          f"{ours[0]:.4f} to {ours[-1]:.4f}, PyTorch's from {theirs[0]:.4f} to {theirs[-1]:.4f}, at most "
          f"{100 * apart:.5f} % apart", flush=True)
    return {"batch": batch, "steps": steps, "most_apart": apart, "sluice": ours, "pytorch": theirs}


def best(runs: dict, names: list[str]) -> tuple[str, float]:
    rates = {name: runs[name]["steps_per_second"] for name in names if name in runs}
    name = max(rates, key=rates.get)
    return name, rates[name]


def table(rows: list[dict]) -> str:
    """Markdown: each schedule beside PyTorch's best arrangement of its kind, then the best of both."""
    kinds = [("serial", ["serial", "serial-last"]), ("overlapped", ["streams", "streams-last"]),
             ("graphed", ["graph", "forked-graph", *COMPILED])]
    lines = ["| batch | " + " | ".join(f"{name}: PyTorch | sluice | ratio" for name, _ in kinds) +
             " | best to best | best to published order, races removed |",
             "| --- |" + " --- |" * (3 * len(kinds) + 2)]
    for row in rows:
        cells = [str(row["batch"])]
        for schedule, names in kinds:
            name, theirs = best(row["pytorch"], names)
            ours = row["sluice"][schedule]["steps_per_second"]
            cells += [f"{theirs:,.0f} ({name})", f"{ours:,.0f}", f"{ours / theirs:.2f} ×"]
        ours = best(row["sluice"], SCHEDULES)[1]
        cells.append(f"{ours / best(row['pytorch'], [*STANDARD, *COMPILED])[1]:.2f} ×")
        cells.append(f"{ours / row['pytorch']['streams']['steps_per_second']:.2f} ×")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def memory_table(row: dict) -> str:
    lines = [f"Peak device memory at batch {row['batch']}, MB:", "",
             "| | in tensors | of the device |", "| --- | --- | --- |"]
    for framework in ("pytorch", "sluice"):
        for name, run in row[framework].items():
            tensors = f"{run['allocated_bytes'] / 1e6:,.0f}" if "allocated_bytes" in run else ""
            lines.append(f"| {framework}, {name} | {tensors} | {run['device_bytes'] / 1e6:,.0f} |")
    return "\n".join(lines)


def bfloat16_table(rows: list[dict], tf32_rows: list[dict]) -> str:
    """Markdown: ours with a frozen encoder in bfloat16, beside TF32's, and PyTorch's best under autocast."""
    lines = ["With bfloat16, ours in the frozen encoder, PyTorch under autocast:",
             "| batch | " + " | ".join(f"sluice, {name} (tf32)" for name in SCHEDULES) +
             " | PyTorch's best | best to best | MB of the device, graphed: sluice, PyTorch's best |",
             "| --- |" + " --- |" * (len(SCHEDULES) + 3)]
    for row, tf32 in zip(rows, tf32_rows):
        cells = [str(row["batch"])]
        for name in SCHEDULES:
            cells.append(f"{row['sluice'][name]['steps_per_second']:,.0f} "
                         f"({tf32['sluice'][name]['steps_per_second']:,.0f})")
        name, theirs = best(row["pytorch"], BFLOAT16)
        cells += [f"{theirs:,.0f} ({name})", f"{best(row['sluice'], SCHEDULES)[1] / theirs:.2f} ×",
                  f"{row['sluice']['graphed']['device_bytes'] / 1e6:,.0f}, "
                  f"{row['pytorch'][name]['device_bytes'] / 1e6:,.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="examples/frozen_encoder, compiled")
    parser.add_argument("--batches", default="1,2,4,8,16,32,64,128")
    parser.add_argument("--rounds", type=int, default=3, help="how often ours runs after the first time")
    parser.add_argument("--compiled", action="store_true", help="also through torch.compile")
    parser.add_argument("--bfloat16", action="store_true",
                        help="also, apart, our frozen encoder in bfloat16 and PyTorch under autocast to it")
    parser.add_argument("--published", type=int, default=0, metavar="RUNS", help="the published loop as it stands")
    parser.add_argument("--losses", type=int, default=200, metavar="STEPS", help="0: do not compare losses")
    parser.add_argument("--digits", default=os.path.join(HERE, "..", "examples", "data", "digits"),
                        help="the folder of the digits")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("argument --rounds: expected at least 1")
    batches = arguments.batches.split(",")
    if not all(text.isdecimal() and int(text) > 0 for text in batches):
        parser.error(f"argument --batches: {arguments.batches} was given, expected numbers above 0, with commas between")
    if not os.access(arguments.program, os.X_OK):
        parser.error(f"argument program: {arguments.program} cannot be run")

    batches = [int(text) for text in batches]
    names = STANDARD + (COMPILED if arguments.compiled else [])
    pytorch = PyTorch(PYTORCH)
    report = {"experiment": "frozen_encoder", "device": pytorch.about["device"],
              "framework": pytorch.about["framework"], "rows": []}
    if arguments.bfloat16:
        report["bfloat16_rows"] = []

    def save() -> None:
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)

    print(f"{report['device']}, {report['framework']}; steps per second\n")
    for batch in batches:
        report["rows"].append(compare(arguments.program, pytorch, batch, names, arguments.rounds))
        save()
        print(table(report["rows"][-1:]).splitlines()[-1], flush=True)
        if arguments.bfloat16:
            report["bfloat16_rows"].append(
                compare(arguments.program, pytorch, batch, BFLOAT16, arguments.rounds, "bfloat16"))
            save()
    print("\n" + table(report["rows"]) + "\n")
    for row in report["rows"]:
        if row["batch"] == 8:
            print(memory_table(row) + "\n")
    if arguments.bfloat16:
        print(bfloat16_table(report["bfloat16_rows"], report["rows"]) + "\n")
    if arguments.losses > 0:
        report["losses"] = {name: compare_losses(arguments.program, pytorch, data, 8, arguments.losses)
                            for name, data in (("synthetic", "synthetic"), ("digits", arguments.digits))}
    pytorch.close()
    if arguments.published > 0:
        path = (arguments.json or "frozen_encoder.json") + ".published"
        subprocess.run([sys.executable, PYTORCH, "--published", str(arguments.published), "--json", path], check=True)
        with open(path, encoding="utf-8") as file:
            report["published"] = json.load(file)["published"]
        os.remove(path)
    save()


if __name__ == "__main__":
    main()
