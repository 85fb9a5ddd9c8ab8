"""Where PyTorch's headers are: `python3 find_torch.py` prints the folder of the package torch, or nothing.

Packages are built in an environment of their own, in which PyTorch cannot be imported, and would have to be downloaded again. The
interpreter still knows where the real environment keeps its packages, and headers are all that is needed.
"""

from __future__ import annotations

import re
import site
import sys
import sysconfig
from pathlib import Path


def torch_folder() -> Path | None:
    """The first installed torch."""
    places = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), *site.getsitepackages(), site.getusersitepackages(), *sys.path]
    for place in places:
        folder = Path(place) / "torch"
        if place and (folder / "include").is_dir() and (folder / "version.py").is_file():
            return folder
    return None


def torch_version(folder: Path) -> tuple[int, int]:
    """The first two numbers of its version."""
    text = (folder / "version.py").read_text(encoding="utf-8")
    numbers = re.search(r"__version__ = '([0-9]+)\.([0-9]+)", text)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


if __name__ == "__main__":
    print(torch_folder() or "")
