"""A step as a CUDA graph, without static buffers and capture written by hand.

After an article on CUDA graphs in PyTorch: warm up on a side stream, capture, copy each batch into the captured tensors,
replay; a last batch that is shorter must be dropped. With `schedule="graphed"` all of this is the pipeline's, for each stage
and each slot, and a shorter batch runs eagerly.

    python3 examples/pytorch/scripts/cuda_graphs.py --schedule graphed
"""

import torch
from common import DEVICE, options, synthetic, timed
from torch import nn

import sluice

arguments = options(__doc__.splitlines()[0])
IMAGES, CLASSES = (64, 10) if arguments.small else (150_528, 1000)

torch.manual_seed(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(IMAGES, CLASSES)).to(DEVICE).requires_grad_(False)


def infer(images: torch.Tensor) -> torch.Tensor:
    return model(images).argmax(1).float().mean()


def before(loader):
    """By hand; it needs a GPU."""
    static = next(iter(loader))[0].to(DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            infer(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = infer(static)
    for (images,) in loader:
        if images.shape == static.shape:
            static.copy_(images, non_blocking=True)
            graph.replay()
            yield result.clone()


def after(loader):
    run = sluice.pipeline(infer, schedule=arguments.schedule)
    yield from run(loader)
    print(run.report())


loader = [*synthetic(arguments.batches, lambda: (torch.rand(arguments.batch, IMAGES),)), (torch.rand(1, IMAGES),)]
if DEVICE == "cuda":
    timed("by hand", before(loader))
print(f"{len(timed('sluice', after(loader)))} results, the short last batch's too")
