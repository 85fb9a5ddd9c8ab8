"""Trainings put together at random, under every schedule beside a plain loop."""

import contextlib
import copy
import random

import pytest
import torch
from guarded_training import choose_soon, graphing  # noqa: F401  (a fixture)

import sluice

COUNT = 60
OPTIMIZERS = [(torch.optim.SGD, {}), (torch.optim.SGD, {"momentum": 0.9}),
              (torch.optim.SGD, {"foreach": True, "weight_decay": 0.01}), (torch.optim.Adam, {}), (torch.optim.Adam, {"capturable": True}), (torch.optim.AdamW, {"fused": True}),
              (torch.optim.RMSprop, {}), (torch.optim.Adagrad, {})]
SCHEDULERS = [None, lambda o: torch.optim.lr_scheduler.StepLR(o, 25, 0.5),
              lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.98),
              lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.02, total_steps=400)]


class Part(torch.nn.Module):
    """A layer of the user's, with a number, a buffer and a branch."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear, self.scale = torch.nn.Linear(size, size), 0.9
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x).tanh() * self.scale
        if self.training:
            self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        return x + y - self.mean


class Script:
    """A training, of which a plain loop and pipelines run the same."""

    def __init__(self, seed: int, device: str) -> None:
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.device = device
        self.encoder = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU()).to(device).requires_grad_(False)
        kinds = [lambda: torch.nn.BatchNorm1d(8), lambda: torch.nn.Dropout(0.3), lambda: torch.nn.LayerNorm(8), lambda: Part(8),
                 lambda: torch.nn.Linear(8, 8), lambda: torch.nn.GELU()]
        layers = [draw.choice(kinds)() for _ in range(draw.randint(1, 4))]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(8, 1)).to(device)
        kind, options = draw.choice(OPTIMIZERS)
        if options.get("capturable") and device == "cpu":
            options = {}
        self.optimizer = kind(self.model.parameters(), lr=draw.choice([0.001, 0.01]), **options)
        make = draw.choice(SCHEDULERS)
        self.scheduler = None if make is None else make(self.optimizer)
        self.accumulate = draw.choice([1, 1, 1, 3])
        self.to_none = draw.choice([True, True, False])
        self.clip = draw.choice([0, 0, 1.0])
        self.scaler = torch.amp.GradScaler(device, growth_interval=7) if draw.random() < 0.15 else None
        self.autocast = draw.random() < 0.2
        self.stage_autocast = draw.random() < 0.2
        self.checkpointed = draw.random() < 0.15
        self.ema = copy.deepcopy(self.model) if draw.random() < 0.2 else None
        self.between = draw.choice(["", "", "rate", "load", "freeze", "evaluate", "p", "assign"])
        self.stops = draw.random() < 0.2
        self.short = draw.random() < 0.5
        self.batches = 0

    def encode(self, x: torch.Tensor, y: torch.Tensor) -> tuple:
        return self.encoder(x), y

    def train(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.batches += 1 if self.accumulate > 1 else 0
        is_first = self.accumulate == 1 or self.batches % self.accumulate == 1
        if is_first:
            self.optimizer.zero_grad(set_to_none=self.to_none)
        with torch.autocast(self.device, torch.bfloat16) if self.stage_autocast else contextlib.nullcontext():
            out = torch.utils.checkpoint.checkpoint(self.model, x, use_reentrant=False) if self.checkpointed else self.model(x)
            loss = (out.squeeze(1).float() - y).square().mean()
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        if self.accumulate == 1 or self.batches % self.accumulate == 0:
            self.step()
        return loss.detach()

    def step(self) -> None:
        if self.clip:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.scheduler is not None:
            self.scheduler.step()
        if self.ema is not None:
            with torch.no_grad():
                for mean, weight in zip(self.ema.parameters(), self.model.parameters()):
                    mean.lerp_(weight, 0.1)

    def data(self, epoch: int) -> list:
        generator = torch.Generator().manual_seed(epoch)
        sizes = [5] * (COUNT - 1) + [3 if self.short else 5]
        return [(torch.rand(size, 6, generator=generator), torch.rand(size, generator=generator)) for size in sizes]

    def after(self, epoch: int) -> None:
        if self.between == "rate":
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5
        elif self.between == "load" and epoch == 0:
            self.saved = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        elif self.between == "load":
            self.model.load_state_dict(self.saved[0])
            self.optimizer.load_state_dict(copy.deepcopy(self.saved[1]))
        elif self.between == "freeze":
            next(self.model.parameters()).requires_grad_(epoch % 2 == 1)
        elif self.between == "evaluate":
            self.model.eval()
            with torch.no_grad():
                self.model(torch.ones(2, 8, device=self.device))
            self.model.train()
        elif self.between == "p":
            for module in self.model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.1 * (epoch + 1)
                elif isinstance(module, Part):
                    module.scale = 0.5
        elif self.between == "assign":
            self.encoder.load_state_dict({name: value * 0.5 for name, value in self.encoder.state_dict().items()}, assign=True)

    def epoch(self, results, epoch: int) -> list[float]:
        with torch.autocast(self.device, torch.bfloat16) if self.autocast else contextlib.nullcontext():
            losses = [loss.item() for loss in results]
        self.after(epoch)
        return losses

    def state(self) -> list[torch.Tensor]:
        means = [] if self.ema is None else list(self.ema.parameters())
        return [value.detach().cpu().clone() for value in [*self.model.state_dict().values(), *means]]


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("seed", range(24))
def test_a_training(device, schedule, seed):
    plain, piped = Script(seed, device), Script(seed, device)
    run = sluice.pipeline(piped.encode, piped.train, schedule=schedule, device=graphing(device))
    for epoch in range(3):
        torch.manual_seed(100 + epoch)
        data = plain.data(epoch)
        expected = plain.epoch((plain.train(*plain.encode(*(t.to(device) for t in batch))) for batch in data), epoch)
        torch.manual_seed(100 + epoch)
        found = piped.epoch(run(data), epoch)
        assert repr(found) == repr(expected), f"epoch {epoch}\n{run.report()}\n{vars(piped)}"
    for a, b in zip(plain.state(), piped.state()):
        assert torch.equal(a, b) or bool(a.isnan().any()), str(run.report())
