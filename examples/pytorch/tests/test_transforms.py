"""Derivatives of a whole loop: by transforms of torch.func, whose tensors have no memory of their own, and by autograd."""

import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES

import sluice
from sluice.pipelines.history import has_history


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
    """Its gradient leads back."""
    def loss(x):
        return sum((y * x).sum() for y in sluice.prefetch([x, x * 2, x * 3, x * 4], device))

    x = torch.rand(3, device=device)
    torch.testing.assert_close(torch.func.grad(loss)(x), 20 * x)
    torch.testing.assert_close(torch.func.vmap(loss)(x.expand(2, 3)), loss(x).expand(2))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_around_graphs_and_the_library(by_library, schedule):
    def loss(x):
        return sum(sluice.pipeline(lambda x: x ** 3, lambda x: x.sum(), schedule=schedule, device=GraphingDevice())([x * i for i in range(40)]))

    x, cubes = torch.rand(3), sum(i ** 3 for i in range(40))
    torch.testing.assert_close(torch.func.grad(loss)(x), 3 * cubes * x ** 2)
    torch.testing.assert_close(torch.func.vmap(loss)(x.expand(2, 3)), cubes * (x ** 3).sum().expand(2))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("form", ["first stage", "both stages", "func", "body"])
def test_of_a_loss_among_graphs(device, schedule, form):
    """A result that a program may differentiate has its history."""
    device = GraphingDevice() if device == "cpu" else device
    data = [torch.full((3,), float(i)) for i in range(180)]
    at = getattr(device, "device", device)

    def of(batches, weight):
        stages = (lambda x: (x * weight) ** 3, lambda x: x.sum()) if form != "both stages" else (lambda x: x * 2, lambda x: (x * weight ** 2).sum())
        if batches == "plain":
            return sum(stages[1](stages[0](x.to(at))) for x in data)
        return sum(sluice.pipeline(*stages, schedule=schedule, device=device)(data))

    weight = torch.rand(3, device=at)
    if form == "body":
        gradients = []
        for batches in ("plain", "run"):
            leaf = weight.clone().requires_grad_()
            of(batches, leaf).backward()
            gradients.append(leaf.grad)
        torch.testing.assert_close(*gradients)
        return
    found, expected = (torch.func.hessian(lambda leaf: of(batches, leaf))(weight) if form == "func" else
                       torch.autograd.functional.hessian(lambda leaf: of(batches, leaf), weight) for batches in ("run", "plain"))
    torch.testing.assert_close(found, expected)


def test_a_loss_that_was_differentiated_ends_no_graphs(device):
    weight = torch.ones(3, device="cpu" if device == "cpu" else device, requires_grad=True)

    def train(x):
        weight.grad = None
        loss = (x * weight).square().sum()
        loss.backward()
        return loss

    run = sluice.pipeline(lambda x: x * 2, train, schedule="graphed", device=GraphingDevice() if device == "cpu" else device)
    found = list(run([torch.full((3,), float(i)) for i in range(40)]))
    assert [loss.item() for loss in found] == [12.0 * i * i for i in range(40)] and run.report().replays["train"] > 0


@pytest.mark.parametrize("make, is_freed", [
    (lambda w: (w * 2).square().sum(), True), (lambda w: torch.stack([w, w.exp()]).prod(), True), (lambda w: w.sum(), False),
    (lambda w: sluice.row_sum(w, [0, 3]).sum(), True), (lambda w: torch.compile(lambda w: w.exp().sum(), backend="aot_eager")(w), True)])
def test_history_until_a_backward_pass(make, is_freed):
    loss = make(torch.ones(3, requires_grad=True))
    assert has_history(loss) and not has_history(loss.detach())
    loss.backward()
    assert has_history(loss) is not is_freed
