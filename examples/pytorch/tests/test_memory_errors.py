"""What a function of the package raises where there is no memory."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import sluice
from sluice._registration import gradients


def refused(*inputs):
    raise RuntimeError("sluice: PyTorch made no tensor of shape [9] and float32, expected memory for it; its log says why")


def test_on_a_gpu_it_is_pytorchs_own():
    with FakeTensorMode():
        on_gpu = torch.empty(3, device="cuda")
    with pytest.raises(torch.OutOfMemoryError, match="made no tensor of shape"):
        gradients.told_of_memory(refused)(3, on_gpu)
    with pytest.raises(torch.OutOfMemoryError, match="made no tensor of shape"):
        gradients.told_of_memory(lambda values: refused())(values=on_gpu)


@pytest.mark.parametrize("work", [lambda: torch.empty(2 ** 50), lambda: sluice.row_expand(torch.rand(3), [0, 3, 3, 10], 2 ** 50)])
def test_on_the_cpu_it_is_a_runtime_error(work):
    with pytest.raises(RuntimeError) as error:
        work()
    assert type(error.value) is RuntimeError


@pytest.mark.parametrize("function", [sluice.giou_loss, sluice.giou_loss_and_gradient, sluice.augment, sluice.augment_parameters,
                                      *gradients.eager.values()])
def test_every_function_tells(function):
    assert function.__code__ is gradients.told_of_memory(refused).__code__
