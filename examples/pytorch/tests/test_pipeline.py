"""Pipelines: results, ends, errors. What only a GPU shows is at the end."""

import copy
import pickle
import time

import pytest
import torch
from graphing_device import GraphingDevice
from watched_device import WatchedDevice

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
def test_all_results_before_an_error_come_first(device, schedule):
    def loader():
        yield from (torch.tensor(i) for i in range(5))
        raise OSError("the disk is full")

    run, found = sluice.pipeline(lambda x: x + 1, lambda x: x * 2, schedule=schedule, device=device), []
    with pytest.raises(OSError, match="the disk is full"):
        for x in run(loader()):
            found.append(x.item())
    assert found == [2, 4, 6, 8, 10] and run.report().batches == 5
    found.clear()
    with pytest.raises(OSError, match="the disk is full"):
        for x in sluice.pipeline(lambda x: x + 1, schedule=schedule, device=device, verify=True)(loader()):
            found.append(x.item())
    assert found == [1, 2, 3, 4, 5]
    found.clear()
    run = sluice.pipeline(lambda x: x + 1, lambda x: x * (1 if x.item() < 5 else None), schedule=schedule, device=device)
    with pytest.raises(sluice.StageError, match="batch 4: TypeError"):
        for x in run([torch.tensor(i) for i in range(9)]):
            found.append(x.item())
    assert found == [1, 2, 3, 4]


def test_one_iteration_at_a_time(device):
    run = sluice.pipeline(lambda x: x + 1, device=device)
    first, second = run([torch.tensor(1)] * 9), run([torch.tensor(10)] * 9)
    assert next(first).item() == 2
    with pytest.raises(RuntimeError, match="an iteration is under way"):
        next(second)
    assert [x.item() for x in first] == [2] * 8


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


def test_errors_can_be_pickled_and_tell_of_memory(device):
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no room")

    with pytest.raises(torch.OutOfMemoryError) as error:
        list(sluice.pipeline(fail, device=device)([torch.zeros(1)]))
    copy = pickle.loads(pickle.dumps(error.value))
    assert isinstance(copy, sluice.StageError) and str(copy) == "stage 'fail', batch 0: OutOfMemoryError: no room"
    assert (copy.stage, copy.batch) == ("fail", 0)


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


def test_stages_that_share_a_model():
    device = WatchedDevice()
    model, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    run = sluice.pipeline(sluice.stage(lambda x: x, "a", shares=model), lambda x: x, sluice.stage(lambda x: x, "c", shares=[other]),
                          sluice.stage(lambda x: x, "d", shares=(model, other)), device=device)
    a, b, c, d = (running.stream for running in run.stages)
    assert a is c is d and a is not b


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
    run = training.pipeline(GraphingDevice() if device == "cpu" else device, "graphed")
    list(run(batches(40)))
    report = run.report()
    assert set(report.stage_milliseconds) == {"encode", "train"} and report.batch_milliseconds > 0
    assert (report.slots, report.slot_bytes) == (3, 3 * (5 * 6 + 5 * 4))
    assert str(report).startswith(f"graphed on {run.device.device}: 40 batches")
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


@pytest.mark.parametrize("made", ["pipeline", "prefetch"])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(device, made, how):
    """A copy would share the slots of the original."""
    one = sluice.pipeline(abs, device=device) if made == "pipeline" else sluice.prefetch([torch.zeros(1)], device)
    assert len(list(one([torch.zeros(1)] * 4) if made == "pipeline" else one)) in (1, 4)
    with pytest.raises(TypeError, match=f"sluice.{made}: its memory and its streams cannot be copied or pickled"):
        how(one)


@pytest.mark.parametrize("schedule", ["overlapped", "graphed", "automatic"])
def test_a_prefetched_loader_is_refused(device, schedule):
    ahead = sluice.prefetch([torch.full((2,), float(i)) for i in range(9)], device)
    with pytest.raises(TypeError, match="the loader is a sluice.prefetch"):
        sluice.pipeline(lambda x: x + 1, schedule=schedule, device=device)(ahead)
    found = sluice.pipeline(lambda x: x + 1, schedule="serial", device=device)(ahead)
    assert [x[0].item() for x in found] == list(range(1, 10))


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
