"""Pipelines whose batches are enqueued by the operators' library, over a pretended CUDA."""

import contextlib
import gc
import sys
import weakref

import pytest
import torch
from graphing_device import GraphingDevice
from pretended_device import Pretended

import sluice
from sluice.pipelines import guards, layout
from sluice.pipelines.compiled import UNHANDLED


@pytest.fixture
def pretending(compiled, monkeypatch) -> Pretended:
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    made = Pretended(compiled)
    made.pretended.pretended_clear(0)
    made.pretended.pretended_stream(90, 1)
    yield made
    made.pretended.pretended_stream(90, 0)


BATCHES = {
    "a tensor": (lambda i: torch.full((3,), float(i)), lambda x: x * 2, lambda x: x.sum()),
    "tuples": (lambda i: (torch.tensor(i), torch.full((2, 3), i, dtype=torch.int32)), lambda a, b: (a, b + 1), lambda a, b: a + b.sum()),
    "lists and constants": (lambda i: [torch.tensor([True, False]), "name", i, None], lambda a, b, c, d: [a, c], lambda a, c: a.sum() + c),
    "of another type": (lambda i: {"x": torch.full((2,), float(i))}, lambda d: d["x"], lambda x: {"y": x}),
    "a view": (lambda i: torch.arange(12.0).reshape(3, 4).t()[1:] + i, lambda x: x * 2, lambda x: x.sum()),
    "a transposed one": (lambda i: torch.full((3, 4), float(i)).t(), lambda x: x * 2, lambda x: x.sum()),
    "with a gradient": (lambda i: torch.full((3,), float(i), requires_grad=True), lambda x: x * 2, lambda x: x.sum()),
    "sparse": (lambda i: torch.eye(3).to_sparse() * i, lambda x: x.to_dense(), lambda x: x.sum()),
    "empty": (lambda i: torch.empty(0, 3), lambda x: x * 2, lambda x: x.shape),
    "complex": (lambda i: torch.full((2,), complex(i, 1)).conj(), lambda x: x * 2, lambda x: x.imag),
    "negated": (lambda i: torch.full((1,), complex(i, 1)).conj().imag, lambda x: x * 2, lambda x: x + 0),
    "nothing": (lambda i: torch.ones(1), lambda x: None, lambda x: x),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("size", [0, 1 << 30])
def test_whole_batches_have_the_results_of_a_plain_loop(pretending, monkeypatch, name, size):
    monkeypatch.setattr(layout, "SMALL", size)
    make, first, second = BATCHES[name]
    run = sluice.pipeline(first, second, device=pretending, timed_batches=0)
    expected = [second(*v) if type(v) in (tuple, list) else second(v)
                for v in (first(*b) if type(b) in (tuple, list) else first(b) for b in map(make, range(300)))]
    for _ in range(2):
        found = list(run(map(make, range(300))))
        assert len(found) == 300 and all(same(a, b) for a, b in zip(found, expected))
    assert pretending.handled == 0 if name in ("of another type", "sparse") else pretending.unhandled < 5


def same(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_an_error_of_a_stage_in_a_whole_batch(pretending):
    def second(x):
        if x.item() == 7:
            raise ValueError("seven")
        return x + 1

    run = sluice.pipeline(lambda x: x + 0, second, device=pretending, timed_batches=0)
    found = []
    with pytest.raises(sluice.StageError, match="stage 'second', batch 7: ValueError: seven") as caught:
        for result in run([torch.tensor(i) for i in range(20)]):
            found.append(result.item())
    assert found == [i + 1 for i in range(7)] and isinstance(caught.value.__cause__, ValueError)
    assert pretending.pretended.pretended_state() == 901
    assert [x.item() for x in run([torch.tensor(i + 10) for i in range(5)])] == [11, 12, 13, 14, 15]


def test_a_loader_that_writes_what_is_being_copied_is_refused(pretending):
    memory = torch.zeros(3)

    def loader():
        for i in range(20):
            if i == 9:
                memory.fill_(i)
            yield memory if i in (8, 9) else torch.zeros(3)

    run = sluice.pipeline(lambda x: x + 0, lambda x: x, device=pretending, timed_batches=0)
    with pytest.raises(RuntimeError, match="the loader wrote batch 9 into the memory of batch"):
        list(run(loader()))


def test_what_somebody_keeps_is_given_away(pretending):
    kept = []
    run = sluice.pipeline(lambda x: (kept.append(x) or x + 1) if x[0] % 10 == 0 else x + 1, lambda x: x * 2, device=pretending, timed_batches=0)
    results = list(run([torch.full((2,), i) for i in range(40)]))
    assert {x.data_ptr() for x in kept} <= set(pretending.given) and {x.data_ptr() for x in results[:30]} <= set(pretending.given)
    assert [x.tolist() for x in results] == [[2 * i + 2] * 2 for i in range(40)]


def test_a_dropped_pipeline_is_found_by_the_garbage_collector(pretending):
    class Trainer:
        def __init__(self) -> None:
            self.run = sluice.pipeline(self.first, lambda x: x, device=pretending, timed_batches=0)

        def first(self, x):
            return x + 1

    trainer = Trainer()
    list(trainer.run([torch.zeros(2)] * 20))
    dropped = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert dropped() is None


class Held:
    """All kinds of things that a guard looks at."""

    def __init__(self) -> None:
        self.dictionary = {"a": 1000, "b": 2.5}
        self.module = torch.nn.Linear(2, 2)
        self.number = 12345
        self.members = [self.module, self.dictionary]
        self.names = {"x", "y"}
        self.nothing: list = []
        self.tensor = torch.zeros(3)
        self.guard = guards.Guard()
        self.guard.item(self.dictionary, "a", self.dictionary["a"], "a")
        self.guard.size(self.dictionary, "the dictionary")
        self.guard.size(self.nothing, "nothing")
        self.guard.attribute(self, "number", self.number, "number")
        self.guard.dictionary(self.module._parameters, "parameters")
        self.guard.members(self.members, "members")
        self.guard.sets.append((self.names, frozenset(self.names), "names"))
        self.guard.tensor(self.tensor, "tensor")
        self.guard.tensor(self.module.weight, "weight")
        self.guard.kind(self.module, "the class of the module")
        self.guard.look_at_tensors()

    def loaded(self) -> None:
        self.module.weight.data = torch.ones(2, 2)


CHANGES = {
    "nothing": lambda held: None,
    "other values of a tensor": lambda held: held.tensor.fill_(1),
    "an item": lambda held: held.dictionary.update(a=1001),
    "an item that is gone": lambda held: held.dictionary.pop("a"),
    "one more": lambda held: held.dictionary.update(c=1),
    "not empty": lambda held: held.nothing.append(1),
    "an attribute": lambda held: setattr(held, "number", 54321),
    "an attribute that is gone": lambda held: delattr(held, "number"),
    "a parameter": lambda held: setattr(held.module, "weight", torch.nn.Parameter(held.module.weight.detach())),
    "no parameter": lambda held: setattr(held.module, "bias", None),
    "a member": lambda held: held.members.__setitem__(1, {"a": 1000, "b": 2.5}),
    "members": lambda held: held.members.pop(),
    "a set": lambda held: held.names.add("z"),
    "memory": lambda held: held.loaded(),
    "requires_grad": lambda held: held.module.weight.requires_grad_(False),
    "requires_grad of a tensor": lambda held: held.tensor.requires_grad_(),
    "strides": lambda held: setattr(held.module.weight, "data", held.module.weight.data.t()),
    "a shape": lambda held: held.tensor.resize_(2),
    "a class": lambda held: setattr(held.module, "__class__", torch.nn.Identity),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_guard_holds_as_long_as_in_python(pretending, change):
    held = Held()
    assert held.guard.holds(guards.Surroundings()) and pretending.calls.holds(held.guard.lists()) is True
    CHANGES[change](held)
    expected = change in ("nothing", "other values of a tensor")
    assert held.guard.holds(guards.Surroundings()) is expected
    assert (pretending.calls.holds(held.guard.lists()) is True) is expected


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16),
                                  lambda: torch.backends.cudnn.flags(benchmark=True)])
def test_a_guard_asks_for_modes(pretending, mode):
    held = Held()
    with mode():
        assert not held.guard.holds(guards.Surroundings()) and pretending.calls.holds(held.guard.lists()) is None
    assert pretending.calls.holds(held.guard.lists()) is True
    was, matmuls = torch.get_float32_matmul_precision(), (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    before = [matmul.fp32_precision for matmul in matmuls]  # perhaps what that of all operations says
    torch.set_float32_matmul_precision("medium" if was != "medium" else "high")
    try:
        assert pretending.calls.holds(held.guard.lists()) is None
    finally:
        torch.set_float32_matmul_precision(was)
        for matmul, precision in zip(matmuls, before):
            matmul.fp32_precision = precision


class PretendedGraphs(Pretended, GraphingDevice):
    pass


class Changing:
    """A pipeline of graphs whose loop's body changes something, now and then."""

    def __init__(self, device: Pretended) -> None:
        self.factor, self.settings, self.model = 2.0, {"shift": 1.0}, torch.nn.Linear(3, 3).requires_grad_(False)
        self.run = sluice.pipeline(self.first, self.second, schedule="graphed", device=device, timed_batches=0)
        self.kept: list = []

    def first(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    def second(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x) + self.settings["shift"]


def replaced(made: Changing) -> None:
    made.model = torch.nn.Linear(3, 3).requires_grad_(False)


BODIES = {
    "nothing": lambda made, result: None,
    "an attribute": lambda made, result: setattr(made, "factor", made.factor + 1),
    "a setting": lambda made, result: made.settings.update(shift=made.settings["shift"] + 1),
    "a model": lambda made, result: replaced(made),
    "its weights": lambda made, result: made.model.weight.add_(1),
    "a result that is kept": lambda made, result: made.kept.append(result),
    "a result that is written": lambda made, result: result.zero_(),
}


@pytest.mark.parametrize("body", BODIES)
def test_graphs_with_a_body_that_changes_something(compiled, pretending, body):
    found, by_library = [], []
    for device in (PretendedGraphs(compiled), GraphingDevice()):
        torch.manual_seed(5)
        if isinstance(device, Pretended):
            replays = device.calls.graphed
            device.calls.graphed = lambda *a: (result := replays(*a), by_library.append(result is not UNHANDLED))[0]
        made = Changing(device)
        results = []
        for place, result in enumerate(made.run([torch.rand(3) for _ in range(200)])):
            results.append(result.tolist())
            if place % 30 == 29:
                BODIES[body](made, result)
        found.append(results)
        assert made.run.report().replays["first"] + made.run.report().eager["first"] == 200
    assert found[0] == found[1] and sum(by_library) > 40


def test_a_kept_tensor_ends_chains(compiled, pretending):
    kept = []

    run = sluice.pipeline(lambda x: x * 2, lambda x: x + 1, schedule="graphed", device=PretendedGraphs(compiled), timed_batches=0)
    results = []
    for place, x in enumerate(run([torch.full((2,), float(i)) for i in range(80)])):
        results.append(x.tolist())
        if place == 60:  # memory of a slot, to which a reference was found
            assert run.chains.of[0] is not None
            kept.append(run.stages[0].graphs.recent[0].found.outputs.detach())
    assert results == [[2.0 * i + 1] * 2 for i in range(80)]
    assert all("held when its batch is over" in refusal for refusal in run.report().refusals.values()) and run.report().refusals


def test_shapes_and_constants_that_come_and_go(compiled, pretending):
    def batch(i):
        return (torch.full((2 + (i % 50 == 49),), float(i)), i // 70, "name")

    run = sluice.pipeline(lambda x, k, name: (x * 2 + k, k), lambda x, k: x + k, schedule="graphed", device=PretendedGraphs(compiled),
                          timed_batches=0)
    for _ in range(2):
        results = [x.tolist() for x in run(map(batch, range(200)))]
        assert results == [[2.0 * i + 2 * (i // 70)] * (2 + (i % 50 == 49)) for i in range(200)]
    assert run.report().replays["<lambda>"] > 200


def prefetched(pretending, monkeypatch, batches, small: bool = True, **options):
    """An object that copies `batches`, and a list of whether the library did each."""
    monkeypatch.setattr(sys.modules["sluice.pipelines.prefetch"], "SMALL", 1 << 30 if small else -1)
    whole, done = pretending.calls.prefetched, []
    pretending.calls.prefetched = lambda *a: (result := whole(*a), done.append(result is not UNHANDLED))[0]
    return sluice.prefetch(batches, pretending, **options), done


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("make", [lambda i: (torch.full((3,), float(i)),), lambda i: [torch.tensor(i), f"name {i}", i, torch.ones(2, 2) * i],
                                  lambda i: (torch.arange(6.0).reshape(2, 3).t() + i, torch.full((2,), complex(0, i)).conj()),
                                  lambda i: (torch.full((1,), complex(i, 1)).conj().imag, torch.empty(0, 2)),
                                  lambda i: (torch.full((2 if i % 7 == 6 else 5,), float(i)),)])
def test_prefetched_batches_are_the_loaders(pretending, monkeypatch, slots, small, make):
    pre, done = prefetched(pretending, monkeypatch, [make(i) for i in range(50)], small, slots=slots)
    for _ in range(2):
        count = 0
        for i, batch in enumerate(pre):
            assert type(batch) is type(make(i)) and all(same(a, b) for a, b in zip(batch, make(i)))
            count += 1
        assert count == 50
    assert sum(done) > 60
    assert pretending.pretended.pretended_state() == 901


@pytest.mark.parametrize("keep", [lambda x: x, lambda x: x.detach(), lambda x: x.numpy(), lambda x: x[1:]])
def test_a_prefetched_tensor_that_is_kept_is_found(pretending, monkeypatch, keep):
    pre, done = prefetched(pretending, monkeypatch, [(torch.full((3,), float(i)),) for i in range(50)])
    kept = []
    with pytest.raises(RuntimeError, match="a tensor of batch 20 is still held"):
        for i, (x,) in enumerate(pre):
            if i == 20:
                kept.append(keep(x))
    assert sum(done) > 15 and i == 21
    kept.clear()
    assert [x.tolist() for x, in pre] == [[float(i)] * 3 for i in range(50)]


def test_prefetching_under_inference_mode_and_of_leaves(pretending, monkeypatch):
    pre, done = prefetched(pretending, monkeypatch, [(torch.full((3,), float(i), requires_grad=i % 2 == 0),) for i in range(20)])
    assert [x.tolist() for x, in pre] == [[float(i)] * 3 for i in range(20)]
    assert not all(done)
    done.clear()
    with torch.inference_mode():
        assert [x.tolist() for x, in pre] == [[float(i)] * 3 for i in range(20)]
    assert not any(done)


def test_a_loader_that_writes_what_is_being_prefetched_is_refused(pretending, monkeypatch):
    memory = torch.zeros(3)

    def loader():
        for i in range(20):
            if i == 9:
                memory.fill_(i)
            yield (memory if i in (8, 9) else torch.zeros(3),)

    pre, _ = prefetched(pretending, monkeypatch, loader())
    with pytest.raises(RuntimeError, match="the loader wrote batch 9 into the memory of batch 8"):
        for _ in pre:
            pass


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("times", [2, 3, 4, 9])
def test_a_loader_that_writes_what_is_prefetched_several_times(pretending, monkeypatch, slots, times):
    def loader():
        yield from [(torch.zeros(3),) for _ in range(9)]
        memory = torch.zeros(3)
        for _ in range(times):
            yield (memory,)
        yield (memory.add_(1),)

    pre, done = prefetched(pretending, monkeypatch, loader(), slots=slots)
    with pytest.raises(RuntimeError, match=f"the loader wrote batch {9 + times} into the memory of batch {8 + times},"):
        for _ in pre:
            pass
    assert sum(done) > 5 and pre.versions == {}


@pytest.mark.parametrize("times", [2, 3, 4, 9])
def test_a_loader_that_writes_a_whole_batch_it_gave_several_times(pretending, times):
    def loader():
        yield from [torch.zeros(3) for _ in range(9)]
        memory = torch.zeros(3)
        for _ in range(times):
            yield memory
        yield memory.add_(1)

    run = sluice.pipeline(lambda x: x + 0, lambda x: x, device=pretending, timed_batches=0)
    with pytest.raises(RuntimeError, match=f"the loader wrote batch {9 + times} into the memory of batch {8 + times},"):
        list(run(loader()))
    assert pretending.handled >= 4 + times and run.intake.versions == {}
