"""A loader that keeps the GPU waiting: copies ahead of their use, bytes in place of floats.

After "PyTorch Model Performance Analysis and Optimization". Its last rungs copy bytes and convert on the device, with
`non_blocking=True` from pinned memory, but the copy of a batch still begins when the step before has been enqueued. With
`sluice.prefetch` it has a stream and fixed slots of its own.

    python3 examples/pytorch/scripts/input_ladder.py --batch 512
"""

import torch
from common import DEVICE, options, timed
from torch import nn

import sluice

arguments = options(__doc__.splitlines()[0])

torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
count = arguments.batch * arguments.batches
data = torch.utils.data.TensorDataset(torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8),
                                      torch.randint(0, 10, (count,)))
loader = torch.utils.data.DataLoader(data, batch_size=arguments.batch, shuffle=False, pin_memory=DEVICE == "cuda",
                                     num_workers=8 if DEVICE == "cuda" else 0)


def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    loss = nn.functional.cross_entropy(model((images.float() / 255 - 0.5) / 0.5), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def before():
    for images, labels in loader:
        yield step(images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True))


def after():
    for images, labels in sluice.prefetch(loader, DEVICE):
        yield step(images, labels)


start = [parameter.detach().clone() for parameter in model.parameters()]
plain = timed("a copy, then its step", before())
with torch.no_grad():
    for parameter, value in zip(model.parameters(), start):
        parameter.copy_(value)
optimizer.state.clear()
ahead = timed("sluice.prefetch", after())
print(f"the same losses: {plain == ahead}")
