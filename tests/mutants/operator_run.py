"""Compiles the changes of operators.py into the test programs, and runs a seeded share of them."""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import threading
import time

import operators
from programs import SWITCH, TESTS, digest

A_FILE = 1000  # numbers of changes that a header has, so that one header's changes leave the others' numbers alone
WHERE = re.compile(r"include/sluice/(\S+?):(\d+):\d+: (error|note|fatal error)")
LAYERS = ("backend", "collective", "graph", "memory", "pipeline", "ragged", "random", "report")
# These need what the Host backend has not, are programs of another kind, or take very long.
LEFT_OUT = re.compile(r"/(?:gpu_\w+|\w+_gpu|device_fault|launch_errors|mpi|write_trace|browser|at_exit|long_stress|stress_races)$")


class Sources:
    """The headers, with all changes that compile switched."""

    def __init__(self, include, work):
        self.include = include
        self.mutated = work / "include"
        self.lock = threading.Lock()
        self.texts, self.changes, self.of_file = {}, {}, {}
        files = [path for path in sorted(include.rglob("*")) if path.is_file()]
        self.places = {path: index for index, path in enumerate(files)}  # which numbers a header's changes have
        for index, path in enumerate(files):
            name = str(path.relative_to(include))
            self.texts[name] = path.read_text()
            if path.suffix in (".hpp", ".inl") and not operators.NOT_HOST.search(name):
                found = operators.changes_of(name, self.texts[name])[:A_FILE]
                self.of_file[name] = [(index * A_FILE + at, change) for at, change in enumerate(found)]
                self.changes.update(self.of_file[name])
        self.count = len(files) * A_FILE
        self.note = work / "does_not_compile.json"
        self.key = digest(files + list((TESTS / "mutants").glob("*.py")), [])
        self.dropped = set()
        if self.note.exists():
            known = json.loads(self.note.read_text())
            self.dropped = {number for number, place in known if number in self.changes and self.identity(number) == place}
        for name in self.texts:
            self.write(name)
        header = self.mutated / "sluice_mutants.hpp"
        replace(header, SWITCH.replace("@COUNT@", str(self.count)))

    def identity(self, number):
        change = self.changes[number]
        return f"{change.file} {change.kind} {change.begin} {change.anchor}"

    def write(self, name):
        numbered = [of for of in self.of_file.get(name, []) if of[0] not in self.dropped]
        replace(self.mutated / "sluice" / name, operators.mutated(self.texts[name], numbered))

    def drop(self, message):
        """Leaves out what the compiler complained of. Whether there was anything."""
        with self.lock:
            for wanted in ("error", "note"):
                lines = {}  # a file's first one: what follows may be its consequence
                for of in WHERE.finditer(message):
                    if wanted in of[3]:
                        lines.setdefault(of[1], int(of[2]))
                there = [number for name, line in lines.items() for number, change in self.of_file.get(name, [])
                         if change.line <= line <= change.last_line]
                bad = [number for number in there if number not in self.dropped]
                for likely in (("arithmetic", "minmax", "exchange"), ("constant", "index"), ("assignment",)):
                    some = [number for number in bad if self.changes[number].kind in likely]
                    bad = some or bad
                    if some:
                        break
                self.dropped.update(bad)
                for name in {self.changes[number].file for number in bad}:
                    self.write(name)
                if bad:
                    self.note.write_text(json.dumps([(number, self.identity(number)) for number in sorted(self.dropped)]))
                if there:  # otherwise another program has left them out meanwhile
                    return True
        return False


def replace(path, text):
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{threading.get_ident()}")
    new.write_text(text)
    new.replace(path)


def limited():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))


class Program:
    """One test file, compiled from the changed headers."""

    def __init__(self, test, work):
        self.test, self.source, self.binary = test, TESTS / (test + ".cpp"), work / test.replace("/", "_")
        self.layer, self.words = test.split("/")[0], set(test.split("/")[1].split("_"))
        self.reached, self.seconds, self.problem = set(), 0.0, ""

    def command(self, sources, work):
        text = self.source.read_text()
        extra = [str(work / "main.o")]
        if "heap_count.hpp" in text or "steady_case.hpp" in text:
            extra.append(str(work / "heap_count.o"))
        checked = ["-DSLUICE_CHECKED=1"] if re.search("checked|/stress$", self.test) else []
        # Sorting and scanning long rows takes too long otherwise.
        speed = "-O1" if re.search("^ragged/(?:rows_|reshape_)", self.test) else "-O0"
        return ["clang++", "-std=c++20", speed, "-w", "-DSLUICE_HAS_CUDA=0", "-D_GLIBCXX_ASSERTIONS", *checked, "-ferror-limit=0",
                "-fuse-ld=lld", "-MD", "-MF", str(self.binary) + ".d", f'-DSLUICE_TEST_DATA_DIR="{TESTS}/data"', "-include",
                str(sources.mutated / "sluice_mutants.hpp"), f"-I{sources.mutated}", f"-I{TESTS}", str(self.source), *extra,
                "-pthread", "-o", str(self.binary)]

    def key(self, sources, command):
        depends = pathlib.Path(str(self.binary) + ".d")
        if not depends.exists():
            return ""
        files = set()
        for file in depends.read_text().replace("\\\n", " ").split()[1:]:
            path = pathlib.Path(file)
            if path.is_relative_to(sources.mutated / "sluice"):
                path = sources.include / path.relative_to(sources.mutated / "sluice")
            if path.is_file() and path.is_relative_to(TESTS.parent):
                files.add(path)
        numbers = [str(sources.places[path]) for path in sorted(files) if path in sources.places]
        return digest(sorted(files | {TESTS / "mutants/operators.py", TESTS / "mutants/cpp_tokens.py"}), command + numbers)

    def build(self, sources, work):
        command = self.command(sources, work)
        note = pathlib.Path(str(self.binary) + ".key")
        if self.binary.exists() and note.exists() and note.read_text() == self.key(sources, command):
            return
        self.binary.unlink(missing_ok=True)
        for _ in range(80):
            built = subprocess.run(command, capture_output=True, text=True)
            if built.returncode == 0:
                note.write_text(self.key(sources, command))
                return
            if not sources.drop(built.stderr):
                break
        self.problem = "does not compile:\n" + built.stderr[:3000]

    def run(self, number, limit):
        environment = dict(os.environ, SLUICE_MUTANT=str(number), SLUICE_HOST_DEVICES="3", SLUICE_TEST_EXPECTED_DEVICES="3")
        reached = pathlib.Path(str(self.binary) + ".reached")
        if number < 0:
            environment["SLUICE_MUTANTS_REACHED"] = str(reached)
            reached.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            ended = subprocess.run([str(self.binary), "-aa=1"], env=environment, timeout=limit, capture_output=True,
                                   preexec_fn=limited)
        except subprocess.TimeoutExpired:
            return "hangs"
        if number < 0:
            self.seconds = time.monotonic() - begun
            self.reached = {int(line) for line in reached.read_text().split()} if reached.exists() else set()
        return "" if ended.returncode == 0 else f"exit {ended.returncode}"

    def nearness(self, change):
        words = set(re.split(r"[/_.]", change.file)) & self.words
        return (-len(words), self.layer != change.file.split("/")[0], self.seconds)


def prepare(sources, work, options):
    work.mkdir(parents=True, exist_ok=True)
    for name in ("main", "heap_count"):  # apart: the list of what a program depends on is of one source
        subprocess.run(["clang++", "-std=c++20", "-w", "-DSLUICE_HAS_CUDA=0", "-include", str(sources.mutated / "sluice_mutants.hpp"),
                        f"-I{sources.mutated}", f"-I{TESTS}", "-c", str(TESTS / f"support/{name}.cpp"), "-o", str(work / f"{name}.o")],
                       check=True)
    tests = [f"{path.parent.name}/{path.stem}" for layer in LAYERS for path in sorted((TESTS / layer).glob("*.cpp"))]
    tests = [test for test in tests if not LEFT_OUT.search(test) and re.search(options.tests, test)]
    programs = [Program(test, work) for test in tests]

    def one(program):
        program.build(sources, work)
        if not program.problem:
            failed = program.run(-1, 120)
            if failed and failed != "hangs":  # some look at the time, and the machine may be busy
                failed = program.run(-1, 120)
            if failed:
                program.problem = f"fails without a mutant: {failed}"
        return program

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for program in pool.map(one, programs):
            print(f"# {program.test}: {program.problem or f'{program.seconds:.2f} s, reaches {len(program.reached)}'}", flush=True)
    return [program for program in programs if not program.problem]


def judge(number, change, programs, budget):
    """What kills the change, or '', and how many programs have run of how many that reach it."""
    reaching = sorted((program for program in programs if number in program.reached), key=lambda of: of.nearness(change))
    begun = time.monotonic()
    for ran, program in enumerate(reaching):
        if time.monotonic() - begun > budget:
            return "", ran, len(reaching)
        notice = program.run(number, 5 + 5 * program.seconds)
        if notice:
            return f"{program.test} ({notice})", ran + 1, len(reaching)
    return "", len(reaching), len(reaching)


def chosen_changes(sources, options, seed, reached=None):
    """A share of those that compile, and that are not made at compile time alone."""
    former = options.again
    order = sorted(sources.changes)
    random.Random(seed).shuffle(order)
    wanted = [number for number in order if re.search(options.only, sources.changes[number].where())
              and re.search(options.kind, sources.changes[number].kind) and number not in sources.dropped
              and (reached is None or number in reached or not sources.changes[number].at_compile_time)]
    if former is not None:
        return [number for number in wanted if re.search(r"^(?:SURVIVED|NOT REACHED)  " + re.escape(bare(sources.changes[number].where())),
                                                         re.sub(r"(?m)^((?:SURVIVED|NOT REACHED)  \S+?):\d+:", r"\1:", former), re.M)]
    return wanted[:options.count]


def bare(where):
    """Without the number of the line, which other edits move."""
    return re.sub(r":\d+:", ":", where, count=1)


def run(include, options):
    work = pathlib.Path(options.work).resolve() / "operators"
    work.mkdir(parents=True, exist_ok=True)
    problems = []
    reasons = operators.read_reasons(TESTS / "mutants" / "equivalent.txt", problems)
    sources = Sources(include, work)
    if problems:
        print("\n".join(problems))
        return 1
    programs = prepare(sources, work, options)
    reached = set().union(*(program.reached for program in programs))
    survived = sum(judge_share(sources, programs, reasons, options, seed, reached) for seed in options.seed)
    return 1 if survived else 0


def judge_share(sources, programs, reasons, options, seed, reached):
    """Judges a seed's share of the changes. How many survive without a reason."""
    chosen = chosen_changes(sources, options, seed, reached)
    killed, excused, survived, unreached = 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judged = pool.map(lambda of: (of, judge(of, sources.changes[of], programs, options.budget)), chosen)
        for number, (by, ran, reaching) in judged:
            change = sources.changes[number]
            reason = next((reason.why for reason in reasons if reason.holds(change)), "")
            if by:
                killed += 1
                print(f"killed      {change.where()}  by {by}", flush=True)
            elif reason:
                excused += 1
                print(f"equivalent  {change.where()}  ({reason})", flush=True)
            else:
                survived += 1
                unreached += reaching == 0
                print(f"{'SURVIVED' if reaching else 'NOT REACHED'}  {change.where()}  ({ran} of {reaching} programs)", flush=True)
    print(f"seed {seed}: of {len(chosen)} changes {killed} killed, {excused} survived with a reason, {survived} without one, "
          f"{unreached} of them not reached; {len(sources.changes)} changes, {len(sources.dropped)} do not compile", flush=True)
    return survived
