"""Augmentation of images as one kernel: crop, resize, rotation, blur and normalisation, each sample by its own numbers."""

from __future__ import annotations

import functools
import math
from typing import Any, Optional, Sequence, Union

import torch

from sluice._registration.gradients import told_of_memory
from sluice.arguments import INTEGERS as INTEGER_TYPES
from sluice.arguments import (
    NUMBERS, counted, fits, integer_of, number_of, of_numpy, pairs_of, require_kind, require_one_tensor, require_tensors, shown)

Pair = tuple[int, int]
Range = tuple[float, float]
Numbers = Union[float, Sequence[float]]
INTEGERS = (int, torch.SymInt)
TYPES = (torch.float32, torch.float16, torch.bfloat16)


def sample_ids(samples: torch.Tensor, epoch: Union[int, torch.Tensor] = 0) -> torch.Tensor:
    """[images, 2] of int64: the number of each sample in its data set, and the epoch, from 0 to 2^32 - 1. For a graph, make
    them once, and write the numbers of the next batch into them."""
    tensors = {"samples": samples, "epoch": epoch} if isinstance(epoch, torch.Tensor) else {"samples": samples}
    require_tensors("sample_ids", **tensors)
    require_one_tensor("sample_ids", **tensors)
    for argument, tensor in tensors.items():
        if tensor.dtype not in (torch.int64, *INTEGER_TYPES):
            raise RuntimeError(f"sluice.sample_ids: {argument} is of {str(tensor.dtype)[6:]}, expected integers")
    if samples.dim() != 1:
        raise RuntimeError(f"sluice.sample_ids: samples has shape {list(samples.shape)}, expected [images]")
    samples = samples.long()
    if not isinstance(epoch, torch.Tensor):
        epoch = integer_of("sample_ids", "epoch", epoch)
        if isinstance(epoch, int) and not 0 <= epoch < 2 ** 32:
            raise RuntimeError(f"sluice.sample_ids: epoch is {epoch}, expected 0 to 4294967295")
        epoch = torch.full_like(samples, epoch)
    elif epoch.dim() > 1 or epoch.numel() not in (1, samples.shape[0]):
        raise RuntimeError(f"sluice.sample_ids: epoch has shape {list(epoch.shape)}, expected one, or one for each of "
                           f"{counted(samples.shape[0], 'sample')}")
    else:
        require_epochs("sample_ids", "epoch", epoch.long())
    return torch.stack([samples, epoch.long().expand_as(samples)], 1)


def require_epochs(name: str, argument: str, epochs: torch.Tensor) -> None:
    """Reads them on the CPU, where that costs nothing."""
    if type(epochs) is torch.Tensor and epochs.is_cpu and epochs.numel() > 0 and not (
            torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()):
        for found in map(int, epochs.aminmax()):
            if not 0 <= found < 2 ** 32:
                raise RuntimeError(f"sluice.{name}: {argument} has {found}, expected 0 to 4294967295")


def require_ids(name: str, samples: torch.Tensor) -> None:
    require_tensors(name, samples=samples)
    require_one_tensor(name, samples=samples)
    if samples.dtype is torch.int64 and samples.dim() == 2 and samples.shape[1] == 2:  # else the operator says what is wrong
        require_epochs(name, "the epochs of samples", samples[:, 1])


@told_of_memory
def augment(images: torch.Tensor, samples: torch.Tensor, *, seed: int = 0, crop: Pair = (128, 128), size: Pair = (256, 256),
            degrees: Range = (-45.0, 45.0), sigma: Range = (0.1, 2.0), fill: float = 0.0,
            mean: Numbers = 0.0, std: Numbers = 1.0, deviation: Optional[float] = None,
            dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """[images, channels, *size]: a crop anywhere, enlarged (or shrunk, with antialiasing) bilinearly, rotated about its
    centre to the nearest pixel, blurred by 7 x 7 weights, and normalised: (value - mean) / std, which are numbers, or one for
    each channel. `deviation` is another name of `std`.

    `images` is [images, channels, height, width] of uint8; the result has its memory format. `samples` says which samples
    these are: [images, 2] as by `sample_ids`, or [1, 2] for the first of samples that follow each other. Where the crop
    begins, the angle in degrees and the blur's sigma are drawn from (seed, epoch, sample) alone: not from the batch, the
    device or the schedule. The ids are read on the device, so a captured graph draws anew in each replay.

    `dtype` is float32, float16 or bfloat16; by default that of autocast, or float32. There is no gradient. Numbers by channel, and
    bfloat16, take a kernel more.
    """
    require_tensors("augment", images=images, samples=samples)
    require_one_tensor("augment", images=images)
    require_ids("augment", samples)
    crop, size = pairs_of("augment", INTEGERS, "two integers", crop=crop, size=size)
    degrees, sigma = pairs_of("augment", NUMBERS, "two numbers", degrees=degrees, sigma=sigma)
    fill, seed = number_of("augment", "fill", fill), integer_of("augment", "seed", seed)
    kind = images.device.type
    if dtype is None:
        wanted = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        dtype = wanted if wanted in (torch.float16, torch.bfloat16) else torch.float32
    require_kind("augment", torch.dtype, "a torch.dtype", dtype=dtype)
    if dtype not in TYPES:
        raise RuntimeError(f"sluice.augment: dtype is {str(dtype)[6:]}, expected float32, float16 or bfloat16")
    of_std = "std"  # what the caller names it
    if deviation is not None:
        if not isinstance(std, (int, float)) or std != 1.0:
            raise RuntimeError(f"sluice.augment: std is {std} and deviation {deviation}, expected one of them")
        of_std, std = "deviation", deviation
    mean, std = numbers_by_channel("mean", mean, images), numbers_by_channel(of_std, std, images)
    if not torch.compiler.is_compiling():
        require_finite("mean", mean)
        require_finite(of_std, std)
        if not isinstance(std, torch.Tensor) and not all(numbers_of(std)):
            raise RuntimeError(f"sluice.augment: {of_std} is {std}, expected numbers other than 0")
    by_channel = isinstance(mean, (Sequence, torch.Tensor)) or isinstance(std, (Sequence, torch.Tensor))
    at_once = not by_channel and dtype != torch.bfloat16
    result = torch.ops.sluice.augment(images, samples, seed, crop[0], crop[1], degrees[0], degrees[1], sigma[0], sigma[1], size[0],
                                      size[1], fill, 0.0 if by_channel else mean, 1.0 if by_channel else std,
                                      dtype if at_once else torch.float32)
    if by_channel:
        shift, scale = of_channels("mean", mean, result), of_channels(of_std, std, result)
        result = result.sub_(shift).div_(scale)
    return result.to(dtype)


def numbers_by_channel(name: str, given: Any, like: torch.Tensor) -> Any:
    """An array's numbers as a list: what it holds may change."""
    numbers = of_numpy(given)
    if isinstance(numbers, torch.Tensor):
        require_tensors("augment", **{name: numbers})
        require_one_tensor("augment", **{name: numbers})
        if numbers.is_complex() or numbers.is_meta != like.is_meta:
            raise RuntimeError(f"sluice.augment: {name} is {shown(numbers)}, expected real numbers on a device")
        return numbers
    if isinstance(numbers, Sequence) and not isinstance(numbers, (str, bytes)):
        numbers = [of_numpy(each) for each in numbers]
    if isinstance(numbers, bytes) or not all(isinstance(each, NUMBERS) and fits(each) for each in numbers_of(numbers)):
        raise RuntimeError(f"sluice.augment: {name} is {shown(given)}, expected a number, or one for each channel")
    return numbers


def require_finite(name: str, numbers: Any) -> None:
    if not isinstance(numbers, torch.Tensor) and not all(map(math.isfinite, numbers_of(numbers))):
        raise RuntimeError(f"sluice.augment: {name} is {numbers}, expected finite numbers")


def numbers_of(numbers: Numbers) -> Sequence[float]:
    return numbers if isinstance(numbers, Sequence) else [numbers]


def of_channels(name: str, numbers: Union[Numbers, torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """[channels or 1, 1, 1]."""
    if not isinstance(numbers, torch.Tensor):
        numbers = on_device(tuple(map(float, numbers_of(numbers))), images.device)
    if numbers.dim() > 1 or numbers.numel() not in (1, images.shape[1]):
        raise RuntimeError(f"sluice.augment: {name} has shape {list(numbers.shape)}, expected one number, or one for each of "
                           f"{counted(images.shape[1], 'channel')}")
    return numbers.to(images.device, torch.float32).view(-1, 1, 1)


@functools.lru_cache(maxsize=64)
def on_device(numbers: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """Made once: a copy from the host can be part of no graph."""
    with torch.inference_mode(False), torch.no_grad():
        return torch.tensor(numbers, device=device)


@told_of_memory
def augment_parameters(samples: torch.Tensor, count: int, image: Pair, *, seed: int = 0, crop: Pair = (128, 128),
                       degrees: Range = (-45.0, 45.0), sigma: Range = (0.1, 2.0)) -> torch.Tensor:
    """[count, 4] of float32: the top and left of the crop, the angle and the sigma that `augment` draws for images of `image`
    pixels (height, width)."""
    require_ids("augment_parameters", samples)
    crop, image = pairs_of("augment_parameters", INTEGERS, "two integers", crop=crop, image=image)
    degrees, sigma = pairs_of("augment_parameters", NUMBERS, "two numbers", degrees=degrees, sigma=sigma)
    count, seed = integer_of("augment_parameters", "count", count), integer_of("augment_parameters", "seed", seed)
    return torch.ops.sluice.augment_parameters(samples, count, image[0], image[1], seed, crop[0], crop[1], degrees[0],
                                               degrees[1], sigma[0], sigma[1])
