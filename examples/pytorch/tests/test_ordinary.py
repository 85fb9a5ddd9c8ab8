"""Ordinary trainings in which something changes that a graph would freeze, beside their plain loops."""

import copy
import functools

import pytest
import torch
from guarded_training import choose_soon, graphing  # noqa: F401  (a fixture)
from torch import nn

import sluice


class Script:
    """`make` sets it up, `step` is the stage, `between` comes after each epoch."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(0)
        self.device = device
        self.make()

    def make(self) -> None:
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def loss(self, x, y):
        return (self.model(x).squeeze(1) - y).square().mean()

    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step(self, x, y):
        return self.learn(self.loss(x, y))

    def between(self, epoch: int) -> None:
        pass


class FeaturesByHook(Script):
    def make(self):
        super().make()
        self.features = {}
        self.model[0].register_forward_hook(lambda module, given, out: self.features.update(first=out))

    def loss(self, x, y):
        return super().loss(x, y) + self.features["first"].square().mean()


class TwoPlayers(Script):
    def make(self):
        self.maker, self.judge = nn.Linear(6, 6).to(self.device), nn.Linear(6, 1).to(self.device)
        self.optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (self.judge, self.maker)]

    def step(self, x, y):
        self.optimizers[0].zero_grad()
        first = (self.judge(x) - 1).square().mean() + self.judge(self.maker(x).detach()).square().mean()
        first.backward()
        self.optimizers[0].step()
        self.optimizers[1].zero_grad()
        second = (self.judge(self.maker(x)) - 1).square().mean()
        second.backward()
        self.optimizers[1].step()
        return torch.stack([first.detach(), second.detach()])


class SpectralNorm(Script):
    def make(self):
        super().make()
        self.model[0] = nn.utils.parametrizations.spectral_norm(self.model[0])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)


class Curriculum(Script):
    epoch = 0

    def loss(self, x, y):
        loss = super().loss(x, y)
        return loss + 0.1 * self.model[0].weight.square().sum() if self.epoch >= 2 else loss

    def between(self, epoch):
        self.epoch = epoch + 1


class Squared(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * 2 * x * Squared.factor


class OwnFunction(Script):
    def make(self):
        super().make()
        Squared.factor = 1.0

    def loss(self, x, y):
        return (Squared.apply(self.model(x)).squeeze(1) - y).square().mean()

    def between(self, epoch):
        Squared.factor = 1.0 + epoch


class Average(Script):
    def make(self):
        super().make()
        self.mean, self.decay = copy.deepcopy(self.model), 0.9

    def step(self, x, y):
        loss = super().step(x, y)
        with torch.no_grad():
            for mean, weight in zip(self.mean.parameters(), self.model.parameters()):
                mean.mul_(self.decay).add_(weight, alpha=1 - self.decay)
            return loss + self.mean(x).mean()

    def between(self, epoch):
        self.decay = 0.95


class RunningTotal(Script):
    def make(self):
        super().make()
        self.total, self.smooth = torch.zeros((), device=self.device), torch.zeros((), device=self.device)

    def step(self, x, y):
        loss = super().step(x, y)
        self.total += loss
        return self.total * 1


class ReplacedTotal(RunningTotal):
    def step(self, x, y):
        self.smooth = self.smooth * 0.9 + Script.step(self, x, y)
        return self.smooth * 1


class Activation(Script):
    table = {"relu": torch.relu, "tanh": torch.tanh}
    name = "relu"

    def loss(self, x, y):
        return (self.table[self.name](self.model(x)).squeeze(1) - y).square().mean()

    def between(self, epoch):
        self.name = "tanh" if epoch % 2 else "relu"


class Clipped(Script):
    most = 0.5

    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.most)
        self.optimizer.step()
        return torch.stack([loss.detach(), norm])

    def between(self, epoch):
        self.most = 0.5 / (epoch + 1)


class GroupAdded(Script):
    def make(self):
        super().make()
        self.optimizer = torch.optim.SGD(self.model[0].parameters(), lr=0.05)

    def between(self, epoch):
        if epoch == 0:
            self.optimizer.add_param_group({"params": list(self.model[2].parameters())})


class Double(Script):
    def loss(self, x, y):
        return (self.model(x.to(self.model[0].weight.dtype)).squeeze(1) - y).square().mean().float()

    def between(self, epoch):
        if epoch == 1:
            self.model.double()


class Indices(Script):
    order = [0, 1, 2, 3, 4, 5]

    def make(self):
        super().make()
        self.order = [0, 1, 2, 3, 4, 5]

    def loss(self, x, y):
        return super().loss(x[:, self.order], y)

    def between(self, epoch):
        self.order.reverse()


@functools.lru_cache
def half(size: int, device: str) -> torch.Tensor:
    return torch.full((size,), 0.5, device=device)


class Cached(Script):
    def loss(self, x, y):
        return super().loss(x * half(6, self.device), y)

    def between(self, epoch):
        half.cache_clear()


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("kind", [Script, FeaturesByHook, TwoPlayers, SpectralNorm, Curriculum, OwnFunction, Average, RunningTotal,
                                  ReplacedTotal, Activation, Clipped, GroupAdded, Double, Indices, Cached])
def test_a_script(device, schedule, kind):
    generator = torch.Generator().manual_seed(1)
    data = [(torch.rand(5, 6, generator=generator), torch.rand(5, generator=generator)) for _ in range(50)]
    script = kind(device)
    expected = []
    for epoch in range(4):
        expected += [script.step(x.to(device), y.to(device)).tolist() for x, y in data]
        script.between(epoch)
    script = kind(device)
    run = sluice.pipeline(script.step, schedule=schedule, device=graphing(device))
    found = []
    for epoch in range(4):
        found += [loss.tolist() for loss in run(data)]
        script.between(epoch)
    assert found == expected, str(run.report())
