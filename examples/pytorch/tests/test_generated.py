"""Trainings of random choices, each beside its plain loop, bit for bit, by every schedule.

A seed makes a script: a model, an optimizer, a schedule of rates, a scaler, accumulated gradients, dropout, batch norm, evaluations
and checkpoints between epochs, an early stop. All of it stands in stages or between epochs, where every schedule promises a plain
loop's bits; what stands in the loop's body is promised by `serial` alone, and tested with it.
"""

from __future__ import annotations

import dataclasses
import io
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import torch
from torch import nn

import sluice
from sluice.pipelines.trees import same_bits, tensors_of

SCHEDULES = ["serial", "overlapped", "graphed", "automatic"]
SEEDS = range(36)


@dataclasses.dataclass(frozen=True)
class Choices:
    """What a script does."""

    seed: int
    shape: str  # of the model: linear, deep, convolutional
    dropout: bool
    norm: bool
    optimizer: str
    scheduler: str
    scaler: bool
    autocast: bool
    clip: bool
    accumulate: int
    evaluate: bool
    checkpoint: bool
    epochs: int
    batches: int
    last: int  # samples of the last batch
    form: str  # of a batch
    stages: int
    slots: int

    @classmethod
    def of(cls, seed: int) -> "Choices":
        draw = random.Random(seed)
        return cls(seed, draw.choice(["linear", "deep", "convolutional"]), draw.random() < 0.4, draw.random() < 0.5,
                   draw.choice(["sgd", "momentum", "nesterov", "adam", "adamw", "capturable", "foreach"]),
                   draw.choice(["none", "none", "step", "cosine", "one_cycle"]), draw.random() < 0.3, draw.random() < 0.25,
                   draw.random() < 0.3, draw.choice([1, 1, 2, 3]), draw.random() < 0.5, draw.random() < 0.5,
                   draw.choice([1, 2, 3]), draw.choice([3, 8, 17]), draw.choice([6, 6, 2]), draw.choice(["tuple", "dict"]),
                   draw.choice([1, 2, 3]), draw.choice([0, 1, 2]))


class Training:
    """From the same start each time."""

    def __init__(self, choices: Choices, device: str) -> None:
        self.choices, self.device = choices, device
        torch.manual_seed(choices.seed)
        self.encoder = nn.Linear(8, 8).to(device).requires_grad_(False)
        self.model = self.make_model().to(device)
        self.optimizer = self.make_optimizer()
        total = choices.epochs * choices.batches + 1
        make = {"none": lambda o: None, "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
                "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, total),
                "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.05, total)}
        self.scheduler = make[choices.scheduler](self.optimizer)
        self.scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=4) if choices.scaler else None
        self.steps = 0
        torch.manual_seed(choices.seed + 1)

    def make_model(self) -> nn.Module:
        choices = self.choices
        norm = [nn.BatchNorm1d(8)] if choices.norm else []
        drop = [nn.Dropout(0.3)] if choices.dropout else []
        if choices.shape == "linear":
            return nn.Sequential(*norm, *drop, nn.Linear(8, 3))
        if choices.shape == "deep":
            return nn.Sequential(nn.Linear(8, 8), *norm, nn.ReLU(), *drop, nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
        return nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 4, 3), nn.ReLU(), *drop, nn.Flatten(), nn.Linear(24, 3))

    def make_optimizer(self) -> torch.optim.Optimizer:
        weights, optim = self.model.parameters(), torch.optim
        capturable = self.device == "cuda"  # PyTorch has it there alone
        return {"sgd": lambda: optim.SGD(weights, 0.05), "momentum": lambda: optim.SGD(weights, 0.05, momentum=0.9),
                "nesterov": lambda: optim.SGD(weights, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
                "adam": lambda: optim.Adam(weights, 0.01), "adamw": lambda: optim.AdamW(weights, 0.01),
                "capturable": lambda: optim.Adam(weights, 0.01, capturable=capturable),
                "foreach": lambda: optim.Adam(weights, 0.01, foreach=True)}[self.choices.optimizer]()

    # Stages

    def encode(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            return self.encoder(x).relu(), y

    def widen(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.float() / 4, y

    def of_batch(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        return batch["x"], batch["y"]

    def train(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        choices = self.choices
        with torch.autocast(self.device, torch.bfloat16, enabled=choices.autocast):
            loss = nn.functional.cross_entropy(self.model(x), y) / choices.accumulate
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self.steps += 1
        if self.steps % choices.accumulate == 0:
            if choices.clip:
                if self.scaler is not None:
                    self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            if self.scaler is None:
                self.optimizer.step()
            else:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            self.optimizer.zero_grad(set_to_none=self.choices.seed % 2 == 0)
            if self.scheduler is not None:
                self.scheduler.step()
        return loss.detach()

    def stages(self) -> list[Callable]:
        def whole(*batch: Any) -> torch.Tensor:
            x, y = self.of_batch(batch[0]) if isinstance(batch[0], dict) else batch
            return self.train(*self.encode(*self.widen(x, y)))

        def first(*batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
            return self.widen(*(self.of_batch(batch[0]) if isinstance(batch[0], dict) else batch))

        # A stage that steps on the host between batches is one that reads the host.
        train = sluice.stage(self.train, graph=self.choices.accumulate == 1 and self.scheduler is None)
        if self.choices.stages == 1:
            return [sluice.stage(whole, graph=train.graph)]
        if self.choices.stages == 2:
            return [lambda *batch: self.encode(*first(*batch)), train]
        return [first, self.encode, train]

    # Between epochs

    def evaluate(self) -> float:
        self.model.eval()
        with torch.no_grad():
            x = torch.linspace(-1, 1, 32, device=self.device).view(4, 8)
            score = self.model(self.encoder(x)).sum().item()
        self.model.train()
        return score

    def parts(self) -> list[Any]:
        return [part for part in (self.model, self.optimizer, self.scheduler, self.scaler) if part is not None]

    def save(self) -> bytes:
        kept = io.BytesIO()
        torch.save([part.state_dict() for part in self.parts()], kept)
        return kept.getvalue()

    def load(self, kept: bytes) -> None:
        for part, state in zip(self.parts(), torch.load(io.BytesIO(kept), weights_only=False)):
            part.load_state_dict(state)

    def between(self, results: list[Any]) -> None:
        if self.choices.evaluate:
            results.append(self.evaluate())
        if self.choices.checkpoint:
            self.load(self.save())

    def end(self) -> list[torch.Tensor]:
        """All that the training made."""
        return [t.detach().cpu().clone() for t in tensors_of([part.state_dict() for part in self.parts()])]


def data_of(choices: Choices) -> list[Any]:
    generator = torch.Generator().manual_seed(choices.seed)
    sizes = [6] * (choices.batches - 1) + [choices.last]
    pairs = [(torch.randint(0, 9, (n, 8), generator=generator, dtype=torch.uint8), torch.randint(0, 3, (n,), generator=generator))
             for n in sizes]
    return pairs if choices.form == "tuple" else [{"x": x, "y": y, "name": str(i)} for i, (x, y) in enumerate(pairs)]


def plain_loop(choices: Choices, device: str) -> tuple[list[Any], list[torch.Tensor]]:
    training, results = Training(choices, device), []
    for _ in range(choices.epochs):
        for batch in data_of(choices):
            x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
            results.append(training.train(*training.encode(*training.widen(x.to(device), y.to(device)))).item())
        training.between(results)
    return results, training.end()


def by_schedule(choices: Choices, device: str, schedule: str) -> tuple[list[Any], list[torch.Tensor]]:
    training, results = Training(choices, device), []
    stages = training.stages()
    run = sluice.pipeline(*stages, schedule=schedule, device=device, slots=len(stages) + 1 + choices.slots)
    for _ in range(choices.epochs):
        results += [loss.item() for loss in list(run(data_of(choices)))]
        training.between(results)
    return results, training.end()


def require_same(found: tuple, expected: tuple, what: str) -> None:
    differing = [i for i, (a, b) in enumerate(zip(found[0], expected[0])) if a != b and not (a != a and b != b)]
    assert len(found[0]) == len(expected[0]) and not differing, f"{what}: results {differing[:5]} of {len(expected[0])} differ"
    assert len(found[1]) == len(expected[1]) and all(map(same_bits, found[1], expected[1])), f"{what}: the state differs"


@pytest.mark.parametrize("seed", SEEDS)
def test_training_beside_its_plain_loop(device, seed):
    choices = Choices.of(seed)
    expected = plain_loop(choices, device)
    for schedule in SCHEDULES:
        if device == "cuda" and choices.dropout and schedule in ("graphed", "automatic"):
            continue  # a graph has random numbers of its own
        require_same(by_schedule(choices, device, schedule), expected, f"{schedule}, {choices}")


def test_choices_are_all_drawn():
    """So that no seed's absence makes the test above an easy one."""
    drawn = [Choices.of(seed) for seed in SEEDS]
    for field in dataclasses.fields(Choices):
        if field.name != "seed":
            assert len({getattr(choices, field.name) for choices in drawn}) >= 2, field.name
    assert len({choices.optimizer for choices in drawn}) == 7 and len({choices.scheduler for choices in drawn}) == 4


@pytest.mark.parametrize("seed", SEEDS[::4])
@pytest.mark.parametrize("slots", [2, 3])
def test_prefetched_loops(device, seed, slots):
    """With anything in the loop's body: a prefetched loop is a plain one."""
    choices = Choices.of(seed)
    expected = plain_loop(choices, device)
    training, results = Training(choices, device), []
    ahead = sluice.prefetch(data_of(choices), device, slots)
    for _ in range(choices.epochs):
        for batch in ahead:
            x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
            results.append(training.train(*training.encode(*training.widen(x, y))).item())
        training.between(results)
    require_same((results, training.end()), expected, f"prefetch, {choices}")


def body(results: Iterator[torch.Tensor], training: Training, scheduler: Any, stop: int) -> list[Any]:
    """What trainings do in the loop's body: rates, checkpoints, evaluations, an early stop."""
    seen = []
    for i, loss in enumerate(results):
        seen.append(loss.item())
        scheduler.step()
        if i % 3 == 1:
            seen.append(training.evaluate())
        if i % 4 == 2:
            training.load(training.save())
        if i == stop:
            break
    return seen


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_a_serial_loop_is_a_plain_one_in_its_body(device, seed):
    choices = dataclasses.replace(Choices.of(seed), scheduler="none", batches=12)
    stop = random.Random(seed).choice([4, 9, 11])
    ends = []
    warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step")  # gradients that are accumulated
    for piped in (False, True):
        training = Training(choices, device)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.8)
        if piped:
            results = sluice.pipeline(*training.stages(), schedule="serial", device=device)(data_of(choices))
        else:
            moved = ((b["x"], b["y"]) if isinstance(b, dict) else b for b in data_of(choices))
            results = (training.train(*training.encode(*training.widen(x.to(device), y.to(device)))) for x, y in moved)
        ends.append((body(results, training, scheduler, stop), training.end()))
    require_same(ends[1], ends[0], f"serial, {choices}")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_checkpoint_between_epochs_goes_on_in_a_new_program(device, schedule):
    for seed in (1, 2, 5):
        choices = dataclasses.replace(Choices.of(seed), epochs=2, dropout=False, checkpoint=False)
        expected = plain_loop(choices, device)
        first = Training(choices, device)
        run = sluice.pipeline(*first.stages(), schedule=schedule, device=device)
        results = [loss.item() for loss in list(run(data_of(choices)))]
        first.between(results)
        second = Training(choices, device)
        second.load(first.save())
        second.steps = first.steps
        for weight, other in zip(second.model.parameters(), first.model.parameters()):  # accumulated halfway
            weight.grad = None if other.grad is None else other.grad.clone()
        run = sluice.pipeline(*second.stages(), schedule=schedule, device=device)
        results += [loss.item() for loss in list(run(data_of(choices)))]
        second.between(results)
        require_same((results, second.end()), expected, f"{schedule}, {choices}")


class Stateful:
    """A loader with a state of its own."""

    def __init__(self, data: list[Any]) -> None:
        self.data, self.at = data, 0

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]

    def __iter__(self) -> Iterator[Any]:
        while self.at < len(self.data):
            self.at += 1
            yield self.data[self.at - 1]
        self.at = 0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", [Stateful, list, "shuffled"])
@pytest.mark.parametrize("stop", [0, 3, 11])
def test_a_checkpoint_in_the_middle_of_an_epoch(device, schedule, kind, stop):
    """Weights after `sync()`, and where the loader is: together they go on as the training that was not disturbed."""
    choices = dataclasses.replace(Choices.of(3), epochs=2, batches=17, dropout=False, checkpoint=False, evaluate=False, accumulate=1,
                                  form="tuple", last=6, stages=2)

    def begin() -> tuple[Training, sluice.Pipeline, Any]:
        training = Training(choices, device)
        x, y = (torch.cat(tensors) for tensors in zip(*data_of(choices)))
        loader = kind(data_of(choices)) if kind != "shuffled" else torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), batch_size=6, shuffle=True)
        return training, sluice.pipeline(*training.stages(), schedule=schedule, device=device), loader

    training, run, loader = begin()
    for _ in range(2):
        for _ in run(loader):
            pass
    expected = training.end()
    first, run, loader = begin()
    for i, _ in enumerate(run(loader)):
        if i == stop:
            run.sync()
            kept, where, numbers = first.save(), run.state_dict(), torch.get_rng_state()
            break
    second, run, loader = begin()
    second.load(kept)
    run.load_state_dict(where)
    torch.set_rng_state(numbers)
    assert sum(1 for _ in run(loader)) == 17 - where["batches"] and where["batches"] > stop
    for _ in run(loader):
        pass
    require_same(([], second.end()), ([], expected), f"{schedule}, {choices}")


@pytest.mark.parametrize("ranks", [1, 2])
def test_data_parallel_ranks(ranks, tmp_path):
    """Gloo on the CPU: each rank trains by every schedule, beside a plain loop of the same ranks."""
    program = Path(__file__).parent / "ranks_program.py"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    started = [subprocess.Popen([sys.executable, str(program), str(rank), str(ranks), str(tmp_path / "store")], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) for rank in range(ranks)]
    try:
        for process in started:
            text, _ = process.communicate(timeout=240)
            assert process.returncode == 0 and text.splitlines()[-1] == "all schedules gave the bits of the plain loop", text
    finally:
        for process in started:
            process.kill()
