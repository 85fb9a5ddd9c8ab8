"""Images: shapes."""

from __future__ import annotations

import torch
from torch.library import register_fake


@register_fake("sluice::augment")
def _(images, samples, seed, crop_height, crop_width, least_degrees, most_degrees, least_sigma, most_sigma, height, width,
      fill, mean, deviation, dtype):
    interleaved = not images.is_contiguous() and images.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if interleaved else torch.contiguous_format
    return torch.empty([images.shape[0], images.shape[1], height, width], dtype=dtype, device=images.device,
                       memory_format=layout)


@register_fake("sluice::augment_parameters")
def _(samples, count, height, width, seed, crop_height, crop_width, least_degrees, most_degrees, least_sigma, most_sigma):
    return samples.new_empty([count, 4], dtype=torch.float32)
