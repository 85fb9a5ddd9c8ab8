"""Augmentation of images as one kernel: crop, resize, rotation, blur and normalisation, each sample by its own numbers."""

from __future__ import annotations

from typing import Optional, Union

import torch

Pair = tuple[int, int]
Range = tuple[float, float]


def sample_ids(samples: torch.Tensor, epoch: Union[int, torch.Tensor] = 0) -> torch.Tensor:
    """[images, 2] of int64: the number of each sample in its data set, and the epoch, from 0 to 2^32 - 1. For a graph, make
    them once, and write the numbers of the next batch into them."""
    if not isinstance(epoch, torch.Tensor):
        epoch = torch.full_like(samples, epoch)
    return torch.stack([samples, epoch.expand_as(samples)], 1)


def augment(images: torch.Tensor, samples: torch.Tensor, *, seed: int = 0, crop: Pair = (128, 128), size: Pair = (256, 256),
            degrees: Range = (-45.0, 45.0), sigma: Range = (0.1, 2.0), fill: float = 0.0, mean: float = 0.0,
            deviation: float = 1.0, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """[images, channels, *size]: a crop anywhere, enlarged (or shrunk, with antialiasing) bilinearly, rotated about its
    centre to the nearest pixel, blurred by 7 x 7 weights, and normalised: (value - mean) / deviation.

    `images` is [images, channels, height, width] of uint8; the result has its memory format. `samples` says which samples
    these are: [images, 2] as by `sample_ids`, or [1, 2] for the first of samples that follow each other. Where the crop
    begins, the angle in degrees and the blur's sigma are drawn from (seed, epoch, sample) alone: not from the batch, the
    device or the schedule. The ids are read on the device, so a captured graph draws anew in each replay.

    `dtype` is float32 or float16; by default float16 under autocast to that, otherwise float32. There is no gradient.
    """
    if dtype is None:
        kind = images.device.type
        half = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16
        dtype = torch.float16 if half else torch.float32
    return torch.ops.sluice.augment(images, samples, seed, crop[0], crop[1], degrees[0], degrees[1], sigma[0], sigma[1],
                                    size[0], size[1], fill, mean, deviation, dtype)


def augment_parameters(samples: torch.Tensor, count: int, image: Pair, *, seed: int = 0, crop: Pair = (128, 128),
                       degrees: Range = (-45.0, 45.0), sigma: Range = (0.1, 2.0)) -> torch.Tensor:
    """[count, 4] of float32: the top and left of the crop, the angle and the sigma that `augment` draws for images of `image`
    pixels (height, width)."""
    return torch.ops.sluice.augment_parameters(samples, count, image[0], image[1], seed, crop[0], crop[1], degrees[0],
                                               degrees[1], sigma[0], sigma[1])
