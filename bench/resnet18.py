#!/usr/bin/env python3
"""The input ladder for ResNet-18 by sluice and by PyTorch, in turns on one GPU: a table of the rungs with ratios.

    python3 bench/resnet18.py build/release/examples/resnet18/resnet18 --json resnet18.json
    python3 bench/resnet18.py PROGRAM --rungs 6,7,8 --rounds 3 --kernels

The program climbs each rung before and after PyTorch, whose rungs pytorch/resnet18.py explains; a figure is the median of its
runs, with the least and the most in the JSON. Rungs 7 and 8 stand beside `best`, too, PyTorch's fastest arrangement, and the
step alone, on a batch that is on the device already, beside that of either. Then inference of batches of 1 and 16. Losses of
100 steps are compared from the same first weights on the same tiles of photographs, at the published batches and learning
rate: rung 5, in TF32, and rung 6, in float16, where `--rungs` has them, beside how far PyTorch is from itself with channels
last: other algorithms, the same precision. Then both again, while PyTorch takes the program's weights, running statistics and
velocities every `--every` steps, so that a difference is of the steps since, and not of what training made of it. By themselves,
in about five minutes and with cuDNN's first choice of algorithms:

    python3 bench/resnet18.py build/release/examples/resnet18/resnet18 --only-losses --json losses.json

`--program-only` leaves PyTorch out, for a look at the program's rungs alone.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time

from programs import PyTorch, run_program

HERE = os.path.dirname(os.path.abspath(__file__))
PYTORCH = os.path.join(HERE, "pytorch", "resnet18.py")
# What the article reports, on a V100 with 8 virtual cores; rungs without a figure are empty.
PUBLISHED = {0: "80 ms a step", 1: "37 ms a step", 2: "1,200 or 46 ms a step", 3: "1,584", 4: "1,670", 6: "2,477", 7: "3,268"}
IMAGES = 10_000
# How far losses may be from PyTorch's, by what they are computed in.
ALLOWED = {"tf32": 0.01, "float16": 0.02, "float32": 0.01}
INFERENCE = ["eager", "graph", "graph-last", "compiled-graph"]


def summary(values: list[float], name: str, **further) -> dict:
    return {name: statistics.median(values), "least": min(values), "most": max(values), **further}


class Comparison:
    def __init__(self, arguments, pytorch: "PyTorch | None", plans: str) -> None:
        self.arguments, self.pytorch = arguments, pytorch
        self.common = ["--backend", arguments.backend, "--seed", "1"]
        self.best: list[dict] = []  # PyTorch's runs of it
        self.plans = ["--plans", plans] if arguments.backend == "cuda" else []

    def program(self, *arguments: str) -> dict:
        return run_program(self.arguments.program, [*self.common, *self.plans, *arguments])

    def rung(self, number: int) -> dict:
        """One rung: ours before and after theirs."""
        ours: list[dict] = []
        theirs: dict[str, list[dict]] = {}
        names = [str(number)] + (["best"] if number >= 7 else [])
        options = ["--rung", str(number), "--workers", str(self.arguments.workers)]
        options += ["--steps", str(self.arguments.steps)] if self.arguments.steps else []
        for turn in range(self.arguments.rounds):
            look = ["--alone", *(["--kernels"] if self.arguments.kernels else [])] if turn == 0 else []
            ours.append(self.program(*options, *look)["runs"][0])
            for name in names if self.pytorch else []:
                if name == "best" and len(self.best) > turn:  # the same for rungs 7 and 8
                    theirs.setdefault(name, []).append(self.best[turn])
                    continue
                steps = self.arguments.steps or max(20, min(200, 20_000 // ours[0]["batch"]))
                epoch = -(-IMAGES // ours[0]["batch"])
                # A brief epoch first, whose short batch has plans, and perhaps a graph, of its own.
                warmup = max(10, steps // 4, epoch if epoch <= 64 else 0)
                common = {"rung": name, "warmup": warmup, "steps": steps, "workers": self.arguments.workers}
                theirs.setdefault(name, []).append(self.pytorch.measure(**common, then_alone=turn == 0 and name == names[-1]))
                if name == "best":
                    self.best.append(theirs[name][-1])
        ours.append(self.program(*options)["runs"][0])
        rates = [run["samples_per_second"] for run in ours]
        kept = {key: value for key, value in ours[0].items() if key not in ("losses", "samples_per_second")}
        row = {"rung": number, "batch": ours[0]["batch"], "sluice": summary(rates, "samples_per_second", **kept)}
        row["pytorch"] = {
            name: summary([rate for run in runs for rate in run["samples_per_second"]], "samples_per_second",
                          allocated_bytes=runs[0]["allocated_bytes"], device_bytes=runs[0]["device_bytes"])
            for name, runs in theirs.items()}
        if theirs:
            row["pytorch_alone"] = theirs[names[-1]][0]["alone_samples_per_second"]
        return row

    def inference(self) -> list[dict]:
        rows = []
        for batch in (1, 16):
            ours: dict[str, list[float]] = {}
            theirs = {}
            for turn in range(self.arguments.rounds):
                for run in self.program("--inference", "--batch", str(batch))["runs"]:
                    ours.setdefault(run["schedule"], []).append(run["step_microseconds"])
                for name in INFERENCE[turn::self.arguments.rounds] if self.pytorch else []:
                    result = self.pytorch.measure(arrangement=name, batch=batch, steps=200, repeats=3)
                    theirs[name] = summary(result["microseconds"], "microseconds")
            rows.append({"batch": batch, "pytorch": theirs,
                         "sluice": {name: summary(values, "microseconds") for name, values in ours.items()}})
        return rows

    def losses(self, rung: int, steps: int) -> dict:
        """Both from the same weights on the same batches of real images, at the rung's published batch."""
        times = [time.monotonic()]
        algorithms = ["--algorithms", "heuristic"] if self.arguments.only_losses else []
        with tempfile.TemporaryDirectory() as folder:
            start = os.path.join(folder, "start.safetensors")
            checkpoints, every = os.path.join(folder, "after-{step}.safetensors"), self.arguments.every
            report = self.program("--data", "tiles", "--rung", str(rung), "--steps", str(steps), "--warmup", "0",
                                  "--rate", self.arguments.rate, "--schedule", "serial", "--losses", "--save-start", start,
                                  "--checkpoint", checkpoints, "--checkpoint-every", str(every), *algorithms,
                                  *(["--workers", str(self.arguments.workers)] if self.arguments.backend == "cuda" else []))
            run = report["runs"][0]
            times.append(time.monotonic())
            on_cpu = {"device": "cpu", "side": 40} if self.arguments.backend == "host" else {}
            theirs = {}
            for taking in ({}, {"checkpoints": checkpoints, "every": every}):
                for last in (False, True):
                    answer = self.pytorch.measure(rung=str(rung), batch=run["batch"], steps=steps, warmup=0, start=start,
                                                  losses=True, workers=self.arguments.workers, channels_last=last, **taking,
                                                  **on_cpu)
                    theirs[bool(taking), last] = answer["losses"]
                    times.append(time.monotonic())
        return compared(run, theirs, every, [end - begin for begin, end in zip(times, times[1:])])


def apart(a: list[float], b: list[float]) -> dict:
    """How far losses are apart: step by step, and as means of ten steps."""
    steps = [abs(x - y) / abs(y) for x, y in zip(a, b)]
    worst = max(range(len(steps)), key=steps.__getitem__)
    windows = [abs(sum(a[i:i + 10]) / sum(b[i:i + 10]) - 1) for i in range(len(a) - 9)] or [max(steps)]
    return {"most": steps[worst], "step": worst, "first_ten": max(steps[:10]), "windows": max(windows)}


def compared(run: dict, theirs: dict[tuple[bool, bool], list[float]], every: int, seconds: list[float]) -> dict:
    """How far a run's losses are from PyTorch's, and those from PyTorch's own with channels last; prints it. The keys of
    `theirs`: whether PyTorch took the run's weights every so many steps, and whether its channels were last."""
    ours = run["losses"]
    if {len(losses) for losses in theirs.values()} != {len(ours)} or not all(map(math.isfinite, sum(theirs.values(), ours))):
        sys.exit(f"rung {run['rung']}: {[len(ours), *map(len, theirs.values())]} losses, expected as many, all finite")
    allowed = ALLOWED[run["precision"]]
    print(f"rung {run['rung']}, {run['precision']}, {run['batch']} images a batch, {len(ours)} steps: losses from "
          f"{ours[0]:.4f} to {ours[-1]:.4f}, PyTorch's to {theirs[False, False][-1]:.4f}; expected at most {100 * allowed:g} % "
          f"apart ({', '.join(f'{second:.0f}' for second in seconds)} s)")
    result = {"rung": run["rung"], "batch": run["batch"], "steps": len(ours), "precision": run["precision"], "every": every,
              "sluice": ours}
    for taking, name in ((False, "from the first weights on"), (True, f"from the same weights every {every} steps")):
        of = {"sluice": apart(ours, theirs[taking, False]),
              "PyTorch with channels last": apart(theirs[taking, True], theirs[taking, False])}
        mine, own = of.values()
        is_held = mine["most"] <= allowed
        is_near = all(mine[how] <= max(allowed, own[how]) for how in ("most", "windows"))
        verdict = "held" if is_held else "NOT HELD, but no further than PyTorch is from itself" if is_near else "NOT HELD"
        print(f"  {name}: {verdict}")
        for who, how in of.items():
            print(f"    {who}: at most {100 * how['most']:.3f} % apart, in step {how['step']}, {100 * how['first_ten']:.3f} % in "
                  f"the first ten steps, {100 * how['windows']:.3f} % as means of ten steps", flush=True)
        result[name] = {"apart": of, "is_held": is_held, "is_near": is_near, "pytorch": theirs[taking, False],
                        "pytorch_channels_last": theirs[taking, True]}
    result["is_right"] = all(way["is_held"] or way["is_near"] for way in result.values() if isinstance(way, dict))
    return result


def table(rows: list[dict]) -> str:
    """Markdown: a line for each rung."""
    lines = ["| rung | batch | published | PyTorch | sluice | ratio | the step alone: PyTorch, sluice | at work | device MB |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        ours = row["sluice"]
        rates = {name: run["samples_per_second"] for name, run in row["pytorch"].items()}
        theirs = ", ".join(f"{'best: ' if name == 'best' else ''}{rate:,.0f}" for name, rate in rates.items())
        ratio = f"{ours['samples_per_second'] / max(rates.values()):.2f} ×" if rates else ""
        alone = f"{row['pytorch_alone']:,.0f}, " if "pytorch_alone" in row else ""
        lines.append(f"| {row['rung']} | {row['batch']} | {PUBLISHED.get(row['rung'], '')} | {theirs} | "
                     f"{ours['samples_per_second']:,.0f} | {ratio} | {alone}{ours['samples_per_second_alone']:,.0f} | "
                     f"{100 * ours['at_work_share']:.1f} % | {ours['device_bytes'] / 1e6:,.0f} |")
    lines += ["", *(f"- rung {row['rung']}: {row['sluice']['bound']}" for row in rows)]
    return "\n".join(lines)


def inference_table(rows: list[dict]) -> str:
    lines = ["| inference, µs | " + " | ".join(f"PyTorch, {name}" for name in INFERENCE) +
             " | sluice, launched | sluice, a graph | best to best |", "| --- |" + " --- |" * (len(INFERENCE) + 3)]
    for row in rows:
        theirs = {name: run["microseconds"] for name, run in row["pytorch"].items()}
        ours = {name: run["microseconds"] for name, run in row["sluice"].items()}
        cells = [f"batch {row['batch']}", *(f"{theirs[name]:,.0f}" if name in theirs else "" for name in INFERENCE),
                 *(f"{ours[name]:,.0f}" for name in ("serial", "graphed"))]
        cells.append(f"{min(theirs.values()) / min(ours.values()):.2f} ×" if theirs else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="examples/resnet18, compiled")
    parser.add_argument("--rungs", default="0,1,2,3,4,5,6,7,8")
    parser.add_argument("--rounds", type=int, default=2, help="how often PyTorch runs; ours runs once more")
    parser.add_argument("--steps", type=int, default=0, help="timed steps of a run (default: by the batch)")
    parser.add_argument("--workers", type=int, default=8, help="threads, or PyTorch's processes, that load from rung 1 on")
    parser.add_argument("--kernels", action="store_true", help="also record each rung's kernels, in its first run")
    parser.add_argument("--no-inference", action="store_true", help="do not measure inference")
    parser.add_argument("--losses", type=int, default=100, metavar="STEPS", help="0: do not compare losses")
    parser.add_argument("--rate", default="published", choices=["published", "falling"], help="with which losses are compared")
    parser.add_argument("--every", type=int, default=10, metavar="STEPS",
                        help="how often PyTorch takes the program's weights where losses are compared again")
    parser.add_argument("--only-losses", action="store_true", help="compare losses, and end: with 1 where they are further apart than allowed, and than PyTorch's own")
    parser.add_argument("--plans", help="where cuDNN's plans are kept (default: a file for this run)")
    parser.add_argument("--program-only", action="store_true", help="leave PyTorch out")
    parser.add_argument("--backend", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.every < 1:
        parser.error(f"argument --{'rounds' if arguments.rounds < 1 else 'every'}: expected at least 1")
    if arguments.only_losses and (arguments.program_only or arguments.losses < 1):
        parser.error("argument --only-losses: expected no --program-only, and at least 1 for --losses")
    texts = arguments.rungs.split(",")
    if not all(text.isdecimal() and int(text) <= 8 for text in texts):
        parser.error(f"argument --rungs: {arguments.rungs} was given, expected numbers from 0 to 8, with commas between")
    rungs = [int(text) for text in texts]
    with_losses = [rung for rung in (5, 6) if rung in rungs]
    if arguments.only_losses and not with_losses:
        parser.error(f"argument --only-losses: expected 5 or 6 among --rungs, not {arguments.rungs}")
    if not os.access(arguments.program, os.X_OK):
        parser.error(f"argument program: {arguments.program} cannot be run")

    on_cpu = ["--device", "cpu"] if arguments.backend == "host" else []  # where only losses can be compared
    pytorch = None if arguments.program_only else PyTorch(PYTORCH, *on_cpu)
    report = {"experiment": "resnet18", "device": pytorch.about["device"] if pytorch else arguments.backend,
              "framework": pytorch.about["framework"] if pytorch else "", "rows": []}

    def save() -> None:
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)

    print(f"{report['device']}, {report['framework']}; samples per second\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, pytorch, arguments.plans or os.path.join(folder, "plans"))
        for number in [] if arguments.only_losses else rungs:
            report["rows"].append(comparison.rung(number))
            save()
            print(table(report["rows"][-1:]).splitlines()[2], flush=True)
        if report["rows"]:
            print("\n" + table(report["rows"]) + "\n", flush=True)
        if not arguments.no_inference and not arguments.only_losses:
            report["inference"] = comparison.inference()
            save()
            print(inference_table(report["inference"]) + "\n", flush=True)
        if arguments.losses > 0 and pytorch:
            report["losses"] = [comparison.losses(rung, arguments.losses) for rung in with_losses]
    if pytorch:
        pytorch.close()
    save()
    if arguments.only_losses and not all(row["is_right"] for row in report["losses"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
