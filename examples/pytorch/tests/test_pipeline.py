"""Pipelines: results, ends, errors. What only a GPU shows is at the end."""

import pickle
import time

import pytest
import torch

import sluice

SCHEDULES = ["serial", "overlapped", "graphed", "automatic"]


class Training:
    """A frozen encoder and a decoder that learns, from the same weights each time."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(3)
        self.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
        self.decoder = torch.nn.Linear(8, 1).to(device)
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=0.1, momentum=0.9)

    def encode(self, samples: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.encoder(samples.float()).relu(), labels

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.decoder(features).squeeze(1) - labels).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def pipeline(self, device: str, schedule: str, **options) -> sluice.Pipeline:
        return sluice.pipeline(self.encode, self.train, schedule=schedule, device=device, **options)


def batches(count: int, last: int = 5) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    sizes = [5] * (count - 1) + [last] * min(count, 1)
    return [(torch.randint(0, 9, (size, 6), generator=generator, dtype=torch.uint8),
             torch.rand(size, generator=generator)) for size in sizes]


def plain_loop(device: str, data: list) -> list[float]:
    training = Training(device)
    return [training.train(*training.encode(*(t.to(device) for t in batch))).item() for batch in data]


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


def test_kept_results_stay(device):
    data = batches(20)
    kept = list(Training(device).pipeline(device, "graphed")(data))
    assert [loss.item() for loss in kept] == plain_loop(device, data)


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


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_exception_names_stage_and_batch(device, schedule):
    seen = []

    def fail(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        if len(seen) == 3:
            raise ValueError("three are\ntoo many")
        return x + 1

    run = sluice.pipeline(lambda x: x * 2, sluice.stage(fail, "add", graph=False), schedule=schedule, device=device)
    data = [torch.tensor([float(i)]) for i in range(6)]
    with pytest.raises(sluice.StageError) as error:
        list(run(data))
    assert str(error.value) == "stage 'add', batch 2: ValueError: three are too many"
    assert (error.value.stage, error.value.batch) == ("add", 2)
    # The traceback holds the batch still.
    assert [result.item() for result in run(data)] == [2.0 * i + 1 for i in range(6)]


def test_an_exception_of_the_loader_passes(device):
    def loader():
        yield torch.zeros(2)
        raise OSError("the disk is full")

    run = sluice.pipeline(lambda x: x + 1, device=device)
    with pytest.raises(OSError, match="the disk is full"):
        list(run(loader()))
    assert len(list(run([torch.zeros(2)]))) == 1


def test_a_stage_that_keeps_a_tensor(device):
    kept = []

    def encode(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x + 1

    run = sluice.pipeline(encode, keep, device=device)
    with pytest.raises(RuntimeError, match="stage 'encode', batch 0: a tensor that it returned is still held"):
        list(run([torch.zeros(2)] * 6))
    kept.clear()
    with pytest.raises(RuntimeError, match="a tensor of batch 0 is still held"):
        list(sluice.pipeline(keep, device=device)([torch.zeros(2) for _ in range(6)]))


def test_a_batch_that_passes_through(device):
    run = sluice.pipeline(lambda x: (x, x * 2), lambda x, y: (x, y, x + y), device=device)
    for i, (x, y, both) in enumerate(run([torch.full((2,), float(i)) for i in range(9)])):
        assert (x[0].item(), y[0].item(), both[0].item()) == (i, 2 * i, 3 * i)


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
            return sluice.pipeline(lambda x: x + len(schedule), device="cpu")

        with pytest.raises(sluice.VerifyError, match="batch 0 of overlapped differs from serial"):
            sluice.verify_schedules(make, [torch.zeros(1)])


def test_report(device):
    training = Training(device)
    run = training.pipeline(device, "overlapped")
    list(run(batches(40)))
    report = run.report()
    assert set(report.stage_milliseconds) == {"encode", "train"} and report.batch_milliseconds > 0
    assert (report.slots, report.slot_bytes) == (3, 3 * (5 * 6 + 5 * 4))
    assert str(report).startswith(f"overlapped on {run.device.device}: 40 batches")
    assert "train: " in str(report)


def test_a_report_tells_stages_of_one_name_apart(device):
    run = sluice.pipeline(lambda x: x + 1, lambda x: x * 2, sluice.stage(lambda x: x, "last"), device=device)
    list(run([torch.zeros(2) for _ in range(20)]))
    report = run.report()
    for found in (report.stage_milliseconds, report.eager, report.replays):
        assert list(found) == ["<lambda>", "<lambda> (1)", "last"]
    assert "<lambda> (1): " in str(report) and repr(report).startswith("<sluice.Report: overlapped on")


def test_errors_can_be_pickled_and_caught_by_their_kind(device):
    def raising(error: BaseException):
        def stage(x: torch.Tensor) -> torch.Tensor:
            raise error

        return stage

    with pytest.raises(torch.OutOfMemoryError) as error:
        list(sluice.pipeline(raising(torch.OutOfMemoryError("too large")), device=device)([torch.zeros(1)]))
    assert isinstance(error.value, sluice.StageError)
    for cause in (torch.OutOfMemoryError("too large"), ValueError("wrong")):
        with pytest.raises(sluice.StageError) as error:
            list(sluice.pipeline(raising(cause), device=device)([torch.zeros(1)]))
        again = pickle.loads(pickle.dumps(error.value))
        assert (str(again), type(again), again.stage, again.batch) == (str(error.value), type(error.value), "stage", 0)


def test_report_leaves_out_what_is_between_two_iterations(device):
    run = Training(device).pipeline(device, "overlapped")
    list(run(batches(20)))
    time.sleep(1)
    list(run(batches(20)))
    assert run.report().batch_milliseconds < 25  # 1,000 ms in 31 gaps are 32 ms each


def test_wrong_arguments():
    with pytest.raises(ValueError, match="there are no stages"):
        sluice.pipeline()
    with pytest.raises(ValueError, match="schedule is 'fast', expected one of serial, overlapped, graphed, automatic"):
        sluice.pipeline(len, schedule="fast")
    with pytest.raises(ValueError, match="slots is 1, expected an integer of 2 or more"):
        sluice.pipeline(len, slots=1)
    with pytest.raises(TypeError, match="3 was given, expected a callable"):
        sluice.stage(3)
    with pytest.raises(TypeError, match="state has a int, expected objects with state_dict"):
        sluice.pipeline(len, state=[3])
    with pytest.raises(ValueError, match="the device is 'meta', expected 'cpu' or 'cuda'"):
        sluice.pipeline(len, device="meta")
    with pytest.raises(ValueError, match="a stream was given in a pipeline of the CPU"):
        sluice.pipeline(sluice.stage(len, stream=7), device="cpu")
    run = sluice.pipeline(lambda x: x, device="cpu")
    first = run([torch.zeros(1)] * 9)
    next(first)
    with pytest.raises(RuntimeError, match="an iteration is under way"):
        run([])


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
    """Stages that take long at random: whoever does not wait reads what is not there."""
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
