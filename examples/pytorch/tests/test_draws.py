"""Random numbers that a loop's body draws from the generator of what runs ahead of it."""

import random
import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import sluice

numpy = pytest.importorskip("numpy")
DRAWS = {"PyTorch's generator of the CPU": lambda: torch.rand(2), "Python's random": lambda: torch.tensor([random.random()]),
         "NumPy's random": lambda: torch.tensor([numpy.random.rand()])}


class Samples(torch.utils.data.Dataset):
    def __init__(self, draw) -> None:
        self.draw = draw

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.draw() + index


def told(loop) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop()
    return [str(warning.message) for warning in caught if "sluice." in str(warning.message)]


def loop_of(kind: str, device: str, loader, body):
    def loop():
        for _ in range(2):
            run = sluice.pipeline(lambda x: x * 2, schedule=kind, device=device)(loader) if kind != "prefetch" else sluice.prefetch(loader, device)
            for batch in run:
                body()

    return loop


@pytest.mark.parametrize("kind", ["prefetch", "overlapped", "graphed"])
@pytest.mark.parametrize("name", DRAWS)
def test_both_draw(device, kind, name):
    loader = torch.utils.data.DataLoader(Samples(DRAWS[name]), batch_size=3)
    found = told(loop_of(kind, device, loader, DRAWS[name]))
    assert found and all(f"draws from {name}" in sentence for sentence in found)


@pytest.mark.parametrize("kind", ["prefetch", "overlapped", "graphed", "serial"])
def test_numbers_of_their_own(device, kind):
    """A shuffled loader draws its seed before the first batch, as in a plain loop."""
    own = torch.Generator()
    for loader in (torch.utils.data.DataLoader(Samples(lambda: torch.zeros(2)), batch_size=3, shuffle=True),
                   torch.utils.data.DataLoader(Samples(lambda: torch.rand(2, generator=own)), batch_size=3)):
        assert told(loop_of(kind, device, loader, lambda: torch.rand(2))) == []
    loader = torch.utils.data.DataLoader(Samples(lambda: torch.rand(2)), batch_size=3)
    assert told(loop_of(kind, device, loader, lambda: None)) == []


def test_a_body_that_breaks_or_raises(device):
    closed = []

    def loader():
        try:
            for i in range(9):
                yield torch.full((2,), float(i))
        finally:
            closed.append(True)

    for stop in (0, 3, 6):
        for results in (sluice.prefetch(loader(), device), sluice.pipeline(lambda x: x, device=device)(loader())):
            for place, _ in enumerate(results):
                if place == stop:
                    break
            del results
    assert len(closed) == 6


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed"])
def test_verify_puts_back_all_random_numbers(device, schedule):
    draw = {"PyTorch": lambda: torch.rand(1).item(), "Python": random.random, "NumPy": numpy.random.rand}

    def drawn(verify):
        torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
        run = sluice.pipeline(lambda x: [x + work() for work in draw.values()], schedule=schedule, device=device, verify=verify)
        return [[each.item() for each in result] for result in run([torch.zeros(())] * 12)]

    assert drawn(True) == drawn(False)


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
def test_a_loop_of_fake_tensors(schedule):
    with FakeTensorMode():
        run = sluice.pipeline(lambda x: x + 1, schedule=schedule, device="cpu")
        assert [x.shape for x in run([torch.ones(3, 2)] * 6)] == [(3, 2)] * 6
        with pytest.raises(TypeError, match="a FakeTensor has no numbers that could be compared; expected real tensors"):
            list(sluice.pipeline(lambda x: x + 1, schedule=schedule, device="cpu", verify=True)([torch.ones(3, 2)] * 6))
