"""A training that learns in its second stage, beside its plain loop, by graphs: on the CPU by a device that freezes what a GPU's
graph freezes."""

import pytest
import torch
from graphing_device import GraphingDevice

import sluice

SCHEDULES = ["graphed", "automatic"]
COUNT = 60  # `automatic` has chosen by then
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.fixture(autouse=True)
def choose_soon(monkeypatch):
    from sluice.pipelines import choice
    for name, batches in (("SETTLING", 2), ("TIMED", 2), ("CAPTURING", 6)):
        monkeypatch.setattr(choice, name, batches)


def graphing(device: str):
    return GraphingDevice() if device == "cpu" else device


def data(count: int = COUNT, device: str = "cpu") -> list:
    generator = torch.Generator().manual_seed(1)
    return [(torch.rand(5, 6, generator=generator).to(device), torch.rand(5, generator=generator).to(device)) for _ in range(count)]


class Training:
    """A model that learns in the second stage, from the same weights each time."""

    def __init__(self, device: str, optimizer=torch.optim.SGD, dropout: float = 0.0, **options) -> None:
        torch.manual_seed(3)
        self.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(dropout),
                                         torch.nn.Linear(8, 1)).to(device)
        self.optimizer = optimizer(self.model.parameters(), **{"lr": 0.05, **options})
        self.scheduler = None

    def encode(self, x, y):
        return self.encoder(x).relu(), y

    def train(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.model(x).squeeze(1) - y).square().mean()
        loss.backward()
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.detach()

    def loop(self, batches):
        for batch in batches:
            yield self.train(*self.encode(*batch))

    def weights(self):
        return [p.detach().cpu().clone() for p in self.model.parameters()]


def beside_a_plain_loop(device, schedule, make, epochs, between=lambda training, epoch: None, count=COUNT, stages=None):
    """The same losses and weights; returns the pipeline."""
    plain, piped = make(), make()
    two = stages or (lambda training: (training.encode, training.train))
    run = sluice.pipeline(*two(piped), schedule=schedule, device=graphing(device))
    for epoch in range(epochs):
        torch.manual_seed(epoch)
        expected = [loss.item() for loss in plain.loop(data(count, device))]
        torch.manual_seed(epoch)
        found = [loss.item() for loss in run(data(count))]
        assert found == expected, f"epoch {epoch}\n{run.report()}"
        between(plain, epoch)
        between(piped, epoch)
    assert all(torch.equal(a, b) for a, b in zip(plain.weights(), piped.weights())), str(run.report())
    return run


def replays(run, name="train"):
    return run.report().replays[name]


def smaller(weight):
    weight.grad.mul_(0.1)


def step_and_decay(training, x, y):
    loss = Training.train(training, x, y)
    training.optimizer.param_groups[0]["lr"].mul_(0.99)
    return loss
