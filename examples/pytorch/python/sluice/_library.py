"""Loads the operators' libraries: that of the CPU, and that of CUDA where this PyTorch has it."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

OLDEST = (2, 11)


def version_of(text: str) -> tuple[int, int]:
    """The first two numbers of a version such as "2.11.0+cu130"."""
    major, minor = text.split(".")[:2]
    return int(major), int("".join(digit for digit in minor if digit.isdigit()))


def load() -> None:
    """Raises ImportError with one sentence where something is missing."""
    if version_of(torch.__version__) < OLDEST:
        raise ImportError(f"PyTorch is {torch.__version__}, and sluice's operators need the stable ABI of "
                          f"{OLDEST[0]}.{OLDEST[1]}; expected that version or a later one")
    here = Path(__file__).parent
    host = here / "libsluice_ops.so"
    if not host.exists():
        raise ImportError(f"{host} is not there; expected an installed package: pip install examples/pytorch")
    torch.ops.load_library(str(host))
    device = here / "libsluice_ops_cuda.so"
    if torch.version.cuda is not None and device.exists():
        torch.ops.load_library(str(device))
    elif torch.version.cuda is not None:
        warn_without_cuda()


def warn_without_cuda() -> None:
    """Says why the operators are for the CPU alone, where that is a fault of the installation, or a GPU is here."""
    from sluice import _built

    if _built.WITHOUT_CUDA and (_built.FOUND_NVCC or torch.cuda.device_count() > 0):
        warnings.warn(f"sluice's operators were built for the CPU alone, since {_built.WITHOUT_CUDA}; once that is mended: "
                      "pip install --force-reinstall --no-deps examples/pytorch", RuntimeWarning, stacklevel=4)
