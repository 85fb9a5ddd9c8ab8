"""What stages are given and return: as a plain loop has it, whatever it is, and however its memory is laid out."""

import dataclasses
from collections import UserDict, deque

import pytest
import torch
from graphing_device import GraphingDevice
from torch.multiprocessing.reductions import StorageWeakRef

import sluice
from sluice.pipelines.devices import CpuDevice
from sluice.pipelines.holders import storages_of
from sluice.pipelines.trees import held_by

np = pytest.importorskip("numpy")
SCHEDULES = ["serial", "overlapped", "graphed", "automatic"]
COUNT = 30


def batches(count=COUNT):
    return [(torch.full((4, 3), float(i)), torch.tensor([i])) for i in range(count)]


def device_of(name):
    return GraphingDevice() if name == "cpu" else name


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestArrays:
    """A loader's arrays become tensors; a stage's stay arrays."""

    def test_from_the_last_stage(self, schedule, device):
        run = sluice.pipeline(lambda x, y: x + 1, lambda x: (x.cpu().numpy().copy(), {"mean": np.float32(x.mean().item())}),
                              schedule=schedule, device=device_of(device))
        for i, (array, more) in enumerate(run(batches())):
            assert type(array) is np.ndarray and type(more["mean"]) is np.float32
            assert array.tolist() == [[i + 1.0] * 3] * 4 and more["mean"] == i + 1

    def test_between_stages(self, schedule, device):
        run = sluice.pipeline(lambda x, y: (np.sort(x.cpu().numpy()), y), lambda a, y: (type(a) is np.ndarray, a.copy(), y),
                              schedule=schedule, device=device_of(device))
        for i, (is_array, array, y) in enumerate(run(batches())):
            assert is_array and array[0, 0] == i and y.item() == i

    def test_an_eager_stage_of_its_own(self, schedule, device):
        run = sluice.pipeline(sluice.stage(lambda x, y: (x.cpu().numpy() + 1, y), graph=False),
                              lambda a, y: (torch.as_tensor(a).to(y.device) * 2, y), schedule=schedule, device=device_of(device))
        assert [x[0, 0].item() for x, _ in run(batches())] == [2.0 * i + 2 for i in range(COUNT)]


def test_verify_compares_arrays_as_a_whole():
    wrong = [False]

    def last(x):
        array = np.zeros(4000, np.float32)
        array[2000] = float(wrong[0])
        wrong[0] = True
        return array

    run = sluice.pipeline(lambda x, y: x, last, schedule="overlapped", device=CpuDevice(), verify=True)
    with pytest.raises(sluice.VerifyError, match="batch 0 differs"):
        list(run(batches()))
    run = sluice.pipeline(lambda x, y: x, lambda x: x.numpy() * 2, schedule="overlapped", device=CpuDevice(), verify=True)
    assert len(list(run(batches()))) == COUNT


LAYOUTS = {
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last), "transposed": lambda x: x.transpose(2, 3),
    "whole": lambda x: x, "part": lambda x: x[:, :, ::2], "one sample": lambda x: x[:1].contiguous(memory_format=torch.channels_last),
    "one channel": lambda x: x[:, :1].contiguous().as_strided((4, 1, 6, 6), (36, 1, 6, 1)), "expanded": lambda x: x[:1].expand(4, -1, -1, -1),
}


def laid_out(names, count=COUNT):
    tensors = [torch.arange(4 * 3 * 36.0).view(4, 3, 6, 6) + i for i in range(count)]
    return [(LAYOUTS[names[i % len(names)]](x), i % 2) for i, x in enumerate(tensors)]


@pytest.mark.parametrize("names", [[name] for name in LAYOUTS] + [["whole", "channels last"], ["transposed", "whole", "part"], list(LAYOUTS)])
class TestLayouts:
    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_of_a_batch(self, names, schedule, device, by_library):
        """Strides choose algorithms, and with them bits."""
        loader = laid_out(names)
        run = sluice.pipeline(lambda x, n: (x * 1, x.stride()), lambda x, strides: (x, x.stride(), strides), schedule=schedule,
                              device=device_of(device))
        for _ in range(2):
            for (x, _), (y, then, first) in zip(loader, run(loader)):
                expected = x.to(device, copy=True)
                assert first == expected.stride() and then == (expected * 1).stride() and torch.equal(y, expected)

    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_of_a_tensor_that_passes(self, names, schedule, device, by_library):
        loader = [(x, torch.tensor(n)) for x, n in laid_out(names)]
        run = sluice.pipeline(lambda x, n: (x, n), lambda x, n: (x, n), schedule=schedule, device=device_of(device))
        for _ in range(2):
            for (x, n), (y, m) in zip(loader, run(loader)):
                expected = x.to(device, copy=True)
                assert y.stride() == expected.stride() and torch.equal(y, expected) and n.item() == m.item()

    def test_of_prefetched_batches(self, names, device):
        loader = laid_out(names)
        ahead = sluice.prefetch(loader, device)
        for _ in range(2):
            for (x, _), (y, _) in zip(loader, ahead):
                expected = x.to(device, copy=True)
                assert y.stride() == expected.stride() and torch.equal(y, expected)


class Out:
    def __init__(self, h, y):
        self.h, self.y = h, y


class Slotted:
    __slots__ = ("h", "y")

    def __init__(self, h, y):
        self.h, self.y = h, y


def attributed(h, y):
    given = torch.ones(1)
    given.h, given.more = h, [y]
    return given


def generated(h, y):
    """One that has begun, within another."""
    def inner():
        yield 0
        yield from (h, y)

    def outer():
        yield from inner()

    made = outer()
    next(made)
    return made


OBJECTS = {"attributes": Out, "slots": Slotted, "a closure": lambda h, y: lambda: (h, y), "a deque": lambda h, y: deque([h, y]),
           # A deque is a container of PyTorch's, whose tensors are copied.
           "a distribution": lambda h, y: [torch.distributions.Normal(h, 1.0), y], "in another": lambda h, y: {"out": [Out(Out(h, 1), y)]},
           "a tensor": attributed, "a dictionary's keys": lambda h, y: {h: 1, (y, 2): [0]}, "keys of one in an object": lambda h, y: Out({h: 1}, y),
           "a generator": generated, "an iterator": lambda h, y: zip([h, y], [1, 2]), "a view": lambda h, y: {1: h, 2: y}.values()}


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
class TestMasked:
    """PyTorch calls them dense, and their numbers are those of two other tensors."""

    @staticmethod
    def loader():
        return [(torch.masked.masked_tensor(x, x > 3), y) for x, y in batches()]

    def test_their_memory(self):
        found, _ = self.loader()[0]
        assert {storage.data_ptr() for storage in storages_of([found])} == {found.get_data().data_ptr(), found.get_mask().data_ptr()}

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_bits_are_compared(self, schedule):
        run = sluice.pipeline(lambda x, y: (x + 1, y), lambda x, y: x + 1, schedule=schedule, device=GraphingDevice(), verify=True)
        assert len(list(run(self.loader()))) == COUNT
        wrong = iter(range(99))
        run = sluice.pipeline(lambda x, y: x + next(wrong), schedule=schedule, device=GraphingDevice(), verify=True)
        with pytest.raises(sluice.VerifyError, match="batch 0 differs"):
            list(run(self.loader()))

    def test_they_are_prefetched(self, device):
        found = [x for x, _ in sluice.prefetch(self.loader(), device)]
        assert all(torch.equal(x.get_data().cpu(), y.get_data()) for x, (y, _) in zip(found, self.loader()))


def test_what_many_objects_hold():
    """The nearest come first, and what is too far is said."""
    far = last = Out(torch.ones(1), 0)
    for _ in range(5000):
        last.y = last = Out(torch.ones(1), 0)
    many = [Out(torch.ones(1), i) for i in range(1000)]
    assert len(held_by(many)) == 1000
    with pytest.warns(UserWarning, match="a result leads to more than 4096 objects, behind which tensors are not held"):
        assert {id(out.h) for out in many} <= {id(tensor) for tensor in held_by([far, *many])}


@pytest.mark.parametrize("kind", OBJECTS)
class TestObjects:
    """Objects of the program's own pass from stage to stage."""

    def test_what_they_hold_is_found(self, kind):
        h, y = torch.ones(2), torch.ones(3)
        assert {id(tensor) for tensor in held_by(OBJECTS[kind](h, y))} >= {id(y)} | ({id(h)} if kind != "a distribution" else set())

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_their_memory_is_held_until_the_batch_is_over(self, kind, schedule, by_library):
        """The host is done with a stage long before a GPU is: memory that was freed then would be used by the next batch."""
        alive, held, under_way = [], [], []

        class Device(GraphingDevice):
            def synchronize(self):
                under_way.clear()

        def first(x, y):
            alive.extend(not reference.expired() for reference in under_way)
            h = x + 1
            held.append(StorageWeakRef(h.untyped_storage()))
            under_way[:] = held[-1:]
            return OBJECTS[kind](h, y)

        run = sluice.pipeline(sluice.stage(first, graph=False) if schedule == "graphed" else first, lambda *_: torch.ones(1),
                              schedule=schedule, device=Device())
        list(run(batches()))
        assert len(alive) > COUNT / 2 and (all(alive) or (kind, schedule) == ("a deque", "graphed"))
        del run
        assert all(reference.expired() for reference in held)

    def test_no_graph_gives_the_same_object_again(self, kind, device):
        """What a capture returned would be returned by each replay."""
        run = sluice.pipeline(lambda x, y: (x * 2, y), lambda x, y: OBJECTS[kind](x + 1, y * 1), schedule="graphed", device=device_of(device))
        found = [sorted(t.float().mean().item() for t in held_by(result) if t.numel()) for result in list(run(batches()))]
        assert all({2.0 * i + 1, float(i)} <= set(numbers) for i, numbers in enumerate(found)), found
        reason = "attributes of the program's" if kind == "a tensor" else "made anew for each batch"
        assert kind == "a deque" or reason in run.report().refusals["<lambda> (1)"]


class Encoding(UserDict):
    """With something besides its values, as `transformers.BatchEncoding` has."""


@dataclasses.dataclass
class Sample:
    x: torch.Tensor


@pytest.mark.parametrize("make", [lambda x: Encoding(x=x), Sample], ids=["mapping", "dataclass"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_attributes_of_a_container(make, schedule, device):
    loader = []
    for i in range(COUNT):
        loader.append(make(torch.full((3,), 1.0)))
        loader[-1].factor = 1 + i // 10
        loader[-1]._hidden = 10.0 if i > 15 else 0.0
        loader[-1]._cache = object()
    run = sluice.pipeline(lambda b: (b["x"] if isinstance(b, UserDict) else b.x) * b.factor + b._hidden, schedule=schedule,
                          device=device_of(device))
    assert [r[0].item() for r in run(loader)] == [1.0 + i // 10 + (10 if i > 15 else 0) for i in range(COUNT)]


class WrongForSome(GraphingDevice):
    """Graphs of batches of two rows give other bits."""

    def capture(self, stream, work, memory, generators):
        graph, outputs = super().capture(stream, work, memory, generators)
        if outputs.shape[0] == 2:
            right, replays = graph.replay, iter(range(1 << 30))
            graph.replay = lambda: (right(), outputs.add_(next(replays) >= self.right))
        return graph, outputs


@pytest.mark.parametrize("right", [0, 1])
@pytest.mark.parametrize("rows", [[4, 2], [2]])
def test_the_first_graph_of_each_form_is_compared(rows, right):
    """Twice: other graphs have been in its memory by then."""
    loader = [torch.full((rows[i % len(rows)], 3), float(i)) for i in range(2 * COUNT)]
    run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=WrongForSome())
    run.device.right = right
    for _ in range(2):
        assert all(torch.equal(found, x * 2) for x, found in zip(loader, run(loader)))
    assert run.report().replays["<lambda>"] > COUNT / 2 or len(rows) == 1
    assert "other bits" in run.report().refusals["<lambda>"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", [1, 2])
def test_a_nested_tensor_from_a_stage(device, schedule, stages):
    run = sluice.pipeline(lambda x, y: torch.nested.nested_tensor([x[:1] + 1, x[1:] * 2]), *[lambda rows: rows] * (stages - 1),
                          schedule=schedule, device=device_of(device))
    for i, rows in enumerate(run(batches(80))):
        assert [row.tolist() for row in rows.unbind()] == [[[i + 1.0] * 3], [[i * 2.0] * 3] * 3]


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
def test_what_max_and_sort_return_becomes_the_arguments(by_library, schedule):
    data = [torch.rand(4, 3) for _ in range(40)]
    for first in (lambda x: x.max(0), lambda x: x.sort(0)):
        run = sluice.pipeline(first, lambda values, places: (values + 1, places), schedule=schedule, device=GraphingDevice())
        for (values, places), x in zip(run(data), data, strict=True):
            assert torch.equal(values, first(x)[0] + 1) and torch.equal(places, first(x)[1])
