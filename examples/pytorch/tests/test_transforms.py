"""Transforms of torch.func around a whole loop, whose tensors have no memory of their own."""

import pytest
import torch
from small_training import SCHEDULES

import sluice


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_around_a_pipeline(device, schedule):
    def loss(x, plain=False):
        data = [x * i for i in range(12)]
        run = sluice.pipeline(lambda x: (x ** 3, x), lambda a, b: (a * b).sum(), schedule=schedule, device=device)
        return sum([(x ** 3 * x).sum() for x in data] if plain else run(data))

    x, functions = torch.rand(3, device=device), torch.func
    for transform in (functions.grad, functions.hessian, functions.jacfwd, lambda work: functions.vmap(work, in_dims=0)):
        given = x.expand(2, 3) if "lambda" in getattr(transform, "__name__", "") else x
        torch.testing.assert_close(transform(loss)(given), transform(lambda x: loss(x, plain=True))(given))
    torch.testing.assert_close(torch.autograd.functional.hessian(loss, x), functions.hessian(lambda x: loss(x, plain=True))(x))


def test_around_a_prefetched_loader(device):
    """What comes requires no gradient."""
    def loss(x):
        return sum((y * x).sum() for y in sluice.prefetch([x, x * 2, x * 3, x * 4], device))

    x = torch.rand(3, device=device)
    torch.testing.assert_close(torch.func.grad(loss)(x), 10 * x)
    torch.testing.assert_close(torch.func.vmap(loss)(x.expand(2, 3)), loss(x).expand(2))
