"""The published augmentation chain in PyTorch, as published and in faster forms, on batches of 3 × 256 × 256 bytes.

What `augment.py` measures, where the chain and its forms are described.
"""

from __future__ import annotations  # some name what may be missing

import math
from typing import Callable

try:
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as operators
    missing = None
except ImportError as error:  # `augment.py --help` works all the same
    missing = error

SIZE, CROP, TAPS = 256, 128, 7
DEGREES, SIGMAS = 45.0, (0.1, 2.0)
MEAN, DEVIATION = 0.0, 1.0


class Parameters:
    """Of each image in a batch: where its crop begins, its angle in degrees, its sigma."""

    def __init__(self, batch: int, device: str) -> None:
        self.top = torch.randint(0, SIZE - CROP + 1, (batch,), device=device)
        self.left = torch.randint(0, SIZE - CROP + 1, (batch,), device=device)
        self.angles = torch.empty(batch).uniform_(-DEGREES, DEGREES)  # on the host, where the loop needs them
        self.degrees = self.angles.to(device, non_blocking=True)
        self.sigma = torch.empty(batch, device=device).uniform_(*SIGMAS)

    def on_device(self) -> tuple[torch.Tensor, ...]:
        return self.top, self.left, self.degrees, self.sigma


def blur_weights(sigma: torch.Tensor) -> torch.Tensor:
    """[batch, taps]: the normalised Gaussian."""
    place = torch.linspace(-(TAPS - 1) / 2, (TAPS - 1) / 2, TAPS, device=sigma.device)
    return torch.softmax(-((place / (math.sqrt(2.0) * sigma[:, None])) ** 2), dim=1)


def published(images: torch.Tensor, given: Parameters) -> torch.Tensor:
    batch, channels = images.shape[:2]
    boxes = torch.stack([torch.arange(batch, device=images.device), given.left, given.top, given.left + CROP,
                         given.top + CROP], 1).float()
    crops = torchvision.ops.roi_align(images.float(), boxes, CROP)
    large = operators.resize(crops, [SIZE, SIZE], antialias=True)
    turned = torch.stack([operators.rotate(image, angle) for image, angle in zip(large, given.angles.tolist())])
    weights = blur_weights(given.sigma)
    kernels = (weights[:, :, None] * weights[:, None, :]).repeat_interleave(channels, 0)[:, None]
    padded = functional.pad(turned, [TAPS // 2] * 4, mode="reflect").flatten(0, 1)[None]
    blurred = functional.conv2d(padded, kernels, groups=batch * channels).view_as(turned)
    return (blurred - MEAN) / DEVIATION


def blurred_rows(images: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The same blur, a direction at a time, as shifted products and sums."""
    padded = functional.pad(images, [TAPS // 2, TAPS // 2, 0, 0], mode="reflect")
    return sum(weights[:, k, None, None, None] * padded[..., k:k + SIZE] for k in range(TAPS))


def blurred_columns(images: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The other direction, and the normalisation."""
    padded = functional.pad(images, [0, 0, TAPS // 2, TAPS // 2], mode="reflect")
    blurred = sum(weights[:, k, None, None, None] * padded[..., k:k + SIZE, :] for k in range(TAPS))
    return (blurred - MEAN) / DEVIATION


def turned_places(degrees: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each pixel of a turned image was, from its centre on: x and y, each [batch, SIZE, SIZE]."""
    axis = torch.arange(SIZE, device=degrees.device, dtype=torch.float32) - (SIZE - 1) / 2
    x, y = axis[None, None, :], axis[None, :, None]
    radians = torch.deg2rad(degrees)[:, None, None]  # here, since computing them before makes the compiler do worse
    cosine, sine = torch.cos(radians), torch.sin(radians)
    return cosine * x - sine * y, sine * x + cosine * y


def exact_sample(images: torch.Tensor, top: torch.Tensor, left: torch.Tensor, degrees: torch.Tensor) -> torch.Tensor:
    """Nearest pixel of the enlarged crop, which is computed where it is needed."""

    def taps(place: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pixel = torch.round(place + (SIZE - 1) / 2)
        source = ((pixel + 0.5) * (CROP / SIZE) - 0.5).clamp(0, CROP - 1)
        first = source.floor()
        inside = (pixel >= 0) & (pixel < SIZE)
        return inside[:, None], first.int(), (first + 1).clamp(max=CROP - 1).int(), (source - first)[:, None]

    x, y = turned_places(degrees)
    in_x, x0, x1, part_x = taps(x)
    in_y, y0, y1, part_y = taps(y)
    image = torch.arange(images.shape[0], device=images.device, dtype=torch.int32)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device, dtype=torch.int32)[None, :, None, None]
    top, left = top.int()[:, None, None], left.int()[:, None, None]

    def pixel(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        return images[image, channel, (row + top)[:, None], (column + left)[:, None]].float()

    above = pixel(y0, x0) + part_x * (pixel(y0, x1) - pixel(y0, x0))
    below = pixel(y1, x0) + part_x * (pixel(y1, x1) - pixel(y1, x0))
    return torch.where(in_x & in_y, above + part_y * (below - above), 0.0)


def affine_sample(images: torch.Tensor, top: torch.Tensor, left: torch.Tensor, degrees: torch.Tensor) -> torch.Tensor:
    """Crop, resize and rotation as one bilinear sample, which reads the turned crop's neighbourhood too."""
    x, y = turned_places(degrees)
    half, scale = SIZE / 2, CROP / SIZE
    grid = torch.stack([(scale * (x + half) + left[:, None, None]) / half - 1,
                        (scale * (y + half) + top[:, None, None]) / half - 1], -1)
    turned = functional.grid_sample(images.float(), grid, mode="bilinear", align_corners=False)
    return torch.where(((x.abs() <= half) & (y.abs() <= half))[:, None], turned, 0.0)


def compiled(function: Callable) -> Callable:
    return torch.compile(function, fullgraph=True, dynamic=False)


def chain_of(sample: Callable, how: Callable = lambda function: function) -> Callable:
    """The chain of four functions, on each of which `how` was called."""
    weights_of, sample, rows, columns = (how(f) for f in (blur_weights, sample, blurred_rows, blurred_columns))

    def chain(images: torch.Tensor, top: torch.Tensor, left: torch.Tensor, degrees: torch.Tensor,
              sigma: torch.Tensor) -> torch.Tensor:
        weights = weights_of(sigma)
        return columns(rows(sample(images, top, left, degrees), weights), weights)

    return chain


def transforms() -> nn.Module:
    return v2.Compose([v2.ToDtype(torch.float32), v2.RandomCrop(CROP), v2.Resize(SIZE, antialias=True),
                       v2.RandomRotation(DEGREES), v2.GaussianBlur(TAPS, SIGMAS),
                       v2.Normalize([MEAN] * 3, [DEVIATION] * 3)])


def check() -> None:
    """The chains must agree before their times mean anything: on a smooth image, and nearest ties aside."""
    small = torch.rand(4, 3, 9, 9, device="cuda")
    images = functional.interpolate(255 * small, [SIZE, SIZE], mode="bicubic").clamp(0, 255).byte()
    given = Parameters(4, "cuda")
    crops = torch.stack([operators.crop(image, int(t), int(l), CROP, CROP)
                         for image, t, l in zip(images.float(), given.top, given.left)])
    large = operators.resize(crops, [SIZE, SIZE], antialias=True)
    expected = torch.stack([operators.gaussian_blur(operators.rotate(image, float(angle)), TAPS, float(sigma))
                            for image, angle, sigma in zip(large, given.angles, given.sigma)])
    for name, found, allowed in (("exact", chain_of(exact_sample)(images, *given.on_device()), 0.01),
                                 ("affine", chain_of(affine_sample)(images, *given.on_device()), 4.0),
                                 ("published", published(images, given), 8.0)):
        error = (found - expected).abs().mean().item()
        if not error <= allowed:
            raise SystemExit(f"{name} is off by {error} on average, expected at most {allowed}")
