"""What the scripts beside this one share: work as a CUDA graph."""

from typing import Callable

import torch

Work = Callable[[], object]


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
