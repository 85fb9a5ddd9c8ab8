"""The articles' scripts run to their end, on the CPU too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "common"))
def test_script(name):
    done = subprocess.run([sys.executable, str(SCRIPTS / f"{name}.py"), "--small", "--batches", "4"], capture_output=True,
                          text=True, timeout=300, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert "steps a second" in done.stdout and "False" not in done.stdout
