#!/usr/bin/env python3
"""Tests what the scripts in .ci and tests/fresh_root.sh say of wrong arguments: one sentence, and exit code 2. They run in copies, where
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
        self.check_refused(".ci/variant", [], "expected the name of a variant, found ''")
        self.check_refused(".ci/variant", ["gcc"], "expected the name of a variant, found 'gcc'")
        self.check_refused(".ci/variant", ["clang", "quickly"],
                           "expected the name of a variant, and behind clang nothing or beside_toolkit_test, found 'clang quickly'")

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
