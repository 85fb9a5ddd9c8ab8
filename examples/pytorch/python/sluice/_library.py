"""Loads the operators' libraries: that of the CPU, and that of CUDA where this PyTorch has it."""

from __future__ import annotations

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
    if torch.version.cuda is not None and has_cuda_operators():
        torch.ops.load_library(str(cuda_library()))


def cuda_library() -> Path:
    return Path(__file__).parent / "libsluice_ops_cuda.so"


def has_cuda_operators() -> bool:
    """Whether the package was built with a CUDA toolkit."""
    return cuda_library().exists()
