"""A loss over boxes of which each image has another number: a custom operator.

After "Accelerating AI/ML Model Training with Custom Operators". The published kernel is written for one padded layout, has no
backward pass, and launches on the legacy default stream, so it gives wrong results beside other streams and inside graphs.

    python3 examples/pytorch/scripts/masked_giou.py
"""

import torch
from common import DEVICE, options, timed

import sluice

arguments = options(__doc__.splitlines()[0])
ROWS, WIDTH = (16, 32) if arguments.small else (1024, 256)

torch.manual_seed(1)
lengths = torch.randn(ROWS).mul(3).abs().floor().clamp(max=WIDTH - 1).long()
mask = (torch.arange(WIDTH) < lengths[:, None]).to(DEVICE)
corner = torch.randint(0, 200, (ROWS, WIDTH, 2))
padded = torch.cat([corner, corner + torch.randint(1, 56, (ROWS, WIDTH, 2))], -1).to(DEVICE, torch.uint8)
targets, offsets = padded[mask], torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(DEVICE)
predictions = (padded.float() + torch.randn(ROWS, WIDTH, 4, device=DEVICE)).requires_grad_()


def before() -> torch.Tensor:
    """Padding and a mask: 99 % of the work is thrown away."""
    p, t = predictions, padded.float()
    area_p, area_t = ((b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (p, t))
    inner = torch.minimum(p[..., 2:], t[..., 2:]) - torch.maximum(p[..., :2], t[..., :2])
    shared = inner[..., 0] * inner[..., 1]
    union = area_p + area_t - shared
    outer = torch.maximum(p[..., 2:], t[..., 2:]) - torch.minimum(p[..., :2], t[..., :2])
    around = (outer[..., 0] * outer[..., 1]).clamp(min=1e-5)
    giou = shared / union.clamp(min=1e-5) - (around - union) / around
    return torch.where(mask, giou, 0.0).sum() / mask.sum().clamp(min=1)


def after() -> torch.Tensor:
    """The boxes that there are, and nothing else."""
    return sluice.giou_loss(predictions, targets, offsets, formula="article")


def steps(loss_of):
    for _ in range(arguments.batches):
        loss = loss_of()
        (predictions.grad,) = torch.autograd.grad(loss, predictions)
        yield loss.detach()


plain, ragged = timed("padding and a mask", steps(before)), timed("sluice", steps(after))
print(f"mean GIoU: {plain[-1]:.6f} and {ragged[-1]:.6f}")
torch.testing.assert_close(plain[-1], ragged[-1], rtol=1e-4, atol=1e-5)
