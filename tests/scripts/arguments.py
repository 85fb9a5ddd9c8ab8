#!/usr/bin/env python3
"""Tests what .ci/gpu says of wrong arguments: one sentence, and exit code 2. It runs in a copy, where
what they would install, build or run are scripts that do nothing. arguments.py ROOT"""

import os
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
        self.stubs = Path(folder.name, "stubs")
        self.stubs.mkdir()
        for name in ("cmake", "ctest", "ninja"):
            self.script(self.stubs / name, "exit 0")
        self.script(self.stubs / "xz", "cat")

    def script(self, path, text):
        path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, name, *arguments):
        return subprocess.run(["/bin/bash", str(self.copy / name), *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}"})

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


if __name__ == "__main__":
    unittest.main()
