#!/usr/bin/env python3
"""Removes what orders or guards work in include/sluice, one place at a time, and runs the tests that should notice.

    tests/mutate.py                       builds, runs, and prints what was killed and what survived
    tests/mutate.py --only REGEX          of the places whose file or text matches
    tests/mutate.py --class race          those that only the thread sanitizer can see (built with it)
    tests/mutate.py --class checker       those that order memory, each to be reported by the race checker, whatever the tests say
    tests/mutate.py --operators           changes operators, constants, conditions and assignments instead, a seeded share
    tests/mutate.py --list-unlisted       lines that look like such a place and are not in tests/mutants/*.places

tests/mutants/README.md says how the lists are written. All places are compiled into each test program at once, each behind a
switch, so that a program is built once and run once for each place. Host backend only; needs clang++ and doctest.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "mutants"))
import operator_run  # noqa: E402
import places as lists  # noqa: E402
from programs import JUDGE, SWITCH, Program, digest  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
INCLUDE = ROOT / "include" / "sluice"

def switched(place, number):
    """The C++ text that does what `place` does unless mutant `number` is chosen."""
    keep = f"::sluice_mutants::keep({number})"
    part = place.part
    lock = re.fullmatch(r"(?:const )?std::(?:lock_guard|unique_lock|scoped_lock) (\w+)\((.*)\);", part, re.S)
    if lock:
        return f"const auto {lock[1]} = ::sluice_mutants::locked({lock[2]}, {keep});"
    guard = re.fullmatch(r"(?:const )?(\w+)(<[^()]*>)? (\w+)\((.*)\);", part, re.S)
    if guard and place.replaced is None and guard[1] in ("DeviceGuard", "Guard", "SourceGuard"):
        kind = guard[1] + (guard[2] or "")
        return f"std::optional<{kind}> {guard[3]}; if ({keep}) {guard[3]}.emplace({guard[4]});"
    if part.startswith("std::memory_order_"):
        return f"({keep} ? {part} : std::memory_order_relaxed)"
    if part.endswith((";", "}")):
        other = f" else {place.replaced}" if place.replaced is not None else ""
        return f"{{ if ({keep}) {{ {part} }}{other} }}"
    return f"({keep} ? ({part}) : ({place.replaced}))"


def write_mutated(places, to):
    """The headers with all places switched, and what the switches need."""
    by_file = {}
    for number, place in enumerate(places):
        by_file.setdefault(place.file, []).append((place, number))
    for source in sorted(INCLUDE.rglob("*")):
        if source.is_dir():
            continue
        name = str(source.relative_to(INCLUDE))
        text = source.read_text()
        for place, number in sorted(by_file.get(name, []), key=lambda of: -of[0].begin):
            text = text[:place.begin] + switched(place, number) + text[place.end:]
        target = to / "sluice" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    header = to / "sluice_mutants.hpp"
    text = SWITCH.replace("@COUNT@", str(max(1, len(places))))
    if not header.exists() or header.read_text() != text:
        header.write_text(text)


def prepare(programs, include, common, jobs):
    def one(program):
        program.build(include, common)
        if not program.problem:
            failed = program.run(-1, 120)
            if failed:
                program.problem = f"fails without a mutant: {failed}"
        return program

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program in pool.map(one, programs):
            print(f"# {program.test}: {program.problem or f'{program.seconds:.2f} s, reaches {len(program.reached)}'}",
                  flush=True)


def judge(place, number, programs, repeats):
    """What kills the mutant, or '' and how many programs have reached it."""
    reaching = [programs[test] for test in place.tests if test in programs and number in programs[test].reached]
    for _ in range(repeats):
        for program in reaching:
            notice = program.run(number, program.limit())
            if notice:
                return f"{program.test} ({notice})", len(reaching)
    return "", len(reaching)


def mutate(places, chosen, options):
    work = pathlib.Path(options.work).resolve()
    include = work / "include"
    include.mkdir(parents=True, exist_ok=True)
    write_mutated(places, include)
    flags = {"race": ["-fsanitize=thread", "-g1"],
             "checker": ["-DSLUICE_CHECKED=1", "-DSLUICE_COMPILED=1", "-DSLUICE_COMPILES_BODIES"]}.get(options.klass, [])
    shared = [path for path in include.rglob("*") if path.is_file()] + list(TESTS.glob("*/*.hpp"))
    common = digest(shared, flags)
    out = work / options.klass
    out.mkdir(parents=True, exist_ok=True)
    tests = sorted({test for _, place in chosen for test in place.tests if re.search(options.tests, test)})
    checker = None
    if options.klass == "checker":
        checker = out / "checker.o"
        subprocess.run(["clang++", "-std=c++20", "-O1", "-w", *flags, "-DSLUICE_COMPILES_CHECKER", "-include",
                        str(include / "sluice_mutants.hpp"), f"-I{include}", "-c", "-x", "c++",
                        str(include / "sluice/backend/detail/checked/checker.hpp"), "-o", str(checker)], check=True)
    programs = {test: Program(test, out, flags, checker) for test in tests}
    prepare(list(programs.values()), include, common, options.jobs)
    broken = [program.test for program in programs.values() if program.problem]
    programs = {test: program for test, program in programs.items() if not program.problem}

    killed, survived = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judged = pool.map(lambda of: (of, judge(of[1], of[0], programs, options.repeats)), chosen)
        for (number, place), (by, reaching) in judged:
            if by:
                killed += 1
                print(f"killed   {place.where()}  by {by}", flush=True)
            else:
                survived.append(place)
                how = f"{reaching} programs reach it" if reaching else "no program reaches it"
                print(f"SURVIVED {place.where()}  ({how})", flush=True)
    print(f"{killed} killed, {len(survived)} survived, of {len(chosen)} places")
    for test in broken:
        print(f"left out: {test}: {test} could not be used")
    return 1 if survived or broken else 0


def expression(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"expected a regular expression, found {text!r}: {error}") from error


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def readable(path):
    try:
        return pathlib.Path(path).read_text()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"expected a former output, found {path!r}: {error}") from error


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list-unlisted", action="store_true")
    everything = re.compile("")
    parser.add_argument("--only", type=expression, default=everything, help="a regular expression that a place's file or text matches")
    parser.add_argument("--tests", type=expression, default=everything,
                        help="a regular expression that a test's name matches; others are not run")
    parser.add_argument("--again", type=readable, help="a former output: only the places that survived in it")
    parser.add_argument("--class", dest="klass", default="host", choices=["host", "race", "checker"])
    parser.add_argument("--work", default=str(ROOT / "build" / "mutants"))
    parser.add_argument("--repeats", type=positive, default=1, help="runs of each program, where they might miss it")
    parser.add_argument("-j", "--jobs", type=positive, default=os.cpu_count() or 1)
    parser.add_argument("--operators", action="store_true", help="changes of operators, constants, conditions and assignments")
    parser.add_argument("--seed", type=lambda text: [int(seed) for seed in text.split(",")], default=[1],
                        help="of --operators: which share; several as 3,4")
    parser.add_argument("--count", type=positive, default=60, help="of --operators: how many")
    parser.add_argument("--kind", type=expression, default=everything, help="of --operators: a regular expression that a kind matches")
    parser.add_argument("--budget", type=float, default=60, help="of --operators: seconds for one change")
    options = parser.parse_args()
    place = "without" if options.operators else "with"
    others = ["klass", "repeats", "list_unlisted"] if options.operators else ["seed", "count", "kind", "budget"]
    for name in others:
        if vars(options)[name] != parser.get_default(name):
            parser.error(f"--{name.replace('klass', 'class').replace('_', '-')}: expected it {place} --operators")
    return options


def main():
    options = parse()
    if options.operators:
        return operator_run.run(INCLUDE, options)
    places, rules, problems = lists.read(INCLUDE, TESTS)
    if options.klass == "checker":
        for place in places:
            place.tests = [JUDGE, *place.tests]
    for problem in problems:
        print(problem)
    if options.list_unlisted:
        unlisted = lists.unlisted(INCLUDE, places, rules)
        for line in unlisted:
            print(line)
        for rule in rules:
            if not rule.used:
                print(f"{rule.source}: no line matches the rule {rule.pattern.pattern}")
        unused = sum(not rule.used for rule in rules)
        on_gpu = sum(rule.used for rule in rules if rule.kind == "gpu")
        print(f"{len(places)} places, {on_gpu} lines for a GPU alone, {len(unlisted)} unlisted, "
              f"{len(problems) + unused} wrong entries")
        return 1 if unlisted or problems or unused else 0
    if problems:
        return 1
    former = options.again
    chosen = [(number, place) for number, place in enumerate(places)
              if (place.orders_memory() if options.klass == "checker" else place.klass == options.klass)
              and re.search(options.only, place.where())
              and (former is None or f"SURVIVED {place.where()}  (" in former)]
    if not chosen and former is None:
        print(f"mutate: no place of the class {options.klass} matches --only", file=sys.stderr)
        return 2
    return mutate(places, chosen, options)


if __name__ == "__main__":
    sys.exit(main())
