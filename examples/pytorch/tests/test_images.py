"""Augmentation beside the same steps by PyTorch's own functions, and what its random numbers depend on."""

import math

import pytest
import torch
from torch.nn import functional

import sluice

CROP, SIZE, TAPS = (40, 48), (80, 96), 7


def smooth_images(count: int, device: str) -> torch.Tensor:
    small = torch.rand(count, 3, 7, 9, device=device)
    return functional.interpolate(255 * small, [100, 120], mode="bicubic").clamp(0, 255).byte()


def by_torch(image: torch.Tensor, parameters: list[float]) -> torch.Tensor:
    """One image, step by step."""
    top, left, degrees, sigma = parameters
    crop = image[None, :, int(top):int(top) + CROP[0], int(left):int(left) + CROP[1]].double()
    large = functional.interpolate(crop, SIZE, mode="bilinear", align_corners=False, antialias=True)
    height, width = SIZE
    x = torch.arange(width, dtype=torch.float64, device=image.device) - (width - 1) / 2
    y = torch.arange(height, dtype=torch.float64, device=image.device) - (height - 1) / 2
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    grid = torch.stack([(cosine * x - sine * y[:, None]) / (width / 2), (sine * x + cosine * y[:, None]) / (height / 2)], -1)
    turned = functional.grid_sample(large, grid[None], mode="nearest", align_corners=False)
    place = torch.linspace(-(TAPS - 1) / 2, (TAPS - 1) / 2, TAPS, dtype=torch.float64, device=image.device)
    weights = torch.softmax(-(place / (math.sqrt(2) * sigma)) ** 2, 0)
    padded = functional.pad(turned, [TAPS // 2] * 4, mode="reflect")
    kernel = (weights[:, None] * weights)[None, None].expand(3, 1, TAPS, TAPS)
    return ((functional.conv2d(padded, kernel, groups=3) - 100) / 50)[0]


def augmented(images: torch.Tensor, samples: torch.Tensor, **options) -> torch.Tensor:
    return sluice.augment(images, samples, seed=5, crop=CROP, size=SIZE, mean=100.0, deviation=50.0, **options)


def test_beside_pytorch(device):
    images = smooth_images(6, device)
    samples = sluice.sample_ids(torch.arange(6, device=device), 2)
    parameters = sluice.augment_parameters(samples, 6, (100, 120), seed=5, crop=CROP)
    tops, lefts, degrees, sigmas = parameters.T
    assert ((tops >= 0) & (tops <= 60) & (lefts >= 0) & (lefts <= 72) & (degrees.abs() <= 45)).all()
    assert ((sigmas >= 0.1) & (sigmas <= 2)).all() and len(set(degrees.tolist())) == 6
    expected = torch.stack([by_torch(image, row) for image, row in zip(images, parameters.tolist())])
    # A pixel halfway between two may be taken from either.
    difference = (augmented(images, samples).double() - expected).abs()
    assert difference.mean() < 2e-3 and (difference > 1e-3).double().mean() < 0.02


def test_numbers_depend_on_seed_epoch_and_sample_alone(device):
    images = smooth_images(4, device)
    numbers = torch.tensor([11, 3, 8, 4], device=device)
    all_four = augmented(images, sluice.sample_ids(numbers))
    assert augmented(images[2:], sluice.sample_ids(numbers[2:])).equal(all_four[2:])
    assert not augmented(images, sluice.sample_ids(numbers, 1)).equal(all_four)
    first = torch.tensor([[3, 0]], device=device)  # of samples 3, 4, …
    assert augmented(images[:2], first).equal(augmented(images[:2], sluice.sample_ids(torch.tensor([3, 4], device=device))))
    drawn = [sluice.augment_parameters(first, 1, (100, 120), seed=seed, crop=CROP) for seed in (5, 6)]
    assert not drawn[0].equal(drawn[1])


def test_memory_formats_and_types(device):
    images = smooth_images(3, device)
    samples = sluice.sample_ids(torch.arange(3, device=device))
    plain = augmented(images, samples)
    last = augmented(images.contiguous(memory_format=torch.channels_last), samples)
    assert plain.is_contiguous() and last.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last.contiguous(), plain, rtol=1e-5, atol=1e-4)
    assert augmented(images.repeat(1, 1, 1, 2)[..., :120], samples).equal(plain)
    half = augmented(images, samples, dtype=torch.float16)
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), plain, rtol=1e-3, atol=1e-3)
    with torch.autocast(device, torch.float16):
        assert augmented(images, samples).dtype == torch.float16
    assert augmented(images[:0], samples[:0]).shape == (0, 3, *SIZE)


def test_numbers_by_channel(device):
    images = smooth_images(3, device)
    samples = sluice.sample_ids(torch.arange(3, device=device))
    options = {"seed": 5, "crop": CROP, "size": SIZE}
    plain = sluice.augment(images, samples, **options)
    mean, std = [100.0, 110.0, 120.0], (50.0, 60.0, 70.0)
    expected = (plain - torch.tensor(mean, device=device).view(-1, 1, 1)) / torch.tensor(std, device=device).view(-1, 1, 1)
    assert sluice.augment(images, samples, mean=mean, std=std, **options).equal(expected)
    assert sluice.augment(images, samples, mean=torch.tensor(mean), std=torch.tensor(std), **options).equal(expected)
    torch.testing.assert_close(sluice.augment(images, samples, mean=[100.0] * 3, std=50.0, **options), augmented(images, samples))
    assert sluice.augment(images, samples, mean=100.0, std=50.0, **options).equal(augmented(images, samples))
    last = sluice.augment(images.contiguous(memory_format=torch.channels_last), samples, mean=mean, std=std, **options)
    assert last.is_contiguous(memory_format=torch.channels_last)
    half = sluice.augment(images, samples, mean=mean, std=std, dtype=torch.float16, **options)
    assert half.dtype == torch.float16 and half.equal(expected.half())


def test_numbers_of_numpy(device):
    numpy = pytest.importorskip("numpy")
    images = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8, device=device)
    samples = sluice.sample_ids(torch.arange(2, device=device))
    options = {"crop": (32, 32), "size": (24, 24)}
    found = sluice.augment(images, samples, mean=numpy.array([0.1, 0.2, 0.3]), std=numpy.float32(0.5), **options)
    assert torch.equal(found, sluice.augment(images, samples, mean=[0.1, 0.2, 0.3], std=0.5, **options))


def test_bfloat16(device):
    images = smooth_images(3, device)
    samples = sluice.sample_ids(torch.arange(3, device=device))
    found = augmented(images, samples, dtype=torch.bfloat16)
    assert found.dtype == torch.bfloat16 and found.equal(augmented(images, samples).bfloat16())
    with torch.autocast(device, torch.bfloat16):
        assert augmented(images, samples).dtype == torch.bfloat16


def test_opcheck(device):
    images = smooth_images(2, device)
    samples = sluice.sample_ids(torch.arange(2, device=device))
    for given in (images, images.contiguous(memory_format=torch.channels_last)):
        torch.library.opcheck(torch.ops.sluice.augment.default,
                              (given, samples, 1, 40, 48, -45.0, 45.0, 0.1, 2.0, 20, 24, 0.0, 0.0, 1.0, torch.float32))
    torch.library.opcheck(torch.ops.sluice.augment_parameters.default,
                          (samples, 2, 100, 120, 1, 40, 48, -45.0, 45.0, 0.1, 2.0))


def wrong_arguments():
    images, samples = torch.zeros(2, 3, 64, 64, dtype=torch.uint8), torch.zeros(2, 2, dtype=torch.int64)
    work = sluice.augment
    small = {"crop": (32, 32), "size": (32, 32)}
    return {
        "images is of float32, expected uint8": lambda: work(images.float(), samples, **small),
        "images has shape [3, 64, 64], expected [images": lambda: work(images[0], samples, **small),
        "samples has shape [2], expected [2, 2]": lambda: work(images, samples[0], **small),
        "samples is of int32, expected int64": lambda: work(images, samples.int(), **small),
        "crop is (128, 128), expected at most (64, 64)": lambda: work(images, samples),
        "dtype is float64, expected float32, float16 or bfloat16": lambda: work(images, samples, dtype=torch.float64, **small),
        "mean has shape [2], expected one number, or one for each of 3 channels": lambda: work(images, samples, mean=[1, 2], **small),
        "std is [1.0, 0.0, 2.0], expected numbers other than 0": lambda: work(images, samples, std=[1.0, 0.0, 2.0], **small),
        "sigma is (2.000000, 1.000000), expected two": lambda: work(images, samples, sigma=(2.0, 1.0), **small),
        "sigma is (0.000000, 1.000000), expected two": lambda: work(images, samples, sigma=(0.0, 1.0), **small),
        "samples is a list, expected a tensor": lambda: work(images, samples.tolist(), **small),
        "std is 0.3 and deviation 0.5, expected one of them": lambda: work(images, samples, std=0.3, deviation=0.5, **small),
        "deviation is 0.0, expected": lambda: work(images, samples, deviation=0.0, **small),
        "the result's height is 0": lambda: work(images, samples, crop=(32, 32), size=(0, 32)),
    }


@pytest.mark.parametrize("sentence", wrong_arguments())
def test_wrong_arguments(sentence):
    with pytest.raises(RuntimeError) as error:
        wrong_arguments()[sentence]()
    assert sentence in str(error.value) and "\n" not in str(error.value)
