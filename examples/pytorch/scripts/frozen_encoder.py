"""A frozen encoder on one stream, a decoder that trains on another.

After "Pipelining AI/ML Training Workloads With CUDA Streams". The published loop copies on the default stream, for which
neither of its streams waits, and `record_stream` names the stream that made the features instead of the one that reads them.
With `sluice.pipeline` the loop has no stream and no event, and cannot have these races.

    python3 examples/pytorch/scripts/frozen_encoder.py --schedule overlapped
"""

import torch
from common import DEVICE, options, synthetic, timed
from torch import nn

import sluice

arguments = options(__doc__.splitlines()[0])
CHANNELS = [16, 32, 64, 128] if arguments.small else [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
SIDE = 2 ** (len(CHANNELS) - 1)


def network() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(1)
    pairs = list(zip(CHANNELS, CHANNELS[1:]))
    down = [layer for a, b in pairs for layer in (nn.ReLU(), nn.Conv2d(a, b, 2, stride=2))]
    up = [layer for a, b in reversed(pairs) for layer in (nn.ConvTranspose2d(b, a, 2, stride=2), nn.ReLU())]
    encoder = nn.Sequential(nn.Conv2d(3, CHANNELS[0], 1), *down).requires_grad_(False)
    return encoder.to(DEVICE), nn.Sequential(*up, nn.Conv2d(CHANNELS[0], 10, 3, padding=1)).to(DEVICE)


encoder, decoder = network()
optimizer = torch.optim.SGD(decoder.parameters(), lr=1e-3)


def encode(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        return encoder(images.float()), labels


def train(features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(decoder(features), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def before(loader):
    """As published, races and all; it needs a GPU."""
    encoder_stream, decoder_stream = torch.cuda.Stream(), torch.cuda.Stream()
    ready = None
    for images, labels in loader:
        images, labels = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
        with torch.cuda.stream(encoder_stream):
            features, _ = encode(images, labels)
            features.record_stream(encoder_stream)
        if ready is not None:
            with torch.cuda.stream(decoder_stream):
                yield train(*ready)
        decoder_stream.wait_stream(encoder_stream)
        ready = features, labels


def after(loader):
    run = sluice.pipeline(encode, train, schedule=arguments.schedule)
    yield from run(loader)
    print(run.report())


loader = synthetic(arguments.batches, lambda: (torch.randint(0, 256, (arguments.batch, 3, SIDE, SIDE), dtype=torch.uint8),
                                               torch.randint(0, 10, (arguments.batch, SIDE, SIDE))))
losses = timed("sluice", after(loader))
print(f"loss: {losses[0]:.4f} at first, {losses[-1]:.4f} at last")
