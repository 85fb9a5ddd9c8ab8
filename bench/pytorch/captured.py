"""What the scripts beside this one share: a word where something is missing, and work as a CUDA graph."""

import sys
from typing import Callable, Optional

try:
    import torch
except ImportError:  # `require` says so
    torch = None

Work = Callable[[], object]


def require(missing: Optional[ImportError]) -> None:
    """Ends the program with one sentence where a module could not be imported, or there is no GPU. Called once options are
    read, so that `--help` works without either."""
    if missing is not None:
        sys.exit(f"{sys.argv[0]}: {missing}; expected a Python with PyTorch, and with torchvision for augment.py")
    if not torch.cuda.is_available():
        sys.exit(f"{sys.argv[0]}: PyTorch {torch.__version__} finds no CUDA device; expected one")


def captured(work: Work) -> Work:
    """`work` as a graph, captured after three runs on a side stream, as PyTorch's manual says."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay
