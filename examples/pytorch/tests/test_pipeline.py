"""Pipelines: results, ends, reports. What only a GPU shows is at the end."""

import time
import warnings

import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES, Training, batches, plain_loop
from watched_device import WatchedDevice

import sluice


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count,last", [(0, 5), (1, 5), (2, 5), (3, 2), (40, 3)])
@pytest.mark.parametrize("slots", [2, 3])
def test_results_of_a_plain_loop(device, schedule, count, last, slots):
    data = batches(count, last)
    run = Training(device).pipeline(device, schedule, slots=slots)
    assert [loss.item() for loss in run(data)] == plain_loop(device, data)
    assert run.report().batches == count


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_epochs_and_early_stops(device, schedule):
    data = batches(12)
    expected = plain_loop(device, data[:6] + data)
    run = Training(device).pipeline(device, schedule)
    found = []
    for loss in run(data[:6]):
        found.append(loss.item())
    found += [loss.item() for loss in run(data)]
    assert found == expected
    for place, _ in enumerate(run(data)):
        if place == 3:
            break
    assert len(list(run(data))) == 12


def test_batches_of_any_form(device):
    data = [{"x": torch.full((3,), float(i)), "name": f"batch {i}", "more": [torch.tensor(i)]} for i in range(6)]

    def first(batch: dict) -> dict:
        return batch | {"x": batch["x"] * 2}

    def second(batch: dict) -> tuple:
        return batch["x"].sum(), batch["name"], batch["more"][0] + 1

    results = [(x.item(), name, more.item()) for x, name, more in sluice.pipeline(first, second, device=device)(data)]
    assert results == [(6.0 * i, f"batch {i}", i + 1) for i in range(6)]


def test_arrays_by_dlpack():
    numpy = pytest.importorskip("numpy")
    results = sluice.pipeline(lambda x: x + 1, device="cpu")([numpy.arange(3) + i for i in range(3)])
    assert [result.tolist() for result in results] == [[1 + i, 2 + i, 3 + i] for i in range(3)]


def test_a_loader_with_workers(device):
    numbers = torch.arange(20)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(numbers), batch_size=3, num_workers=2)
    found = [result.tolist() for result in sluice.pipeline(lambda x: x * 2, lambda x: x + 1, device=device)(loader)]
    assert sum(found, []) == (2 * numbers + 1).tolist()


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
def test_compiled_stages(device, schedule):
    def encode(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    def score(x: torch.Tensor) -> torch.Tensor:
        return sluice.row_sum(x, offsets)

    offsets = torch.tensor([0, 2, 5], device=device)
    stages = [torch.compile(function, fullgraph=True, backend="aot_eager") for function in (encode, score)]
    data = [torch.full((5,), float(i)) for i in range(30)]
    found = [result.tolist() for result in sluice.pipeline(*stages, schedule=schedule, device=device)(data)]
    assert found == [[4.0 * i, 6.0 * i] for i in range(30)]


def test_serial_is_a_plain_loop(device):
    log = []

    def loader():
        for i in range(4):
            log.append(f"load {i}")
            yield torch.tensor(i)

    def stage(name: str):
        def function(x: torch.Tensor) -> torch.Tensor:
            log.append(f"{name} {x.item()}")
            return x

        return function

    for x in sluice.pipeline(stage("a"), stage("b"), schedule="serial", device=device)(loader()):
        log.append(f"body {x.item()}")
        if x.item() == 2:
            break
    assert log == [f"{what} {i}" for i in range(3) for what in ("load", "a", "b", "body")]


def test_a_schedule_and_a_step_in_the_body_of_serial(device):
    """What a loop's body does between two batches acts on the next one."""
    def trained(run) -> float:
        weight = torch.ones(1, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        for loss in run(lambda x: (weight * x).square().sum()):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        return weight.item()

    data = [torch.tensor([0.1 * i]) for i in range(20)]
    by_hand = trained(lambda stage: (stage(x.to(device)) for x in data))
    assert trained(lambda stage: sluice.pipeline(stage, schedule="serial", device=device)(data)) == by_hand


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results_that_no_one_asks_for(device, schedule):
    calls = []
    run = sluice.pipeline(lambda x: calls.append(x), schedule=schedule, device=device)
    with pytest.warns(UserWarning, match="^sluice.pipeline: no result was asked for, so no batch was worked on") as caught:
        run([torch.zeros(1)])
    assert calls == [] and [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in run([torch.zeros(1)] * 9):
            break
        list(run([]))
    assert calls


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_consistent_moment(device, schedule):
    weight = torch.zeros(1, device=device)

    def step(x: torch.Tensor) -> torch.Tensor:
        weight.add_(1)
        return x + 0

    run = sluice.pipeline(lambda x: x + 0, sluice.stage(step, graph=False), schedule=schedule, device=device)
    for i, _ in enumerate(run([torch.tensor(i) for i in range(40)])):
        begun = run.sync()
        assert weight.item() == begun and i < begun <= 40
        assert schedule != "serial" or begun == i + 1


def test_stages_that_share_a_model():
    device = WatchedDevice()
    model, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    run = sluice.pipeline(sluice.stage(lambda x: x, "a", shares=model), lambda x: x, sluice.stage(lambda x: x, "c", shares=[other]),
                          sluice.stage(lambda x: x, "d", shares=(model, other)), device=device)
    a, b, c, d = (running.stream for running in run.stages)
    assert a is c is d and a is not b


class TestVerify:
    def test_training(self, device):
        training = Training(device)
        run = training.pipeline(device, "overlapped", verify=True, state=[training.decoder, training.optimizer])
        data = batches(30, 2)
        assert [loss.item() for loss in run(data)] == plain_loop(device, data)

    def test_state_that_is_not_named(self, device):
        run = Training(device).pipeline(device, "overlapped", verify=True)
        with pytest.raises(sluice.VerifyError, match="batch 0 differs from a serial run in value 0"):
            list(run(batches(9)))

    def test_all_schedules(self, device):
        counts = sluice.verify_schedules(lambda schedule: Training(device).pipeline(device, schedule), batches(40, 2))
        assert counts == {"serial": 40, "overlapped": 40, "graphed": 40}

    def test_schedules_that_differ(self):
        def make(schedule: str) -> sluice.Pipeline:
            return sluice.pipeline(lambda x: x + len(schedule), schedule=schedule, device="cpu")

        with pytest.raises(sluice.VerifyError, match="batch 0 of overlapped differs from serial"):
            sluice.verify_schedules(make, [torch.zeros(1)])


def test_report(device):
    training = Training(device)
    run = training.pipeline(GraphingDevice() if device == "cpu" else device, "graphed")
    list(run(batches(40)))
    report = run.report()
    assert set(report.stage_milliseconds) == {"encode", "train"} and report.batch_milliseconds > 0
    assert (report.slots, report.slot_bytes) == (3, 3 * (5 * 6 + 5 * 4))
    assert str(report).startswith(f"graphed on {run.device.device}: 40 batches")
    assert "train: " in str(report)
    run = sluice.pipeline(lambda x: x, device=device)
    list(run([torch.zeros(2)]))
    assert ": 1 batch, " in str(run.report()) and "1 batch>" in repr(run.report())


def test_a_report_tells_stages_of_one_name_apart(device):
    run = sluice.pipeline(lambda x: x + 1, lambda x: x * 2, sluice.stage(lambda x: x, "last"), device=device)
    list(run([torch.zeros(2) for _ in range(20)]))
    report = run.report()
    for found in (report.stage_milliseconds, report.eager, report.replays):
        assert list(found) == ["<lambda>", "<lambda> (1)", "last"]
    assert "<lambda> (1): " in str(report) and repr(report).startswith("<sluice.Report: overlapped on")


def test_report_leaves_out_what_is_between_two_iterations(device):
    run = Training(device).pipeline(device, "overlapped")
    list(run(batches(20)))
    time.sleep(1)
    list(run(batches(20)))
    assert run.report().batch_milliseconds < 25  # 1,000 ms in 31 gaps are 32 ms each


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@needs_cuda
def test_graphs_are_replayed_and_memory_is_steady():
    training = Training("cuda")
    run = training.pipeline("cuda", "graphed")
    data = [tuple(t.pin_memory() for t in batch) for batch in batches(30)]
    list(run(data))
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    for _ in range(40):
        for _ in run(data):
            pass
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() == before
    report = run.report()
    assert report.refusals == {} and min(report.replays.values()) > 1100 and max(report.eager.values()) < 30


@needs_cuda
def test_a_stage_that_cannot_be_captured_runs_eagerly():
    run = sluice.pipeline(sluice.stage(lambda x: x * 2, "double"), lambda x: x + x.sum().item(), schedule="graphed",
                          device="cuda")
    data = [torch.full((4,), float(i)) for i in range(30)]
    assert [result[0].item() for result in run(data)] == [2.0 * i + 8 * i for i in range(30)]
    report = run.report()
    assert "<lambda>" in report.refusals and report.eager["<lambda>"] == 30
    assert torch.rand(3, device="cuda").shape == (3,)  # the generator is not left in the capture


@needs_cuda
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_slow_stages_and_copies(schedule):
    """Stages that take long at random: without a wait, what is not there yet is read."""
    data = [torch.full((1 << 16,), float(i)).pin_memory() for i in range(60)]

    def slowly(x: torch.Tensor, cycles: int) -> torch.Tensor:
        torch.cuda._sleep(cycles)
        return x + 1

    run = sluice.pipeline(lambda x: slowly(x, 400_000), lambda x: slowly(x, 100_000), lambda x: slowly(x, 900_000),
                          schedule=schedule, device="cuda")
    for i, result in enumerate(run(data)):
        assert (result == i + 3).all()


@needs_cuda
def test_streams_of_the_caller():
    own = torch.cuda.Stream()
    handle = torch.cuda.Stream()
    run = sluice.pipeline(sluice.stage(lambda x: x * 2, stream=own), sluice.stage(lambda x: x + 1, stream=handle.cuda_stream),
                          device="cuda")
    assert [r.item() for r in run([torch.tensor(i) for i in range(9)])] == [2 * i + 1 for i in range(9)]
