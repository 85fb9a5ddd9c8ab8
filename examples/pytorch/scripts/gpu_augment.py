"""Augmentation on the GPU, on a stream of its own, while the batch before trains.

After the second experiment of "Pipelining AI/ML Training Workloads With CUDA Streams". The published chain launches one
rotation an image, and its stream and the training's are ordered by hand. Here the chain is one operator, a stage like any
other, whose random numbers depend on the sample and the epoch alone.

    python3 examples/pytorch/scripts/gpu_augment.py --batch 32
"""

import torch
from common import DEVICE, options, synthetic, timed
from torch import nn

import sluice

arguments = options(__doc__.splitlines()[0])
SIDE = 64 if arguments.small else 256
CHANNELS = [16, 32, 64] if arguments.small else [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

torch.manual_seed(1)
layers = [layer for a, b in zip(CHANNELS, CHANNELS[1:]) for layer in (nn.ReLU(), nn.Conv2d(a, b, 2, stride=2))]
left = SIDE >> (len(CHANNELS) - 1)
model = nn.Sequential(nn.Conv2d(3, CHANNELS[0], 1), *layers, nn.Flatten(), nn.Linear(CHANNELS[-1] * left * left, 10)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def train(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def before(loader):
    """The published chain, image by image where torchvision knows no other way; it needs torchvision."""
    from torchvision.transforms import v2

    chain = v2.Compose([v2.ToDtype(torch.float32), v2.RandomCrop(SIDE // 2), v2.Resize(SIDE, antialias=True),
                        v2.RandomRotation(45.0), v2.GaussianBlur(7, (0.1, 2.0)), v2.Normalize([128.0] * 3, [64.0] * 3)])
    for images, _, labels in loader:
        images, labels = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
        yield train(torch.stack([chain(image) for image in images]), labels)


def augment(images: torch.Tensor, samples: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return sluice.augment(images, samples, crop=(SIDE // 2, SIDE // 2), size=(SIDE, SIDE), mean=128.0, deviation=64.0), labels


def after(loader):
    run = sluice.pipeline(augment, train, schedule=arguments.schedule)
    yield from run(loader)
    print(run.report())


def make() -> tuple[torch.Tensor, ...]:
    """Images, which samples of which epoch they are, labels."""
    return (torch.randint(0, 256, (arguments.batch, 3, SIDE, SIDE), dtype=torch.uint8),
            sluice.sample_ids(torch.randint(0, 50_000, (arguments.batch,)), 0), torch.randint(0, 10, (arguments.batch,)))


losses = timed("sluice", after(synthetic(arguments.batches, make)))
print(f"loss: {losses[0]:.4f} at first, {losses[-1]:.4f} at last")
