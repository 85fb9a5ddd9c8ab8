#!/usr/bin/env python3
"""Tests bench/figures, which compares the pages of docs/performance with a run: on the true pages, whose tables must all be in its
list or left out of it, and on made-up ones. figures.py ROOT"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench" / "figures"))

import lanes  # noqa: E402
from check import compare, show, write  # noqa: E402
from entries import ENTRIES, LEFT_OUT  # noqa: E402
from pages import read_pages, unlisted_tables  # noqa: E402
from query import H100, US, named, of, sentence, table  # noqa: E402
from runs import RESERVED, Run, of_benchmark  # noqa: E402

PAGE = """# Made up

## Steps

| ns a step | by hand | sluice | ratio | commit |
| --- | --- | --- | --- | --- |
| `serial` | 1,000; 1,020; 1,040 | 1,030; 1,040; 1,050 | 1.020 | abc |
| **graphed** | 500 | 20 [19, 21] | 0.040 | abc |

## Ages

| loop | p50 | p99 | again: p50 |
| --- | --- | --- | --- |
| one | 2.0 | 3.0 | 4.0 |
| one | 5.0 | 6.0 | 7.0 |

By hand it takes 12 µs, and with `sluice` 3.4.
"""
STEPS = table("made_up.md", "Steps", [("by hand", of("baseline_ns")), ("sluice", of("step_ns")), ("ratio", of("step_ns", over="baseline_ns"))],
              named({"serial": "cuda/serial", "graphed": "cuda/graphed"}), file="steps_*.json")
AGES = table("made_up.md", "Ages", [("p50", {"value": 0}), ("p99", {"value": 1}), ("again: p50", {"value": 2})],
             [("one", {"line": "(a) one", "at": 0}), ("one", {"line": "(a) one", "at": 1})], file="ages.txt", against="p50")
WORDS = sentence("made_up.md", r"takes (\d+) µs, and with sluice ([\d.]+)\.", of("hand"), of("ours"), file="words.json")
LISTED = [STEPS, AGES, WORDS]


def benchmark(name, **values):
    return {"name": f"{name}/iterations:5/manual_time", "run_type": "iteration", **values}


class MadeUp(unittest.TestCase):
    """A folder with a page, and one with reports that agree with it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pages, self.out = Path(folder.name, "pages"), Path(folder.name, "out")
        self.pages.mkdir()
        self.out.mkdir()
        (self.pages / "made_up.md").write_text(PAGE, encoding="utf-8")
        for turn, (by_hand, ours) in enumerate(((1000, 1030), (1020, 1040), (1040, 1050)), 1):
            self.report(f"steps_{turn}.json", {"benchmarks": [
                benchmark("cuda/serial", baseline_ns=by_hand, step_ns=ours),
                benchmark("cuda/graphed", baseline_ns=500 + turn, step_ns=18 + turn),
                {"name": "cuda/serial/iterations:5/manual_time_mean", "run_type": "aggregate", "step_ns": 1e9}]})
        (self.out / "ages.txt").write_text("(a) one more   9 9 9\n(a) one   2.01 3.0 4.0\n(a) one   5.0 6.0 7.0\n", encoding="utf-8")
        self.report("words.json", {"hand": 12, "ours": 3.42})
        self.machine("NVIDIA H200")

    def report(self, name, content):
        (self.out / name).write_text(json.dumps(content), encoding="utf-8")

    def machine(self, *names):
        (self.out / "machine.txt").write_text("".join(f"1 {name}, 580, commit abc\n" for name in names), encoding="utf-8")

    def check(self, entries=None):
        """What is printed, and the exit code."""
        figures, _, missing = read_pages(self.pages, LISTED if entries is None else entries)
        self.assertEqual(missing, [])
        run, printed = Run(str(self.out)), io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = show(compare(figures, run), run)
        return printed.getvalue(), code

    def part(self, text, title):
        """The lines below a title."""
        after = text.split(f"\n{title}", 1)
        return after[1].split("\n\n")[0].splitlines()[1:] if len(after) == 2 else []

    def test_a_run_that_agrees(self):
        text, code = self.check()
        self.assertEqual(code, 0, text)
        self.assertIn("18 of 18 figures were measured, and 0 moved", text)
        self.assertIn("measured on 1 NVIDIA H200, 580, commit abc", text)

    def test_what_moved_comes_first_and_ratios_before_times(self):
        self.report("words.json", {"hand": 12, "ours": 9.9})
        for turn in (1, 2, 3):
            self.report(f"steps_{turn}.json", {"benchmarks": [benchmark("cuda/serial", baseline_ns=1020, step_ns=2040),
                                                              benchmark("cuda/graphed", baseline_ns=500, step_ns=12)]})
        text, code = self.check()
        self.assertEqual(code, 1)
        ratios, times = self.part(text, "moved: ratios"), self.part(text, "moved: times and rates")
        self.assertIn("5 moved by more than 5 %, 2 of them ratios", text)
        self.assertTrue(any("Steps: serial, ratio" in line and "2.000" in line for line in ratios), text)
        self.assertTrue(any("with sluice 3.4" in line and line.endswith("2.912") for line in times), text)
        self.assertLess(text.index("moved: ratios"), text.index("moved: times"))
        self.assertLess(text.index("moved: times"), text.index("as on the page"))

    def test_what_rounding_may_hide_has_not_moved(self):
        # 0.0376 is 6 % less than 0.040, and 4.8 % less than the least that is written so.
        for turn in (1, 2, 3):
            self.report(f"steps_{turn}.json", {"benchmarks": [benchmark("cuda/graphed", baseline_ns=532, step_ns=20)]})
        text, _ = self.check([table("made_up.md", "Steps", [("ratio", of("step_ns", over="baseline_ns"))],
                                    named({"graphed": "cuda/graphed"}), file="steps_*.json")])
        self.assertIn("0 moved", text)

    def test_a_ratio_that_the_page_does_not_show(self):
        (self.out / "ages.txt").write_text("(a) one   2.0 3.0 4.0\n(a) one   5.0 6.0 9.0\n", encoding="utf-8")
        text, code = self.check([AGES])
        self.assertEqual(code, 1)
        self.assertEqual([line.split("  ")[1] for line in self.part(text, "moved: ratios")], ["made_up.md, Ages: one (2), again: p50 / p50"])

    def test_a_row_that_lacks_in_a_report(self):
        for turn in (1, 2, 3):
            self.report(f"steps_{turn}.json", {"benchmarks": [benchmark("cuda/serial", baseline_ns=1020, step_ns=1040)]})
        text, code = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(len(self.part(text, "lacking in reports that are there")), 3, text)
        self.assertIn("made_up.md, Steps: graphed, sluice (steps_*.json)", text)

    def test_a_report_that_is_not_there_was_not_run(self):
        (self.out / "words.json").unlink()
        (self.out / "ages.txt").unlink()
        text, code = self.check()
        self.assertEqual(code, 0, text)
        self.assertIn("not run: ages.txt (10 figures), words.json (2 figures)", text)

    def test_a_report_that_ends_early(self):
        (self.out / "words.json").write_text('{"hand": 1', encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            _, code = self.check()
        self.assertEqual(code, 0)
        self.assertIn("words.json is no report", said.getvalue())

    def test_times_of_another_card_are_not_judged_and_ratios_are(self):
        self.machine("NVIDIA H100 80GB HBM3")
        for turn in (1, 2, 3):
            self.report(f"steps_{turn}.json", {"benchmarks": [benchmark("cuda/serial", baseline_ns=2040, step_ns=2080),
                                                              benchmark("cuda/graphed", baseline_ns=500, step_ns=40)]})
        text, code = self.check([STEPS])
        self.assertEqual(code, 1)
        self.assertEqual(len(self.part(text, "moved: ratios")), 1, text)
        self.assertEqual(len(self.part(text, "not judged")), 4, text)
        of_both = [{**STEPS, "columns": [("by hand", of("baseline_ns", only=H100))]}]
        self.assertIn("2 of 2 figures", self.check(of_both)[0])
        self.machine("NVIDIA H100 80GB HBM3", "NVIDIA H200")
        self.assertIn("0 of 0 figures", self.check(of_both)[0])

    def test_reports_of_several_folders(self):
        other = self.out.parent / "other"
        other.mkdir()
        (self.out / "words.json").rename(other / "words.json")
        (other / "machine.txt").write_text("1 NVIDIA H100, 580, commit abc\n", encoding="utf-8")
        run = Run(str(self.out), str(other))
        self.assertEqual((run.is_on("H200", "ages.txt"), run.is_on("H200", "words.json"), run.is_on("H100", "words.json")),
                         (True, False, True))
        self.assertEqual(run.values({"file": "words.json", "value": "ours"}), [[3.42]])

    def test_what_the_list_names_and_the_page_has_not(self):
        for change, said in (((("**graphed**", "**graphs**"),), "there is no row 'graphed'"),
                             ((("sluice | ratio", "ours | ratio"),), "there is no column 'sluice'"),
                             ((("## Steps", "## Stairs"),), "there is no table 1 below 'Steps'"),
                             ((("| 500 | 20", "| | 20"),), "Steps: graphed, by hand: '' has no such figure"),
                             ((("| one | 5.0 | 6.0 | 7.0 |\n", ""),), "there is no row 'one', number 2"),
                             ((("it takes 12 µs", "it took 12 µs"),), "no sentence is like")):
            page = PAGE
            for old, new in change:
                self.assertIn(old, page)
                page = page.replace(old, new)
            (self.pages / "made_up.md").write_text(page, encoding="utf-8")
            missing = read_pages(self.pages, LISTED)[2]
            self.assertEqual(len(missing), 1, missing)
            self.assertIn(said, missing[0])
        (self.pages / "made_up.md").unlink()
        self.assertIn("there is no page made_up.md", read_pages(self.pages, LISTED)[2])

    def test_tables_that_the_list_does_not_have(self):
        self.assertEqual(unlisted_tables(self.pages, LISTED, []), [])
        self.assertIn("neither in the list nor left out", unlisted_tables(self.pages, [STEPS], [])[0])
        self.assertEqual(unlisted_tables(self.pages, [STEPS], [("made_up.md", "Ages", 0)]), [])
        self.assertEqual(unlisted_tables(self.pages, [], [("made_up.md", "*", 0)]), [])
        self.assertIn("is not there", unlisted_tables(self.pages, LISTED, [("made_up.md", "Ages", 1)])[0])

    def test_figures_are_written_into_tables(self):
        figures, pages, _ = read_pages(self.pages, LISTED)
        run = Run(str(self.out))
        with contextlib.redirect_stdout(io.StringIO()):
            for turn in (1, 2, 3):
                self.report(f"steps_{turn}.json", {"benchmarks": [
                    benchmark("cuda/serial", baseline_ns=2000 + turn, step_ns=3000 + turn),
                    benchmark("cuda/graphed", baseline_ns=400, step_ns=30 + turn)]})
            write(compare(figures, run), pages, run)
        text = (self.pages / "made_up.md").read_text(encoding="utf-8")
        self.assertIn("| `serial` | 2,001; 2,002; 2,003 | 3,001; 3,002; 3,003 | 1.500 | abc |", text)
        self.assertIn("| **graphed** | 400 | 32 [31, 33] | 0.080 | abc |", text)
        (self.out / "steps_3.json").unlink()
        figures, pages, _ = read_pages(self.pages, LISTED)
        run = Run(str(self.out))
        with contextlib.redirect_stdout(io.StringIO()):
            write(compare(figures, run), pages, run)
        self.assertIn("| `serial` | 2,001; 2,002 | 3,001; 3,002 | 1.500 | abc |", (self.pages / "made_up.md").read_text(encoding="utf-8"))
        self.assertIn("it takes 12 µs", text)
        self.assertEqual(len(text.splitlines()), len(PAGE.splitlines()))


class Queries(unittest.TestCase):
    def values(self, record, **query):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.json").write_text(json.dumps(record), encoding="utf-8")
            return Run(folder).values({"file": "a.json", **query})

    def test_records(self):
        rows = {"rows": [{"batch": 8, "sluice": {"serial": {"rate": [3, 5]}}}, {"batch": 16}], "whole": 7}
        self.assertEqual(self.values(rows, value=("serial", "rate"), below=("sluice",), batch=8), [[3, 5]])
        self.assertEqual(self.values(rows, value=("sluice", "serial", "rate"), batch=lambda batch: batch < 9, scale=2), [[6, 10]])
        self.assertEqual(self.values(rows, value=lambda record: record["sluice"]["serial"]["rate"][1]), [[5]])
        self.assertEqual(self.values(rows, value="whole"), [[7]])
        self.assertEqual(self.values(rows, value="rate", batch=8), [])
        self.assertEqual(self.values([{"case": "x", "rate": 4}], value="rate", case="x", scale=US), [[4e-3]])

    def test_names_of_benchmarks(self):
        record = of_benchmark({"name": "cuda/batch:32/blur/beside_copy/iterations:9/repeats:5/manual_time", "bytes": 4})
        self.assertEqual((record["name"], record["operation"], record["beside"], record["batch"]),
                         ("cuda/batch:32/blur/beside_copy", "blur", "copy", 32))


class TruePages(unittest.TestCase):
    def test_each_figure_of_the_list_has_its_place(self):
        done = subprocess.run([sys.executable, str(ROOT / "bench/figures/check.py")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_report_is_one_that_figures_sh_writes(self):
        script = (ROOT / "bench/figures.sh").read_text(encoding="utf-8")
        words = set(script.replace('"', " ").replace("_$", " ").split())
        for entry in ENTRIES:
            for query in [entry.get("common", {}), *(query for _, query in entry.get("rows", []) + entry.get("columns", []) if query),
                          *entry.get("queries", [])]:
                if "file" not in query:
                    continue
                name = query["file"].rsplit(".", 1)[0]
                begins = [name, *(name.rsplit("_", count)[0] for count in (1, 2))]
                self.assertTrue(any(begin in words or f"{begin}_" in script for begin in begins), query["file"])

    def test_benchmarks_name_what_is_read_of_them(self):
        """Subjects and aims of rounds, counters, and the counters that plot_operators.py reads."""
        def sources(pattern):
            return "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bench").glob(pattern)))

        rounds = {f"shapes_{path.stem}": path.read_text(encoding="utf-8") for path in (ROOT / "bench/pipeline_shapes").glob("*.cu")}
        rounds["ports"] = sources("ports/*.cu")
        counters = set(re.findall(r'counters\["(\w+)"\]', sources("support/*.hpp") + sources("*.hpp")))
        plotted = re.search(r"counters = \((.*)\)", sources("plot_operators.py"))[1]
        self.assertLessEqual(set(re.findall(r'"(\w+)"', plotted)), counters)
        for entry in ENTRIES:
            for query in [query for _, query in entry.get("columns", []) if query] + entry.get("queries", []):
                file, value = {**entry.get("common", {}), **query}.get("file", ""), query.get("value")
                text = next((text for begin, text in rounds.items() if file.startswith(begin)), None)
                if isinstance(value, str) and text is not None:
                    names = [name for part in re.split(r" / | - ", value) for name in re.split(r" (?=[<>]= )", part)]
                    for name in names:
                        self.assertIn(f'"{name}"', text, f"{file}: {value}")
                elif file.startswith(("pipeline_overhead", "graph", "ragged", "augment.json")) and isinstance(value, str):
                    self.assertIn(value, counters | {"step_microseconds"}, file)

    def test_no_column_takes_the_place_of_what_a_row_says(self):
        """A column's query goes before a row's, such as its unit."""
        for entry in ENTRIES:
            for label, row in entry.get("rows", []):
                for head, column in entry["columns"]:
                    for key in set(row or {}) & set(column or {}):
                        self.assertEqual(row[key], column[key], f"{entry['page']}, {entry['heading']}: {label}, {head}: {key}")

    def test_no_condition_has_the_name_of_a_key(self):
        self.assertFalse(RESERVED & {"name", "part", "variant", "schedule", "pass", "batch", "case", "rung", "fill", "work"})
        self.assertGreater(len(LEFT_OUT), 0)


@unittest.skipUnless(os.path.exists("/bin/bash"), "there is no bash")
class Script(unittest.TestCase):
    def test_what_fails_stops_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            build, out = Path(folder, "build"), Path(folder, "out")
            (build / "bench").mkdir(parents=True)
            for name, text in (("stage_shares", "echo 'a share  1 2 3'; exit 1"), ("live_input", "echo began; sleep 60"),
                               ("ports", "echo \"$@\" >&2; echo '{}' >\"${1#--benchmark_out=}\"")):
                program = build / "bench" / name
                program.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
                program.chmod(0o755)
            command = ["/bin/bash", str(ROOT / "bench/figures.sh"), str(build), str(out)]
            refused = subprocess.run([*command, "ports", "prots"], capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, (out / "ports.json").exists()), (2, False), refused.stderr)
            self.assertIn("there is no group 'prots'", refused.stderr)
            done = subprocess.run([*command, "shares", "live", "ports"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "FIGURES_SECONDS": "1"})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("exit code 1", done.stdout)
            self.assertIn("exit code 124", done.stdout)
            self.assertEqual((out / "stage_shares.txt").read_text(encoding="utf-8"), "a share  1 2 3\n")
            self.assertEqual((out / "ports.json").read_text(encoding="utf-8"), "{}\n")
            self.assertTrue((out / "machine.txt").read_text(encoding="utf-8").strip())

    def test_a_file_is_no_folder_for_what_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            build, out = Path(folder, "build"), Path(folder, "out")
            (build / "bench").mkdir(parents=True)
            out.write_text("kept", encoding="utf-8")
            for option, to in ([], out), (["--lanes"], out), ([], out / "below"), ([], ""):
                refused = subprocess.run(["/bin/bash", str(ROOT / "bench/figures.sh"), *option, str(build), str(to), "ports"],
                                         capture_output=True, text=True, check=False)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), to)
                self.assertEqual(refused.stderr, f"figures: OUT: expected a folder that can be written, or made, not '{to}'\n")
            self.assertEqual(out.read_text(encoding="utf-8"), "kept")

    def test_lanes_know_all_groups(self):
        script = (ROOT / "bench/figures.sh").read_text(encoding="utf-8")
        groups = re.search(r'groups="([^"]*)"', script)[1].split()
        self.assertEqual(sorted(groups), sorted(lanes.SECONDS))

    def test_lanes_run_each_group_once_and_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            build, out = Path(folder, "build"), Path(folder, "out")
            (build / "bench").mkdir(parents=True)
            for name in ("stage_shares", "live_input", "ports"):
                program = build / "bench" / name
                ends = 1 if name == "live_input" else 0
                program.write_text(f'#!/bin/bash\necho "{name} on $CUDA_VISIBLE_DEVICES"; exit {ends}\n', encoding="utf-8")
                program.chmod(0o755)

            def run(*arguments):
                return subprocess.run(["/bin/bash", str(ROOT / "bench/figures.sh"), "--lanes", str(build), str(out), *arguments],
                                      capture_output=True, text=True, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": "5,3,4"})
            short = run("--seconds", "50", "shares", "ports", "live", "kills")
            self.assertEqual(short.returncode, 1, short.stderr)
            self.assertIn("not run: kills live", short.stdout)
            (report,) = out.rglob("stage_shares.txt")
            self.assertEqual(report.read_text(encoding="utf-8"), f"stage_shares on {report.parent.name.removeprefix('gpu')}\n")
            again = run("--first", "echo $CUDA_VISIBLE_DEVICES; exit 3", "shares", "ports", "live")
            self.assertEqual(again.returncode, 1, again.stderr)
            self.assertRegex(again.stdout, r"first on GPU 5,3, \d+ s, exit code 3: see ")
            self.assertEqual((out / "gpu5/first.log").read_text(encoding="utf-8"), "5,3\n")
            self.assertRegex(again.stdout, r"live on GPU \d, \d+ s, exit code 1: see ")
            self.assertNotIn("shares", again.stdout)
            self.assertEqual(sorted((out / "ended").read_text(encoding="utf-8").split()), ["ports", "shares"])

    def test_lanes_run_beside_each_other_what_is_not_timed(self):
        with tempfile.TemporaryDirectory() as folder:
            build, out = Path(folder, "build"), Path(folder, "out")
            wait_for = f"for i in {{1..200}}; do [[ -e {folder}/%s ]] && exit 0; sleep 0.05; done; exit 1"
            for name, text in (("examples/resnet18/resnet18", f"touch {folder}/losses; {wait_for % 'first'}"),
                               ("examples/gpu_augment/gpu_augment", ""),
                               ("bench/ports", f"[[ -e {folder}/first && -e {folder}/losses ]]")):
                program = build / name
                program.parent.mkdir(parents=True)
                program.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
                program.chmod(0o755)
            done = subprocess.run(["/bin/bash", str(ROOT / "bench/figures.sh"), "--lanes", str(build), str(out), "--first",
                                   f"touch {folder}/first; {wait_for % 'losses'}", "ports", "accuracies"],
                                  capture_output=True, text=True, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,1"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(sorted((out / "ended").read_text(encoding="utf-8").split()), ["accuracies", "ports"])


if __name__ == "__main__":
    unittest.main()
