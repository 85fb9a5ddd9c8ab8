"""Builds examples/pytorch and runs its tests, where PyTorch 2.11 or later and pytest can be imported; otherwise reads the
package's files as Python, and ends with the code of a skipped test.

    python3 pytorch_package.py REPOSITORY BUILD_FOLDER SLUICE_CUDA CXX
"""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def missing() -> str:
    """Why the package cannot be tested here; nothing if it can."""
    for name in ("torch", "pytest"):
        if importlib.util.find_spec(name) is None:
            return f"there is no {name}"
    version = (Path(importlib.util.find_spec("torch").origin).parent / "version.py").read_text(encoding="utf-8")
    found = version.split("__version__ = '")[1].split("'")[0]
    if tuple(int(part) for part in found.split(".")[:2]) < (2, 11):
        return f"PyTorch is {found}, older than 2.11"
    return ""


def main() -> int:
    repository, build, cuda, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    package = repository / "examples" / "pytorch"
    files = [path for path in sorted(package.rglob("*.py")) if "build" not in path.relative_to(package).parts]
    files += sorted((repository / "bench" / "pytorch").glob("*.py"))
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), str(path))
    reason = missing()
    if reason:
        print(f"skipped: {reason}; the syntax of {len(files)} files is right")
        return SKIPPED
    site = build / "site"
    for command in (["cmake", "-S", str(package), "-B", str(build), f"-DSLUICE_CUDA={cuda}", f"-DCMAKE_CXX_COMPILER={compiler}",
                     f"-DPython3_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", str(build), "--parallel", "2"],
                    ["cmake", "--install", str(build), "--prefix", str(site)]):
        subprocess.run(command, check=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(package / "tests")], check=False,
                          env=os.environ | {"PYTHONPATH": str(site)}).returncode


if __name__ == "__main__":
    sys.exit(main())
