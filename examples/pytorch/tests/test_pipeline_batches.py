"""Pipelines whose batches are enqueued by the operators' library, over a pretended CUDA."""

import contextlib
import gc
import sys
import weakref

import pytest
import torch
from pretended_device import Pretended

import sluice


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
    monkeypatch.setattr(sys.modules["sluice.pipelines.pipeline"], "SMALL", size)
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


def test_another_stream_of_the_callers_waits_for_what_is_under_way(pretending, monkeypatch):
    monkeypatch.setattr(sys.modules["sluice.pipelines.pipeline"], "EVERY", 0)
    settled = []
    run = sluice.pipeline(lambda x: x + 1, lambda x: x * 2, device=pretending, timed_batches=0)
    pretending.synchronize = lambda: settled.append(run.begun)
    for place, result in enumerate(run([torch.tensor(i) for i in range(60)])):
        assert result.item() == 2 * place + 2
        if place == 30:
            assert run.steps is run.together[0]
            pretending.pretended.pretended_stream(91, 1)
            settled.clear()
            pretending.pretended.pretended_clear(0)
        if place == 31:
            assert settled == [33]  # the batch after those that were under way
    assert settled[:1] == [33]


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
