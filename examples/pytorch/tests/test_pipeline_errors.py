"""Pipelines: errors of stages and loaders, and wrong arguments."""

import copy
import functools
import pickle

import numpy
import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES, Training, batches

import sluice


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


class Silent(Exception):
    """Has no words for itself."""

    def __str__(self):
        raise KeyError("text")

    __repr__ = __str__

    def __eq__(self, other):
        raise KeyError("equal")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_exception_without_words(device, schedule):
    def fail(x):
        raise Silent

    with pytest.raises(sluice.StageError, match="^stage 'fail', batch 0: Silent: no message$") as error:
        list(sluice.pipeline(fail, schedule=schedule, device=device)([torch.zeros(1)]))
    assert type(error.value.__cause__) is Silent


def test_values_without_words(device):
    for given, name in ((Silent(), "Silent"), (10 ** 5000, "int")):
        with pytest.raises(TypeError, match=f"^sluice.stage: name is an object of the type {name}, expected a string$"):
            sluice.stage(abs, name=given)
    assert list(sluice.verify_schedules(lambda schedule: sluice.pipeline(lambda x: Silent(), schedule=schedule, device=device),
                                        [torch.zeros(1)]).values()) == [1, 1, 1]


def test_an_exception_of_the_loader_passes(device):
    def loader():
        yield torch.zeros(2)
        raise OSError("the disk is full")

    run = sluice.pipeline(lambda x: x + 1, device=device)
    with pytest.raises(OSError, match="the disk is full"):
        list(run(loader()))
    assert len(list(run([torch.zeros(2)]))) == 1


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


def test_errors_can_be_pickled_and_tell_of_memory(device):
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no room")

    with pytest.raises(torch.OutOfMemoryError) as error:
        list(sluice.pipeline(fail, device=device)([torch.zeros(1)]))
    copy = pickle.loads(pickle.dumps(error.value))
    assert isinstance(copy, sluice.StageError) and str(copy) == "stage 'fail', batch 0: OutOfMemoryError: no room"
    assert (copy.stage, copy.batch) == ("fail", 0)


def test_errors_can_be_pickled_and_caught_by_their_kind(device):
    def raising(error: BaseException):
        def stage(x: torch.Tensor) -> torch.Tensor:
            raise error

        return stage

    with pytest.raises(torch.OutOfMemoryError) as error:
        list(sluice.pipeline(raising(torch.OutOfMemoryError("too large")), device=device)([torch.zeros(1)]))
    assert isinstance(error.value, sluice.StageError)
    with pytest.raises(MemoryError) as error:
        list(sluice.pipeline(raising(MemoryError("too large")), device=device)([torch.zeros(1)]))
    assert isinstance(error.value, sluice.StageError)
    for cause in (torch.OutOfMemoryError("too large"), MemoryError("too large"), ValueError("wrong")):
        with pytest.raises(sluice.StageError) as error:
            list(sluice.pipeline(raising(cause), device=device)([torch.zeros(1)]))
        again = pickle.loads(pickle.dumps(error.value))
        assert (str(again), type(again), again.stage, again.batch) == (str(error.value), type(error.value), "stage", 0)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="there are no stages"):
        sluice.pipeline()
    with pytest.raises(ValueError, match="schedule is 'fast', expected one of serial, overlapped, graphed, automatic"):
        sluice.pipeline(len, schedule="fast")
    with pytest.raises(ValueError, match="slots is 1, expected an integer of 2 or more"):
        sluice.pipeline(len, slots=1)
    with pytest.raises(TypeError, match="3 was given, expected a callable"):
        sluice.stage(3)
    with pytest.raises(TypeError, match="state has an int, expected objects with state_dict"):
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


async def later(x):
    return x


@pytest.mark.parametrize("made, message", [
    (lambda device: sluice.pipeline(sluice.pipeline(abs, device=device)), "sluice.pipeline: a stage is .*, which works on a loader"),
    (lambda device: sluice.pipeline(sluice.stage(later), device=device), "sluice.pipeline: the stage .* is a coroutine function"),
    (lambda device: sluice.pipeline(type("Lazy", (), {"__call__": lambda self, x: (yield x)})()),
     "sluice.pipeline: the stage .* is a generator function.*without yield"),
    (lambda device: sluice.pipeline(functools.partial(later), device=device), "the stage .* is a coroutine function.*without async"),
    (lambda device: sluice.pipeline(abs, device=device)(5), "sluice.pipeline: the loader is 5, expected what gives batches"),
    (lambda device: sluice.verify_schedules(3, [torch.zeros(1)]), "sluice.verify_schedules: make is 3, expected a callable that makes"),
    (lambda device: sluice.pipeline(abs, device=device)(list), "sluice.pipeline: the loader is <class 'list'>, expected what gives"),
    (lambda device: sluice.prefetch(5, device), "sluice.prefetch: the loader is 5, expected what gives batches"),
    (lambda device: sluice.pipeline(abs, device=device).load_state_dict(3), "sluice.pipeline: the state is an int, expected what state_dict"),
    (lambda device: sluice.prefetch([], device).load_state_dict(None), "sluice.prefetch: the state is a NoneType, expected what"),
    (lambda device: sluice.stage(abs, priority="a"), "sluice.stage: priority is 'a', expected an integer"),
    (lambda device: sluice.stage(abs, graph="yes"), "sluice.stage: graph is 'yes', expected True or False"),
    (lambda device: sluice.stage(abs, name=3), "sluice.stage: name is 3, expected a string"),
    (lambda device: sluice.stage(torch.optim.SGD([torch.zeros(1)])), "sluice.stage: SGD .* was given, expected a callable"),
    (lambda device: sluice.stage(abs, shares=torch.nn.ReLU().parameters()), "sluice.stage: shares has <generator .*, expected a model"),
    (lambda device: sluice.stage(abs, shares=["encoder"]), "sluice.stage: shares has 'encoder', expected a model"),
    (lambda device: sluice.stage(abs, shares=torch.nn.ReLU().state_dict()), "sluice.stage: shares has OrderedDict.*, expected a model"),
    (lambda device: sluice.pipeline(abs, device=device, reuse="no"), "sluice.pipeline: reuse is 'no', expected True or False"),
    (lambda device: sluice.pipeline(abs, device=device, verify=2), "sluice.pipeline: verify is 2, expected True or False"),
    (lambda device: sluice.pipeline(abs, device=device, state=None), "sluice.pipeline: state is None, expected a list of modules"),
    (lambda device: sluice.prefetch([], device, reuse=None), "sluice.prefetch: reuse is None, expected True or False"),
    (lambda device: sluice.prefetch(sluice.prefetch([], device), device), "sluice.prefetch: the loader is a sluice.prefetch")])
def test_what_is_given_is_of_its_kind(device, made, message):
    with pytest.raises(TypeError, match=message) as error:
        made(device)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", ["nonsense", "", -1, True, 1.5, [], "CPU", "cuda:x", torch.nn.ReLU()])
def test_a_device_is_named(given):
    for made in (lambda: sluice.pipeline(abs, device=given), lambda: sluice.prefetch([], given)):
        with pytest.raises(ValueError, match="sluice: the device is .*, expected 'cpu', 'cuda', or the number of a CUDA device"):
            made()


@pytest.mark.parametrize("given, message", [
    ({"batches": "x"}, "the state's batches are 'x'"), ({"batches": -1}, "the state's batches are -1"),
    ({"random": "x"}, "the state's random is 'x'"), ({"generator": torch.zeros(1)}, "the state's generator is tensor")])
def test_a_state_is_looked_at_when_it_is_given(device, given, message):
    for one in (sluice.pipeline(abs, device=device), sluice.prefetch([], device)):
        with pytest.raises(ValueError, match=f"{message}.*, expected what state_dict"):
            one.load_state_dict({**one.state_dict(), **given})


def test_flags_of_numpy_and_nothing_shared(device):
    """`graph=0` and NumPy's False are False, and what shares nothing has a stream of its own."""
    for graph in (0, numpy.False_):
        assert sluice.stage(abs, graph=graph).graph is False
    run = sluice.pipeline(sluice.stage(abs, shares=None), sluice.stage(abs, shares=None), device=device)
    assert run.stages[0].stream is not run.stages[1].stream
    model = torch.nn.ReLU()
    run = sluice.pipeline(sluice.stage(abs, shares={model}), sluice.stage(abs, shares={model}), device=device)
    assert run.stages[0].stream is run.stages[1].stream
    run = sluice.pipeline(sluice.stage(abs, priority=numpy.int8(0)), device=device, verify=True, state=torch.nn.Linear(2, 2),
                          slots=numpy.int64(3), timed_batches=numpy.int32(4))
    run.load_state_dict({**run.state_dict(), "batches": numpy.int64(0)})
    assert len(list(run([torch.zeros(1)] * 4))) == 4


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("how", ["break", "body", "stage"])
def test_a_generator_is_closed_with_the_loop(device, schedule, how):
    """As in a plain loop, which holds it alone: what its `finally` does is not put off."""
    closed = []

    def loader():
        try:
            for i in range(50):
                yield torch.full((2,), float(i))
        finally:
            closed.append(True)

    def stage(x):
        if how == "stage" and float(x[0]) == 9:
            raise ValueError("no")
        return x + 1

    run = sluice.pipeline(stage, schedule=schedule, device=device)
    try:
        for i, _ in enumerate(run(loader())):
            if how == "break" and i == 5:
                break
            if how == "body" and i == 5:
                raise KeyError(i)
    except (KeyError, sluice.StageError):
        pass
    assert closed == [True]
    assert len(list(run(loader()))) == 50 if how != "stage" else True


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("where", ["stage", "loader"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_comes_after_the_results_before_it(by_library, schedule, where, kind):
    def loader():
        for i in range(30):
            if where == "loader" and i == 20:
                raise kind
            yield torch.full((2,), float(i))

    def stage(x):
        if where == "stage" and float(x[0]) == 20:
            raise kind
        return x + 1

    run, found = sluice.pipeline(stage, lambda x: x * 2, schedule=schedule, device=GraphingDevice()), []
    with pytest.raises(kind):
        for x in run(loader()):
            found.append(x[0].item())
    assert found == [2.0 * (i + 1) for i in range(20)] and run.sync() == run.state_dict()["batches"] == 20
    assert len(list(run([torch.zeros(2)] * 30))) == 30


@pytest.mark.parametrize("made", ["pipeline", "prefetch"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_a_loop_that_ends_before_an_interrupt_came_does_not_swallow_it(device, made, kind):
    def loader():
        yield from (torch.full((2,), float(i)) for i in range(5))
        raise kind

    run = sluice.pipeline(lambda x: x + 1, device=device)(loader()) if made == "pipeline" else iter(sluice.prefetch(loader(), device))
    for _ in range(5):
        next(run)
    if kind is ValueError:
        run.close()
    else:
        with pytest.raises(kind):
            run.close()


@pytest.mark.parametrize("made", ["pipeline", "prefetch"])
def test_a_loader_that_raises_while_batches_are_skipped(device, made):
    """The state is for the next iteration, and the program's random numbers are as before."""
    broken = [False]

    def batches_of(number):
        for i in range(9):
            if broken[0] and i == 2:
                raise OSError("the disk")
            yield torch.full((2,), float(i)) + torch.rand(2)

    class Loader:
        def __iter__(self):
            return batches_of(9)

    one = sluice.pipeline(lambda x: x + 0, schedule="serial", device=device) if made == "pipeline" else sluice.prefetch(Loader(), device)
    results = (lambda: one(Loader())) if made == "pipeline" else (lambda: iter(one))
    first = [x.clone() for x in results()]
    torch.manual_seed(7)
    for number, _ in enumerate(results()):
        if number == 4:
            state = one.state_dict()
            break
    rest = torch.manual_seed(7) and [x.clone() for x in results()][5:]
    one.load_state_dict(state)
    broken[0], numbers = True, torch.get_rng_state()
    with pytest.raises(OSError):
        next(iter(results()))
    assert torch.equal(torch.get_rng_state(), numbers) and one.state_dict()["batches"] == 5
    broken[0] = False
    assert len(first) == 9 and [float(x[0]) // 1 for x in results()] == [float(x[0]) // 1 for x in rest] == [5, 6, 7, 8]


@pytest.mark.parametrize("made", ["pipeline", "prefetch"])
def test_a_state_of_a_longer_loader(device, made):
    """No epoch without a batch, and without a word."""
    data = [torch.full((2,), float(i)) for i in range(3)]
    one = sluice.pipeline(lambda x: x + 0, device=device) if made == "pipeline" else sluice.prefetch(data, device)
    results = (lambda: one(data)) if made == "pipeline" else (lambda: iter(one))
    next(results())
    state, numbers = one.state_dict(), torch.get_rng_state()
    one.load_state_dict({**state, "batches": 5})
    with pytest.raises(ValueError, match=f"sluice.{made}: the state is behind 5 batches, and the loader gave 3; expected the loader whose"):
        next(results())
    assert torch.equal(torch.get_rng_state(), numbers)
    one.load_state_dict({**state, "batches": 3})  # its last batch had begun
    assert list(results()) == [] and len([x[0].item() for x in results()]) == 3


class InterruptedDevice(GraphingDevice):
    """Interrupts its capture of that number, when the stage's code has run."""

    def __init__(self, number, parameters):
        super().__init__()
        self.number, self.parameters, self.gradients = number, list(parameters), None

    def capture(self, stream, work, memory, generators):
        def interrupted():
            work()
            raise KeyboardInterrupt

        if self.captures != self.number:
            return super().capture(stream, work, memory, generators)
        self.gradients = [parameter.grad for parameter in self.parameters]
        return super().capture(stream, interrupted, memory, generators)


@pytest.mark.parametrize("number", range(6))
def test_an_interrupted_capture_leaves_no_trace(number):
    """Weights and the optimizer are those of a plain loop up to the batch. A capture computes no gradients, so none of its are left."""
    training, other, data, found = Training("cpu"), Training("cpu"), batches(30), []
    device = InterruptedDevice(number, training.decoder.parameters())
    run = training.pipeline(device, "graphed")
    with pytest.raises(KeyboardInterrupt):
        for loss in run(data):
            found.append(loss.item())
    assert all(parameter.grad is before for parameter, before in zip(device.parameters, device.gradients))
    assert found == [other.train(*other.encode(*batch)).item() for batch in data[:len(found)]]
    assert all(map(torch.equal, training.decoder.parameters(), other.decoder.parameters()))
    state = [[each["momentum_buffer"] for each in one.optimizer.state.values()] for one in (training, other)]
    assert len(state[0]) == len(state[1]) and all(map(torch.equal, *state))
    assert [loss.item() for loss in run(data)] == [other.train(*other.encode(*batch)).item() for batch in data]
