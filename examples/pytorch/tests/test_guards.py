"""Graphs beside plain loops, where something changes that a stage reads on the host: numbers and batches; and captures
that fail."""

import builtins
import collections
import functools
import types

import pytest
import torch
from graphing_device import GraphingDevice
from guarded_training import (  # noqa: F401  (a fixture)
    COUNT, SCHEDULES, Training, choose_soon, data, graphing, replays)

import sluice

pytestmark = pytest.mark.usefixtures("by_library")

SETTINGS = types.SimpleNamespace(factor=2.0, unused=0)
GLOBAL = [1.0]


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestNumbers:
    def check(self, device, schedule, function, change, expected, is_captured=True):
        """`change(i)` before epoch i; `expected(i)` is what a batch of ones becomes."""
        run = sluice.pipeline(function, schedule=schedule, device=graphing(device))
        for epoch in range(4):
            change(epoch)
            found = [x.tolist() for x in run([torch.ones(2)] * COUNT)]
            assert found == [[expected(epoch)] * 2] * COUNT, f"epoch {epoch}\n{run.report()}"
        name = next(iter(run.report().replays))
        if schedule == "graphed" and is_captured:
            assert replays(run, name) > 3 * COUNT, str(run.report())
        return run

    def test_in_a_closure(self, device, schedule):
        factor = 0.0

        def change(i):
            nonlocal factor
            factor = i + 0.5

        self.check(device, schedule, lambda x: x * factor, change, lambda i: i + 0.5)

    def test_in_a_dictionary_with_attributes(self, device, schedule):
        """Such dictionaries raise a KeyError for an attribute that is not there."""
        class Settings(dict):
            __getattr__ = dict.__getitem__

        settings = Settings(factor=0.0, inner=Settings(offset=1.0))
        self.check(device, schedule, lambda x: x * settings.factor + settings.inner.offset,
                   lambda i: settings.update(factor=i + 0.5), lambda i: i + 1.5)

    def test_an_object_that_refuses_to_be_looked_at(self, device, schedule):
        class Refusing:
            offset = 1.0

            def __getattr__(self, name):
                raise RuntimeError(f"there is no {name}")

            def __call__(self, x):
                return x * factors[0] + self.offset

        factors = [0.0]
        self.check(device, schedule, Refusing(), lambda i: factors.__setitem__(0, i + 0.5), lambda i: i + 1.5, is_captured=False)

    def test_in_a_cached_function(self, device, schedule):
        """Which is not called while the stage is watched."""
        settings = types.SimpleNamespace(factor=0.0)

        @functools.lru_cache
        def factor():
            return settings.factor

        def change(i):
            settings.factor = i + 0.5
            factor.cache_clear()

        self.check(device, schedule, lambda x: x * factor(), change, lambda i: i + 0.5)

    def test_code_that_is_replaced(self, device, schedule):
        """As by a notebook that reloads what was edited."""
        def function(x):
            return x * 2.0

        codes = [(lambda x: x * 2.0).__code__, (lambda x: x * 3.0).__code__]
        self.check(device, schedule, lambda x: function(x), lambda i: setattr(function, "__code__", codes[i % 2]), lambda i: 2.0 + i % 2)

    def test_a_name_among_the_builtins(self, device, schedule, monkeypatch):
        monkeypatch.setattr(builtins, "factor_of_all", 0.0, raising=False)
        self.check(device, schedule, lambda x: x * factor_of_all,  # noqa: F821
                   lambda i: setattr(builtins, "factor_of_all", i + 0.5), lambda i: i + 0.5)

    def test_hooks_of_all_modules(self, device, schedule):
        identity, handles = torch.nn.Identity(), []

        def change(i):
            while handles:
                handles.pop().remove()
            if i > 0:
                handles.append(torch.nn.modules.module.register_module_forward_hook(lambda module, given, out: out * float(i)))

        try:
            self.check(device, schedule, lambda x: identity(x) * 1.0, change, lambda i: float(max(i, 1)))
        finally:
            change(0)

    def test_in_a_list_of_the_module(self, device, schedule):
        self.check(device, schedule, lambda x: x * GLOBAL[0], lambda i: GLOBAL.__setitem__(0, float(i)), float)

    def test_in_an_object(self, device, schedule):
        self.check(device, schedule, lambda x: x * SETTINGS.factor, lambda i: setattr(SETTINGS, "factor", i * 0.5),
                   lambda i: i * 0.5)

    def test_in_a_function_that_is_called(self, device, schedule):
        table = {"factor": 1.0}

        def inner():
            return table["factor"]

        def outer(x):
            return x * inner()

        self.check(device, schedule, outer, lambda i: table.update(factor=i * 0.5), lambda i: i * 0.5)

    def test_in_a_class(self, device, schedule):
        class Scale:
            factor = 1.0

            @property
            def twice(self):
                return 2 * self.factor

            def __call__(self, x):
                return x * self.twice

        self.check(device, schedule, Scale(), lambda i: setattr(Scale, "factor", i * 0.5), float)

    def test_in_a_partial(self, device, schedule):
        scale = functools.partial(lambda x, table: x * table[0], table=[1.0])
        self.check(device, schedule, scale, lambda i: scale.keywords["table"].__setitem__(0, float(i)), float)

    def test_by_a_name_that_is_made(self, device, schedule):
        class Holder:
            factor_1 = None

        holder = Holder()
        holder.factor_1 = 1.0

        def scale(x):
            return x * getattr(holder, f"factor_{x.dim()}")

        self.check(device, schedule, scale, lambda i: setattr(holder, "factor_1", float(i)), float)

    def test_a_method_of_a_class_that_is_replaced(self, device, schedule):
        class Scale:
            def factor(self):
                return 0.0

            def __call__(self, x):
                return x * self.factor()

        def change(i):
            Scale.factor = lambda self: float(i)

        self.check(device, schedule, Scale(), change, float)

    def test_a_default_device(self, device, schedule):
        run = sluice.pipeline(lambda x: x + torch.ones(2).to(x.device), schedule=schedule, device=graphing(device))
        for epoch in range(3):
            with torch.device("cpu" if epoch % 2 else device):
                assert [x[0].item() for x in run([torch.ones(2, device="cpu")] * COUNT)] == [2] * COUNT

    def test_a_default(self, device, schedule):
        def scale(x, factor=1.0):
            return x * factor

        def change(i):
            scale.__defaults__ = (float(i),)

        self.check(device, schedule, scale, change, float)

    def test_grad_mode(self, device, schedule):
        weight = torch.ones(2, requires_grad=True, device=device)

        def scale(x):
            return x * (2 if torch.is_grad_enabled() else 3) * weight.detach()

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        for epoch in range(4):
            with torch.set_grad_enabled(epoch % 2 == 0):
                assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == [2 + epoch % 2] * COUNT

    def test_that_the_stage_changes(self, device, schedule):
        count = 0

        def scale(x):
            nonlocal count
            count += 1
            return x * count

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == list(range(1, COUNT + 1))
        assert "it changes count" in run.report().refusals["scale"]

    def test_that_are_kept_on_the_host(self, device, schedule):
        kept = []

        def scale(x):
            kept.append(x.shape[0])
            return x + len(kept)

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.zeros(2)] * COUNT)] == list(range(1, COUNT + 1))

    def test_of_a_tensor_that_is_taken_by_its_storage(self, device, schedule):
        """So do cuDNN's recurrent networks with their weights, which are written later."""
        weight = torch.ones(2, device=device)

        def stage(x):
            taken = torch.empty(0, device=x.device).set_(weight.untyped_storage(), 0, (2,))
            y = x * taken
            weight.add_(1)
            return y

        run = sluice.pipeline(stage, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == list(range(1, COUNT + 1)), str(run.report())
        assert schedule == "automatic" or replays(run, "stage") > COUNT / 2, str(run.report())

    def test_of_a_tensor_of_another_device(self, device, schedule):
        """What is launched has them as they are then."""
        first = sluice.stage(lambda x: (x * 2, torch.empty((), device="meta")), "first", graph=False)
        run = sluice.pipeline(first, sluice.stage(lambda x, other: x + 1, "second"), schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(COUNT)])] == [2.0 * i + 1 for i in range(COUNT)]
        assert "it is given a tensor of the device 'meta'" in run.report().refusals["second"], str(run.report())

    @pytest.mark.parametrize("make", [lambda: iter(range(10 ** 6)), lambda: collections.Counter])
    def test_of_objects_that_cannot_be_looked_into(self, device, schedule, make):
        held = make()

        def scale(x):
            return x + (next(held) if hasattr(held, "__next__") else 0)

        run = sluice.pipeline(scale, schedule=schedule, device=graphing(device))
        first = hasattr(held, "__next__")
        assert [x[0].item() for x in run([torch.zeros(2)] * COUNT)] == [i if first else 0 for i in range(COUNT)]
        if first:
            assert "held is a builtins.range_iterator" in run.report().refusals["scale"]

    @pytest.mark.parametrize("draw", ["random.random()", "numpy.random.rand()", "time.perf_counter()", "torch.rand(()).item()",
                                      "datetime.datetime.now().timestamp() % 1e6"])
    def test_of_the_host(self, device, schedule, draw):
        known: dict = {}
        exec("import datetime, random, time, torch\ntry:\n import numpy\nexcept ImportError: pass\n"  # noqa: S102
             f"def scale(x):\n return x + {draw}", known)
        if "numpy" in draw and "numpy" not in known:
            pytest.skip("numpy is not installed")
        run = sluice.pipeline(known["scale"], schedule=schedule, device=graphing(device))
        assert len({x[0].item() for x in run([torch.zeros(2, dtype=torch.float64)] * COUNT)}) == COUNT
        assert "scale" in run.report().refusals

    def test_a_tensor_that_is_replaced(self, device, schedule):
        table = {"offset": torch.zeros(2, device=device)}
        self.check(device, schedule, lambda x: x + table["offset"],
                   lambda i: table.update(offset=torch.full((2,), float(i), device=device)), lambda i: 1.0 + i)

    def test_words_that_a_plain_loop_prints(self, device, schedule, capsys):
        def scale(x):
            print("a batch")
            return x * 2

        list(sluice.pipeline(scale, schedule=schedule, device=graphing(device))([torch.ones(2)] * COUNT))
        assert capsys.readouterr().out.count("a batch") == COUNT


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestBatches:
    def test_keys(self, device, schedule):
        def sign(batch):
            return batch["plus"] * 1 if "plus" in batch else -batch["minus"]

        batches = [{"plus" if i % 2 else "minus": torch.ones(2)} for i in range(COUNT)]
        run = sluice.pipeline(sign, schedule=schedule, device=graphing(device), slots=2)
        assert [x[0].item() for x in run(batches)] == [1 if i % 2 else -1 for i in range(COUNT)]
        assert [x[0].item() for x in run(batches)] == [1 if i % 2 else -1 for i in range(COUNT)]

    def test_nesting(self, device, schedule):
        def shape(a, b):
            return (a[0] if isinstance(a, (list, tuple)) else a) * len(a) + b

        batches = [([torch.ones(3)], torch.ones(3)) if i // 5 % 2 else (torch.ones(3), torch.ones(3)) for i in range(COUNT)]
        run = sluice.pipeline(shape, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run(batches)] == [2 if i // 5 % 2 else 4 for i in range(COUNT)]

    @pytest.mark.parametrize("first,second", [(True, 1), (0.0, -0.0), (1, 1.0), ("a", b"a")])
    def test_values_that_are_equal(self, device, schedule, first, second):
        def which(x, value):
            return x + (1 if repr(value) == repr(first) else 2)

        batches = [(torch.zeros(2), first if i // 7 % 2 else second) for i in range(COUNT)]
        run = sluice.pipeline(which, schedule=schedule, device=graphing(device))
        assert [x[0].item() for x in run(batches)] == [1 if i // 7 % 2 else 2 for i in range(COUNT)]

    def test_results_that_pass_through_and_lie_in_one(self, device, schedule):
        """What is copied in a graph, what is not, and what cannot be."""
        def first(x, y):
            z = x * 2
            return x, z, z.view(-1), y

        def second(x, z, view, y):
            return x + z + view, y

        data = [(torch.full((3,), float(i)), torch.tensor(i)) for i in range(COUNT)]
        run = sluice.pipeline(first, second, schedule=schedule, device=graphing(device))
        assert [(a[0].item(), b.item()) for a, b in run(data)] == [(5.0 * i, i) for i in range(COUNT)]
        run = sluice.pipeline(lambda x, y: (y, x * 2, x, x + 1), lambda y, z, x, w: (x + z + w, y), schedule=schedule,
                              device=graphing(device))
        for _ in range(2):
            assert [(a[0].item(), b.item()) for a, b in run(data)] == [(4.0 * i + 1, i) for i in range(COUNT)]

    def test_many_shapes(self, device, schedule):
        sizes = [1 + i % 11 for i in range(3 * COUNT)]
        run = sluice.pipeline(lambda x: x * 2, schedule=schedule, device=graphing(device))
        for _ in range(2):
            assert [x.tolist() for x in run([torch.full((size,), float(size)) for size in sizes])] == [[2.0 * s] * s for s in sizes]

    def test_objects(self, device, schedule):
        class Value:
            value = 1

        one = Value()

        def add(x, value):
            return x + value.value

        run = sluice.pipeline(add, schedule=schedule, device=graphing(device))
        found = []
        for x in run((torch.zeros(2), one) for _ in range(40)):
            found.append(x[0].item())
        one.value = 5
        assert [x[0].item() for x in run([(torch.zeros(2), one)] * 40)] == [5] * 40


class TestFailures:
    def test_a_capture_that_fails_leaves_all_as_it_was(self):
        """Not what is watched refuses it, but the capture itself."""
        class Refusing(GraphingDevice):
            def capture(self, stream, work, memory, generators):
                super().capture(stream, work, memory, generators)
                raise RuntimeError("operation not permitted")

        plain, piped = (Training("cpu", dropout=0.3, momentum=0.9) for _ in range(2))
        run = sluice.pipeline(sluice.stage(piped.encode, graph=False), piped.train, schedule="graphed", device=Refusing())
        torch.manual_seed(1)
        expected = [loss.item() for loss in plain.loop(data(40))]
        torch.manual_seed(1)
        assert [loss.item() for loss in run(data(40))] == expected
        assert run.report().refusals == {"train": "operation not permitted"}
        assert torch.equal(plain.model[0].weight.grad, piped.model[0].weight.grad)

    def test_a_graph_of_other_bits_is_found(self):
        class Wrong(GraphingDevice):
            def capture(self, stream, work, memory, generators):
                graph, outputs = super().capture(stream, work, memory, generators)
                right = graph.replay
                graph.replay = lambda: (right(), outputs.add_(1))
                return graph, outputs

        run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=Wrong())
        assert [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(40)])] == [2 * i for i in range(40)]
        assert "other bits than its Python code" in run.report().refusals["<lambda>"]

    def test_a_stage_that_the_caller_vouches_for(self):
        held = iter(range(10 ** 6))
        run = sluice.pipeline(sluice.stage(lambda x: x * (2 if hasattr(held, "__next__") else 3), "double", graph=True),
                              schedule="graphed", device=GraphingDevice())
        assert [x[0].item() for x in run([torch.ones(2)] * 40)] == [2] * 40
        assert run.report().replays["double"] > 20
