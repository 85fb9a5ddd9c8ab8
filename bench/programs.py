"""Running a program of the examples, and PyTorch's script beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile


def run_program(program: str, arguments: list[str]) -> dict:
    """The report of one run."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        done = subprocess.run([program, "--json", path, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class PyTorch:
    """A script that measures with PyTorch, in one process, so that it is loaded once."""

    def __init__(self, script: str, *arguments: str) -> None:
        self.script = script
        self.process = subprocess.Popen([sys.executable, script, "--serve", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.about = self.answer()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.script} ended with {self.process.wait()}")
        return json.loads(line)

    def measure(self, **options) -> dict:
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
