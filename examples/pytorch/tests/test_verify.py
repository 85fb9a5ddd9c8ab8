"""`verify=True`: epochs, and values of all kinds."""

import pytest
import torch
from graphing_device import GraphingDevice

import sluice


class Learner:
    def __init__(self, device: str, optimizer, **options) -> None:
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)).to(device)
        self.optimizer = optimizer(self.model.parameters(), lr=1e-5, **options)

    def step(self, x):
        loss = self.model(x).square().mean()  # gradients add up
        loss.backward()
        self.optimizer.step()
        return loss.detach()


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("optimizer,options", [(torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {})])
def test_epochs(device, schedule, optimizer, options):
    def make():
        return Learner(device, optimizer, **options)

    data = [torch.rand(5, 6) for _ in range(40)]
    plain, learner = make(), make()
    run = sluice.pipeline(learner.step, schedule=schedule, device=GraphingDevice() if device == "cpu" else device, verify=True,
                          state=[learner.model, learner.optimizer])
    for _ in range(4):
        assert [loss.item() for loss in run(data)] == [plain.step(x.to(device)).item() for x in data]


def test_state_is_put_back_in_place(device):
    """What holds the momentum holds it still, graphs among them."""
    learner = Learner(device, torch.optim.SGD, momentum=0.9)
    run = sluice.pipeline(learner.step, device=device, verify=True, state=[learner.model, learner.optimizer])
    list(run([torch.rand(5, 6)] * 9))
    weight = learner.model[0].weight
    momentum = learner.optimizer.state[weight]["momentum_buffer"]
    list(run([torch.rand(5, 6)] * 9))
    assert learner.optimizer.state[weight]["momentum_buffer"] is momentum


def test_nan_is_nan(device):
    values = (float("nan"), complex("nan"), "text", None)

    def stage(x):
        return x * float("nan"), float("nan"), values

    run = sluice.pipeline(stage, device=device, verify=True)
    assert len(list(run([torch.rand(3)] * 9))) == 9


def test_arrays_are_compared(device):
    numpy = pytest.importorskip("numpy")
    count = 0

    class Array:  # passes through a pipeline as an object
        def __init__(self, value):
            self.value = numpy.full(2, value)

        def __ne__(self, other):
            return self.value != other.value

        def __eq__(self, other):
            return self.value == other.value

    def stage(x):
        nonlocal count
        count += 1
        return x, Array(count)

    with pytest.raises(sluice.VerifyError, match="batch 0 differs"):
        list(sluice.pipeline(stage, device=device, verify=True)([torch.zeros(1)] * 3))
