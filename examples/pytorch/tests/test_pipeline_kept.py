"""Pipelines: what stages, loaders and loops keep stays."""

import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES, Training, batches, plain_loop

import sluice


def test_kept_results_stay(device):
    data = batches(20)
    kept = list(Training(device).pipeline(device, "graphed")(data))
    assert [loss.item() for loss in kept] == plain_loop(device, data)


ALIASES = {"itself": lambda x: x, "detach": lambda x: x.detach(), "data": lambda x: x.data, "view": lambda x: x[:1],
           "bits": lambda x: x.view(torch.int32).view(torch.float32), "parameter": lambda x: torch.nn.Parameter(x),
           "numpy": lambda x: torch.as_tensor(x.cpu().numpy()), "history": lambda x: (x * torch.ones(2, device=x.device).requires_grad_())}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_stages_keep_stays(device, schedule, alias):
    batch, features = [], []

    def encode(x: torch.Tensor) -> torch.Tensor:
        batch.append(ALIASES[alias](x))
        return x * 2

    def keep(x: torch.Tensor) -> torch.Tensor:
        features.append(ALIASES[alias](x))
        return x + 1

    run = sluice.pipeline(encode, keep, schedule=schedule, device=device)
    for _ in run([torch.full((2,), float(i)) for i in range(40)]):
        pass
    assert [x[0].item() for x in batch] == [float(i) for i in range(40)]
    assert [x[0].item() for x in features] == [2.0 * i for i in range(40)]


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("what", ["batches", "a graph's results", "an eager stage's"])
def test_what_stages_keep_among_graphs_ends_graphs(device, alias, what):
    kept = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(ALIASES[alias](x))
        return x + 1

    if alias == "numpy" and device == "cuda":
        pytest.skip("a copy")
    stages = [sluice.stage(keep, graph=False), sluice.stage(lambda x: x * 2, "last")]
    if what != "batches":
        stages.insert(0, sluice.stage(lambda x: x + 10, "first", graph=None if what == "a graph's results" else False))
    run = sluice.pipeline(*stages, schedule="graphed", device=GraphingDevice() if device == "cpu" else device)
    first = 0 if what == "batches" else 10
    found = [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(40)])]
    assert found == [2.0 * (first + i + 1) for i in range(40)]
    assert [x[0].item() for x in kept] == [float(first + i) for i in range(40)]
    assert "is still held when its batch is over; expected a clone()" in str(run.report())


def test_a_graphs_result_that_is_kept_once(device):
    """Late, when all are graphs that can be."""
    kept = []

    def look(x: torch.Tensor) -> torch.Tensor:
        if x[0].item() == 60:
            kept.append(x.detach())
        return x

    run = sluice.pipeline(lambda x: x + 10, sluice.stage(look, graph=False), schedule="graphed",
                          device=GraphingDevice() if device == "cpu" else device)
    assert [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(90)])] == [10.0 + i for i in range(90)]
    assert kept[0].tolist() == [60.0, 60.0] and run.stages[0].graphs.replays > 20


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results_that_are_no_stages_own(device, schedule):
    """A label that passes through, a stage that returns what it got, a result with autograd's history: all may be kept."""
    weight = torch.ones(2, device=device, requires_grad=True)
    data = [(torch.full((2,), float(i)), torch.tensor(i)) for i in range(40)]

    def results(*stages) -> list:
        return list(sluice.pipeline(*stages, schedule=schedule, device=device)(data))

    for x, label in results(lambda x, label: (x * 2, label), lambda x, label: (x.sum(), label)):
        assert x.item() == 4.0 * label.item()
    assert [(x[0].item(), label.item()) for x, label in results(lambda x, label: (x, label))] == [(i, i) for i in range(40)]
    sums = results(lambda x, label: x * 3, lambda x: (x * weight).sum())
    assert [total.item() for total in sums] == [6.0 * i for i in range(40)]
    if schedule in ("serial", "overlapped"):
        for i, total in enumerate(sums):
            weight.grad = None
            total.backward()
            assert weight.grad.tolist() == [3.0 * i] * 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_loaders_tensors_stay(device, schedule):
    data = [torch.full((2,), float(i), device=device) for i in range(12)]
    assert [x[0].item() for x in sluice.pipeline(lambda x: x.add_(1), schedule=schedule, device=device)(data)] == [i + 1 for i in range(12)]
    assert [x[0].item() for x in data] == list(range(12))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_loader_that_refills_its_memory(device, schedule):
    def refilled():
        x = torch.zeros(4)
        for i in range(12):
            x.fill_(i)
            yield x

    run = sluice.pipeline(lambda x: x + 1, schedule=schedule, device=device, reuse=True)
    for _ in range(2):
        assert [x[0].item() for x in run(refilled())] == [i + 1 for i in range(12)]
    if schedule in ("overlapped", "graphed"):
        with pytest.raises(RuntimeError, match="the loader wrote batch 1 into the memory of batch 0"):
            list(sluice.pipeline(lambda x: x + 1, schedule=schedule, device=device)(refilled()))


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("times", [2, 3, 4, 9])
def test_a_loader_that_writes_what_it_gave_several_times(by_library, schedule, slots, times):
    """One and the same tensor in as many batches as there are slots, or more."""
    def loader():
        yield from [torch.zeros(4) for _ in range(40)]
        x = torch.zeros(4)
        for _ in range(times):
            yield x
        yield x.add_(1)

    device = GraphingDevice()
    run = sluice.pipeline(lambda x: x + 1, schedule=schedule, slots=slots, device=device)
    with pytest.raises(RuntimeError, match=f"the loader wrote batch {40 + times} into the memory of batch {39 + times},"):
        list(run(loader()))
    assert run.intake.versions == {}


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
def test_a_loader_that_writes_after_as_many_other_batches_as_there_are_slots(by_library, schedule):
    def loader():
        x = torch.zeros(4)
        for i in range(20):
            x.fill_(i)
            yield from (x, x, x, torch.full((4,), -1.0), torch.full((4,), -2.0))

    run = sluice.pipeline(lambda x: x + 1, schedule=schedule, slots=2, device=GraphingDevice())
    assert [x[0].item() for x in run(loader())] == [x for i in range(20) for x in (i + 1, i + 1, i + 1, 0, -1)]


def test_a_batch_that_passes_through(device):
    run = sluice.pipeline(lambda x: (x, x * 2), lambda x, y: (x, y, x + y), device=device)
    for i, (x, y, both) in enumerate(run([torch.full((2,), float(i)) for i in range(9)])):
        assert (x[0].item(), y[0].item(), both[0].item()) == (i, 2 * i, 3 * i)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results_that_lie_over_each_other(by_library, schedule):
    """By graphs too, and where they are what a stage was given, or keeps."""
    total = torch.zeros(4)

    def views(x):
        y = x + 1
        return y, y, y[:2], y[1:].view(torch.int32), x, x[1:3], total.add_(x), total[1:], y.expand(64, 4), 3, None

    run = sluice.pipeline(sluice.stage(lambda x: x * 2, graph=False), views, schedule=schedule, device=GraphingDevice())
    for number, (y, same, first, bits, x, inner, whole, rest, long, *_) in enumerate(run([torch.full((4,), float(i)) for i in range(60)])):
        assert y.tolist() == [2.0 * number + 1] * 4 and x.tolist() == [2.0 * number] * 4 and long[-1].equal(y)
        assert long.untyped_storage().nbytes() < 256
        assert whole.tolist() == [number * (number + 1.0)] * 4 or schedule in ("serial", "automatic")
        for one, other in ((y[0], first[0]), (y[1], bits.view(torch.float32)[0]), (first[1], same[1]), (x[2], inner[1]),
                           (whole[1], rest[0]), (y[3], long[7, 3])):
            one.fill_(-5.0)
            assert other.item() == -5.0, number
        whole[1] = 0.0 if schedule in ("serial", "automatic") else -5.0
    assert schedule != "graphed" or run.stages[1].graphs.replays > 40
