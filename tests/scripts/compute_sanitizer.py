#!/usr/bin/env python3
"""Tests which tests of a build tests/compute_sanitizer.sh takes, and what it says of others, with a ctest and a compute-sanitizer that
are scripts. compute_sanitizer.py ROOT"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()


@unittest.skipUnless(os.path.exists("/bin/bash"), "there is no bash")
class ComputeSanitizer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.stubs = Path(folder.name, "build"), Path(folder.name, "stubs")
        (self.build / "tests").mkdir(parents=True)
        self.stubs.mkdir()
        self.listed(**{f"pipeline.{file}.gpu": ["pipeline.gpu", f"--source-file=*/{file}.c*"] for file in ("ends", "faults", "fault")},
                    **{"backend.gpu": ["backend.gpu"], "quickstart.cpu_stage.gpu": ["cmake", "-E", "env", "quickstart_cpu_stage_gpu"]})
        self.script("ldd", "exit 1")
        self.script("compute-sanitizer", "echo 'test cases: 1'; echo 'ERROR SUMMARY: 0 errors'")

    def script(self, name, text):
        path = self.stubs / name
        path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def listed(self, **commands):
        tests = [{"name": name, "command": [str(self.build / "tests" / program), *arguments]}
                 for name, (program, *arguments) in commands.items()]
        (self.build / "list").write_text(json.dumps({"tests": tests}), encoding="utf-8")
        self.script("ctest", f"cat '{self.build}/list'")

    def run_script(self, *arguments, path=None):
        return subprocess.run(["/bin/bash", str(ROOT / "tests/compute_sanitizer.sh"), *arguments], capture_output=True, text=True,
                              check=False, env={**os.environ, "PATH": path or f"{self.stubs}:{os.environ['PATH']}"})

    def taken(self, *arguments):
        done = self.run_script(str(self.build), *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(line.split(maxsplit=1)[1] for line in done.stdout.splitlines())

    def check_refused(self, arguments, sentence):
        done = self.run_script(*arguments)
        with self.subTest(arguments=arguments):
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"compute_sanitizer: {sentence}\n"))

    def test_names(self):
        whole = ["memcheck pipeline.ends.gpu", "memcheck pipeline.faults.gpu"]
        self.assertEqual(self.taken("memcheck"), ["memcheck backend.gpu", *whole])
        self.assertEqual(self.taken("--tests", "pipeline", "memcheck"), whole)
        self.assertEqual(self.taken("--tests", r"^pipeline\.gpu$", "memcheck"), whole)  # a program of many tests
        self.assertEqual(self.taken("--tests", r"^pipeline\.ends\.gpu$", "memcheck", "initcheck"),
                         ["initcheck pipeline.ends.gpu", "memcheck pipeline.ends.gpu"])

    def test_refused(self):
        build = str(self.build)
        self.check_refused([], "expected the folder of a build with tests, found ''")
        self.check_refused([str(self.stubs)], f"expected the folder of a build with tests, found '{self.stubs}'")
        self.check_refused([build, "--tests"], "--tests: expected an expression behind it")
        self.check_refused([build, "--tests", "("], "--tests: expected a regular expression, found '(': missing ), unterminated "
                           "subpattern at position 0")
        self.check_refused([build, "memchek"],
                           "there is no tool 'memchek'; expected some of memcheck, racecheck, initcheck and synccheck")
        self.check_refused([build, "--tests", "pipelines"], "--tests: 'pipelines' names no gpu test; expected one of these, or of what "
                           "they hold, as in pipeline.ends.gpu: backend.gpu, pipeline.gpu")
        self.check_refused([build, "--tests", r"fault\.gpu"],
                           r"--tests: 'fault\.gpu' names only tests that are left out: pipeline.fault.gpu")
        self.listed(**{"backend.gpu": ["cmake", "-E", "echo", "skipped: built where there was no GPU"]})
        self.check_refused([build], "expected gpu tests that were built where there is a GPU, found none")

    def test_missing_tool(self):
        (self.stubs / "compute-sanitizer").unlink()
        for name in ("bash", "python3", "cat", "dirname", "mkdir"):
            (self.stubs / name).symlink_to(sys.executable if name == "python3" else f"/bin/{name}")
        done = self.run_script(str(self.build), path=str(self.stubs))
        self.assertEqual((done.returncode, done.stderr),
                         (2, "compute_sanitizer: expected compute-sanitizer in the PATH, found none\n"))


if __name__ == "__main__":
    unittest.main()
