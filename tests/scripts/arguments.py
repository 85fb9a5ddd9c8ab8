#!/usr/bin/env python3
"""Tests what the scripts say of wrong arguments: one sentence, and exit code 2. Those in .ci and tests/fresh_root.sh run in copies, where
what they would install, build or run are scripts that do nothing. arguments.py ROOT"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()


@unittest.skipUnless(os.path.exists("/bin/bash"), "there is no bash")
class Arguments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.copy = Path(folder.name, "copy")
        shutil.copytree(ROOT / ".ci", self.copy / ".ci")
        (self.copy / "tests").mkdir()
        shutil.copy(ROOT / "tests/fresh_root.sh", self.copy / "tests")
        self.stubs = Path(folder.name, "stubs")
        self.stubs.mkdir()
        for name in ("apt-get", "clang++", "cmake", "ctest", "debootstrap", "doxygen", "ninja", "nvcc", "unshare"):
            self.script(self.stubs / name, "exit 0")
        self.script(self.stubs / "xz", "cat")

    def script(self, path, text):
        path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, name, *arguments):
        return subprocess.run(["/bin/bash", str(self.copy / name), *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}",
                                   "SLUICE_FRESH_ROOTS": str(self.copy / "roots")})

    def check_refused(self, name, arguments, sentence):
        done = self.run_script(name, *arguments)
        with self.subTest(script=name, arguments=arguments, stderr=done.stderr):
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"{Path(name).name.removesuffix('.sh')}: {sentence}\n")

    def test_gpu(self):
        self.check_refused(".ci/gpu", ["pack", "gpu"], "pack: build/gpu holds no build; expected '.ci/gpu build' to have made one")
        self.check_refused(".ci/gpu", ["pack", "release"],
                           "pack: build/release holds no build; expected '.ci/gpu release' to have made one")
        self.assertFalse((self.copy / "build").exists())
        self.check_refused(".ci/gpu", ["pack", "debug"], "pack: expected gpu or release, found 'debug'")
        self.check_refused(".ci/gpu", ["pack"], "pack: expected gpu or release, found ''")
        self.check_refused(".ci/gpu", ["pack", "gpu", "release"], "pack: expected one of gpu and release, found 'gpu release'")
        self.check_refused(".ci/gpu", ["run"], "run: expected a command")
        self.check_refused(".ci/gpu", ["test", "beside", "-R", "graph"], "test: expected nothing behind beside, found '-R graph'")
        self.check_refused(".ci/gpu", ["all"], "all: expected a folder that can be made, found ''")
        self.check_refused(".ci/gpu", ["all", "out", "soon"],
                           "all: expected a folder and at most a number of seconds, found 'out soon'")
        self.check_refused(".ci/gpu", ["all", ".ci/gpu"], "all: expected a folder that can be made, found '.ci/gpu'")
        self.check_refused(".ci/gpu", ["pak"], "'pak' is no command; expected build, release, pack, test, run or all")
        (self.copy / "build/gpu").mkdir(parents=True)
        (self.copy / "build/gpu/CMakeCache.txt").write_text("", encoding="utf-8")
        done = self.run_script(".ci/gpu", "pack", "gpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.copy / "build/gpu.tar.xz").exists())

    def test_run(self):
        names = re.search(r"names=\(([^)]*)\)", (ROOT / ".ci/run").read_text(encoding="utf-8"))[1].split()
        parts = re.findall(r"\bpart ([a-z_]+) (?:in_place|\"\$)", (ROOT / ".ci/run").read_text(encoding="utf-8"))
        self.assertEqual(set(names), set(parts))
        for unknown in (["demos"], ["demo", "--all"]):
            self.check_refused(".ci/run", unknown, f"there is no part '{unknown[-1]}'; expected some of: {' '.join(names)}")
        # Where roots can be made nothing runs in place.
        self.script(self.copy / "tests/fresh_root.sh", "exit 0")
        done = self.run_script(".ci/run", "mpi", "clang")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check_refused(".ci/run", ["test"], "the part 'test' was not run, since it is none of those that run on this machine")

    def test_others(self):
        self.check_refused(".ci/sanitizers", ["asan"], "expected no arguments, found 'asan'")
        self.check_refused(".ci/python", ["soon"], "expected no arguments, found 'soon'")
        self.check_refused(".ci/variant", [], "expected the name of a variant, found ''")
        self.check_refused(".ci/variant", ["gcc"], "expected the name of a variant, found 'gcc'")
        self.check_refused(".ci/variant", ["clang", "quickly"],
                           "expected the name of a variant, and behind clang nothing or beside_toolkit_test, found 'clang quickly'")

    def test_bench(self):
        shutil.copytree(ROOT / "bench", self.copy / "bench")
        for arguments in (["--chek"], ["--check", "soon"]):
            self.check_refused("bench/submit_files.sh", arguments, f"expected --check or nothing, found '{' '.join(arguments)}'")
            self.check_refused("bench/compile_cost.sh", arguments,
                               f"expected --check, --renew or nothing, found '{' '.join(arguments)}'")
        for option in ([], ["--lanes"]):
            self.check_refused("bench/figures.sh", [*option, "nowhere", "out", "ports"],
                               "BUILD: expected the folder of a build, found 'nowhere'")

    def check_python(self, name, arguments, sentence):
        """Of a script that tells how it is used as well."""
        done = subprocess.run([sys.executable, ROOT / name, *arguments], capture_output=True, text=True, check=False, timeout=60)
        with self.subTest(script=name, arguments=arguments, stderr=done.stderr):
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.splitlines()[-1], f"{Path(name).name}: {sentence}")

    def test_python(self):
        for name in ("links", "maps", "promises"):
            self.check_python(f"tests/docs/{name}.py", [], "error: the following arguments are required: root")
            self.check_python(f"tests/docs/{name}.py", [".", "all"], "error: unrecognized arguments: all")
        self.check_python("tests/mutate.py", ["--only", "("], "error: argument --only: expected a regular expression, found '(': "
                          "missing ), unterminated subpattern at position 0")
        self.check_python("tests/mutate.py", ["-j", "0"],
                          "error: argument -j/--jobs: expected a whole number of at least 1, found '0'")
        self.check_python("tests/mutate.py", ["--again", "/nowhere"], "error: argument --again: expected a former output, "
                          "found '/nowhere': [Errno 2] No such file or directory: '/nowhere'")
        self.check_python("tests/mutate.py", ["--kind", "logic"], "error: --kind: expected it with --operators")
        self.check_python("tests/mutate.py", ["--operators", "--class", "race"], "error: --class: expected it without --operators")

    def test_fresh_root(self):
        for option, value in (("--root", "the name of a root"), ("--hide", "a pattern"), ("--folder", "a name"),
                              ("--remove", "the name of a root")):
            self.check_refused("tests/fresh_root.sh", [option], f"{option}: expected {value} behind it")
            self.check_refused("tests/fresh_root.sh", [option, ""], f"{option}: expected {value} behind it")
            self.check_refused("tests/fresh_root.sh", [option, "--user", "bash"], f"{option}: expected {value} behind it, found '--user'")
        for option in ("--root", "--remove"):
            self.check_refused("tests/fresh_root.sh", [option, "a/b"], f"{option}: expected a name without /, found 'a/b'")
        (self.copy / "roots/root.mine").mkdir(parents=True)
        self.assertEqual(self.run_script("tests/fresh_root.sh", "--remove", "mine").returncode, 0)
        self.assertFalse((self.copy / "roots/root.mine").exists())


if __name__ == "__main__":
    unittest.main()
