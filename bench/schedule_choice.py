#!/usr/bin/env python3
"""What Schedule::automatic chooses in the experiments, beside every schedule measured: schedule_choice.cu's table for programs.

    python3 bench/schedule_choice.py build/release/examples --json schedule_choice.json
    python3 bench/schedule_choice.py build/release/examples --only digits --rounds 2
    python3 bench/schedule_choice.py build/host/examples --backend host --steps 400 --batches 1 --only box

The frozen encoder and training beside augmentation on random images, the detector with its box loss on digits, and the frozen
encoder on digits with 1 to 8 workers. One process runs a case: serial, overlapped, graphed and automatic, and the same
backwards, so that a drift of the machine meets all alike; `--rounds` repeats that. The clock of an automatic run starts when it
has decided. The table shows medians in steps per second.

`best/` is the best schedule's rate over automatic's of the same half of a process, the middle of all halves.
A case misses where that is above 1.03 and automatic was slower in each half: two runs of the same schedule differ as well.
Where a run ended undecided, the case misses. Aims: 90 % of the cases do not miss, and none is more than 10 % slower than serial
by the same rule; exits with 1 otherwise.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile

from programs import run_program

SCHEDULES = ["serial", "overlapped", "graphed"]
ORDER = [*SCHEDULES, "automatic", "automatic", *reversed(SCHEDULES)]
DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "examples", "data", "digits")


def cases(arguments) -> list[tuple[str, str, list[str], int]]:
    """Name, program, its arguments, and steps: at least twice as many as automatic takes to decide."""
    digits = ["--data", arguments.data]
    every = []

    def add(name: str, program: str, steps_by_batch: dict[int, int], *further: str) -> None:
        batches = arguments.batches or list(steps_by_batch)
        every.extend((f"{name}, batch {batch}", program, ["--batch", str(batch), *further],
                      steps_by_batch.get(batch, max(steps_by_batch.values()))) for batch in batches)

    add("frozen encoder", "frozen_encoder", {1: 2200, 8: 2000, 32: 1400})
    add("augmentation", "gpu_augment", {8: 1800, 32: 1400}, "--augment", "device")
    add("box loss", "masked_giou", {8: 3000, 32: 3000, 128: 2500}, "--part", "train", *digits)
    every.extend((f"digits, {workers} worker{'s' if workers > 1 else ''}", "frozen_encoder",
                  [*digits, "--workers", str(workers)], 4000 if workers > 1 else 2500) for workers in arguments.workers)
    return every


def choice_of(run: dict) -> tuple[str, int]:
    """What an automatic run chose, and after how many batches; empty where it has not decided."""
    for note in run.get("notes", []):
        found = re.match(r"(.*?) was chosen after ([0-9]+) batches", note)
        if found:
            return found.group(1), int(found.group(2))
    return "", 0


def is_slower(ours: list[float], others: list[float], most: float) -> tuple[bool, float]:
    """Whether steps come slower than the others' by more than `most`, in each pair of runs; and the pairs' middle ratio."""
    ratios = [other / rate for rate, other in zip(ours, others)]
    middle = statistics.median(ratios)
    return middle > most and min(ratios) > 1, middle


def measure(program: str, options: list[str], rounds: int) -> dict:
    rates: dict[str, list[float]] = {}
    choices, notes = [], {}
    for _ in range(rounds):
        for run in run_program(program, [*options, "--schedule", ",".join(ORDER)])["runs"]:
            if run.get("part", "train") != "train":  # such as a copy alone
                continue
            rates.setdefault(run["schedule"], []).append(run["steps_per_second"])
            notes[run["schedule"]] = run.get("notes", [])
            if run["schedule"] == "automatic":
                choices.append(choice_of(run))
            if run.get("identical_to_serial") is False:
                sys.exit(f"{program} {' '.join(options)}: {run['schedule']} gave other bits than serial")
    best = max(SCHEDULES, key=lambda name: statistics.median(rates[name]))
    slow, ratio = is_slower(rates["automatic"], rates[best], 1.03)
    behind_serial, _ = is_slower(rates["automatic"], rates["serial"], 1.10)
    decided = all(name for name, _ in choices)
    return {"steps_per_second": {name: statistics.median(values) for name, values in rates.items()}, "runs": rates,
            "best": best, "best_over_automatic": ratio, "is_within": decided and not slow,
            "is_slower_than_serial": behind_serial, "choices": choices, "notes": notes}


def line(name: str, row: dict) -> str:
    rates = row["steps_per_second"]
    chosen = "; ".join(sorted({choice or "undecided" for choice, _ in row["choices"]}))
    after = max(batches for _, batches in row["choices"])
    return (f"{name:26}" + "".join(f"{rates[way]:11,.1f}" for way in [*SCHEDULES, "automatic"]) +
            f"{row['best_over_automatic']:7.3f} {'yes' if row['is_within'] else 'NO':6} {after:6} {chosen}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", help="the folder examples of a build")
    parser.add_argument("--only", default="", help="cases whose names begin so")
    parser.add_argument("--rounds", type=int, default=1, help="processes a case, each with two runs of a schedule")
    parser.add_argument("--steps", type=int, default=0, help="timed steps of a run (default: by the case)")
    parser.add_argument("--warmup", type=int, default=60)
    parser.add_argument("--batches", help="batch sizes, with commas between (default: by the experiment)")
    parser.add_argument("--workers", default="1,2,4,8", help="that fill batches of digits, with commas between")
    parser.add_argument("--data", default=os.path.relpath(DIGITS), help="the folder of digits")
    parser.add_argument("--backend", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    for name in ("batches", "workers"):
        text = getattr(arguments, name)
        numbers = text.split(",") if text else []
        if not all(number.isdecimal() and int(number) > 0 for number in numbers):
            parser.error(f"argument --{name}: {text} was given, expected numbers from 1 on, with commas between")
        setattr(arguments, name, [int(number) for number in numbers])
    if arguments.rounds < 1 or arguments.steps < 0:
        parser.error("argument --rounds, --steps: expected at least 1")

    rows = []
    print(f"{'steps a second':26}{'serial':>11}{'overlapped':>11}{'graphed':>11}{'automatic':>11}  best/ within  after chosen",
          flush=True)
    with tempfile.TemporaryDirectory() as folder:
        encoder = os.path.join(folder, "encoder.safetensors")
        wanted = [case for case in cases(arguments) if case[0].startswith(arguments.only)]
        if not wanted:
            parser.error(f"argument --only: no case's name begins with {arguments.only}")
        for name, program, options, steps in wanted:
            path = os.path.join(arguments.programs, program, program)
            if not os.access(path, os.X_OK):
                parser.error(f"argument programs: {path} cannot be run")
            common = ["--backend", arguments.backend, "--steps", str(arguments.steps or steps),
                      "--warmup", str(arguments.warmup)]
            if name.startswith("digits"):  # The first one trains the encoder, the others take it.
                common += ["--load-encoder" if os.path.exists(encoder) else "--save-encoder", encoder]
            row = measure(path, [*common, *options], arguments.rounds)
            rows.append({"case": name, **row})
            print(line(name, row), flush=True)
            if arguments.json:
                with open(arguments.json, "w", encoding="utf-8") as file:
                    json.dump(rows, file, indent=1)
    within = sum(row["is_within"] for row in rows)
    slower = sum(row["is_slower_than_serial"] for row in rows)
    print(f"{len(rows)} cases: within 3 % of the best {within}, more than 10 % slower than serial {slower}")
    sys.exit(1 if 10 * within < 9 * len(rows) or slower else 0)


if __name__ == "__main__":
    main()
