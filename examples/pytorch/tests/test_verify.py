"""`verify=True`: epochs, and values of all kinds."""

import gc
import weakref

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


def test_state_by_an_iterator(device):
    """In each epoch."""
    learner = Learner(device, torch.optim.SGD, momentum=0.9)
    run = sluice.pipeline(learner.step, device=device, verify=True, state=(each for each in (learner.model, learner.optimizer)))
    for _ in range(2):
        list(run([torch.rand(5, 6)] * 9))


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


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
def test_a_stage_may_write_its_batch(device, schedule):
    data = [torch.full((3,), float(i)) for i in range(40)]
    run = sluice.pipeline(lambda x: x.mul_(2), lambda x: x.add_(1), schedule=schedule, device=device, verify=True)
    assert [x[0].item() for x in run(data)] == [2.0 * i + 1 for i in range(40)]


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("number", [0, 3, 30])
def test_an_error_is_that_of_the_loop(device, schedule, number):
    """Of its stage and batch, after all results before it, with the weights of these."""
    data = [torch.full((4, 6), float(i)).to(device) for i in range(40)]
    learner, plain = (Learner(device, torch.optim.SGD) for _ in range(2))

    def step(x):
        if float(x[0, 0]) == number:
            raise ValueError("no")
        return learner.step(x)

    run, found = sluice.pipeline(step, schedule=schedule, device=device, verify=True, state=[learner.model, learner.optimizer]), []
    with pytest.raises(sluice.StageError, match=f"batch {number}: ValueError: no"):
        for loss in run(data):
            found.append(loss.item())
    assert found == [plain.step(x).item() for x in data[:number]]
    assert all(map(torch.equal, learner.model.state_dict().values(), plain.model.state_dict().values()))


@pytest.mark.parametrize("make, batches, kind, message", [
    (lambda schedule: sluice.pipeline(abs, device="cpu"), [torch.zeros(1)], ValueError, r"make\('serial'\) gave sluice.pipeline\(abs, "),
    (lambda schedule: None, [torch.zeros(1)], ValueError, r"make\('serial'\) gave None, expected a pipeline of that schedule"),
    (lambda schedule: sluice.pipeline(abs, schedule=schedule, device="cpu"), 5, TypeError, "the loader is 5")])
def test_what_is_compared_is_of_its_kind(make, batches, kind, message):
    with pytest.raises(kind, match=f"sluice.verify_schedules: {message}"):
        sluice.verify_schedules(make, batches)


@pytest.mark.parametrize("batches, schedules, message", [
    ([torch.zeros(1)], ["serial"], r"schedules is \['serial'\], expected two or more to be compared"),
    ([torch.zeros(1)], [], r"schedules is \[\], expected two or more"), ([torch.zeros(1)], "serial", "schedules is 'serial', expected two or more"),
    ([torch.zeros(1)], None, "schedules is None, expected two or more"),
    ([], ["serial", "overlapped"], "there are no batches, expected at least one to be compared")])
def test_nothing_to_compare_is_refused(batches, schedules, message):
    with pytest.raises(ValueError, match=f"sluice.verify_schedules: {message}"):
        sluice.verify_schedules(lambda schedule: sluice.pipeline(abs, schedule=schedule, device="cpu"), batches, schedules)


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of quantized tensors
@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("made", [lambda x: torch.quantize_per_tensor(x, 0.5, 0, torch.quint8), lambda x: torch._efficientzerotensor((3,))],
                         ids=["quantized", "zero"])
def test_tensors_without_bytes_are_compared(schedule, made):
    data = [torch.full((3,), float(i)) for i in range(30)]
    for verify in (True, False):
        run = sluice.pipeline(made, schedule=schedule, device=GraphingDevice(), verify=verify)
        for x, found in zip(data, run(data), strict=True):
            assert torch.equal(*((each.dequantize() if each.is_quantized else each.clone()) for each in (found, made(x))))


def test_quantized_tensors_of_other_scales_differ():
    one, other = (torch.quantize_per_tensor(torch.arange(4.0), scale, 0, torch.quint8) for scale in (1.0, 0.5))
    results = iter([one, one, one, one, other, one])
    with pytest.raises(sluice.VerifyError, match="differs from a serial run in value 0"):
        list(sluice.pipeline(lambda x: next(results), schedule="serial", device="cpu", verify=True)([torch.zeros(1)] * 3))


@pytest.mark.parametrize("schedule", ["serial", "overlapped"])
def test_gradients_lead_back_to_the_loader(device, schedule):
    weight, plain = (torch.ones(4, requires_grad=True) for _ in range(2))
    run = sluice.pipeline(lambda x: x.square().sum(), schedule=schedule, device=device, verify=True)
    for loss in run([weight * i * weight for i in range(12)]):
        loss.backward()
    sum((plain * i * plain).square().sum() for i in range(12)).backward()
    assert torch.equal(weight.grad, plain.grad)


def test_schedules_of_batches_that_require_a_gradient(device):
    def slope(x):
        return torch.autograd.grad(x.square().sum(), x)[0]

    batches = [torch.full((4,), float(i), requires_grad=True) for i in range(6)]
    assert sluice.verify_schedules(lambda schedule: sluice.pipeline(slope, schedule=schedule, device=device),
                                   batches, ["serial", "overlapped"]) == {"serial": 6, "overlapped": 6}


def test_results_that_cannot_be_copied(device):
    """Nothing would be compared with them."""
    def endless(x):
        results = [x]
        results.append(results)
        return results

    with pytest.raises(ValueError, match="a list contains itself"):
        list(sluice.pipeline(endless, schedule="serial", device=device, verify=True)([torch.ones(2)] * 9))


def test_one_is_no_plural(device):
    results = iter([(torch.ones(1), 2), torch.ones(1)])
    with pytest.raises(sluice.VerifyError, match="differs from serial in 1 value in place of 2"):
        sluice.verify_schedules(lambda schedule: sluice.pipeline(lambda x: next(results), schedule=schedule, device=device),
                                [torch.ones(1)], ["serial", "overlapped"])
    with pytest.raises(ValueError, match="the state is behind 1 batch, and the loader gave 0"):
        run = sluice.prefetch([torch.ones(1)] * 3, device)
        next(iter(run))
        state, empty = run.state_dict(), sluice.prefetch([], device)
        empty.load_state_dict(state)
        list(empty)


def test_beside_a_default_device():
    with torch.device("meta"):
        loader = [torch.eye(3, device="cpu").to_sparse()] * 9
        assert len(list(sluice.pipeline(lambda x: x, device="cpu", verify=True)(loader))) == 9


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "automatic"])
def test_an_error_of_the_serial_run_alone(device, schedule):
    """Nothing behind it would be compared."""
    calls = []

    def stage(x):
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("the third")
        return x

    found = []
    with pytest.raises(sluice.VerifyError, match="^batch 2 raised ValueError: the third in a serial run before, and did not here"):
        for x in sluice.pipeline(stage, schedule=schedule, device=device, verify=True)([torch.ones(1)] * 9):
            found.append(x)
    assert len(found) == 2


@pytest.mark.parametrize("count", [0, 3, 60])
def test_the_iterator_of_a_loader_that_raises_is_let_go(device, count):
    """As a DataLoader's, which has workers."""
    class Batches:
        left = count

        def __iter__(self):
            return self

        def __next__(self):
            self.left -= 1
            if self.left < 0:
                raise OSError("no more")
            return torch.ones(1)

    loader = Batches()
    held, run = weakref.ref(loader), sluice.pipeline(lambda x: x, device=device, verify=True)
    gc.disable()
    try:
        with pytest.raises(OSError, match="no more"):
            list(run(loader))
        del loader
        assert held() is None
    finally:
        gc.enable()
