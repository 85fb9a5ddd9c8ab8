"""Batches as people have them: containers of any kind, arrays of any strides, tensors of any layout."""

import collections
import dataclasses
import types
from typing import Any, NamedTuple, Optional

import pytest
import torch
from graphing_device import GraphingDevice
from torch.utils import _pytree

import sluice
from sluice.pipelines.signatures import signature_of
from sluice.pipelines.trees import leaves_of, map_tensors, same_bits, structure_of, tensors_of


class Encoding(collections.UserDict):
    """As `transformers.BatchEncoding`."""

    def __init__(self, data: dict, encodings: Any = None) -> None:
        super().__init__(data)
        self.encodings = encodings


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As `transformers.ModelOutput`: a dictionary whose items are attributes, too."""

    logits: torch.Tensor = None
    loss: Optional[torch.Tensor] = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __reduce__(self) -> tuple:
        made, _, *more = super().__reduce__()
        return made, tuple(getattr(self, field.name) for field in dataclasses.fields(self)), *more


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    name: str
    more: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: torch.Tensor
    count: int = dataclasses.field(init=False, default=3)


class Named(NamedTuple):
    x: torch.Tensor
    name: str


class Pair(tuple):
    """Whose `__new__` takes other arguments than a tuple's."""

    def __new__(cls, x: torch.Tensor, name: str) -> "Pair":
        return super().__new__(cls, (x, name))


class Items(tuple):
    """The same, which takes a list for one item."""

    def __new__(cls, *items: Any) -> "Items":
        return super().__new__(cls, items)


class Registered:
    """A container that PyTorch's pytree knows."""

    def __init__(self, x: torch.Tensor, name: str) -> None:
        self.x, self.name = x, name


_pytree.register_pytree_node(Registered, lambda tree: ([tree.x], tree.name), lambda values, name: Registered(*values, name))


def containers(x: torch.Tensor) -> dict[str, Any]:
    return {
        "UserDict": Encoding({"x": x, "name": "a"}, encodings="kept"),
        "ModelOutput": Output(x),
        "OrderedDict": collections.OrderedDict(x=x, name="a"),
        "defaultdict": collections.defaultdict(list, x=x),
        "mapping that cannot be written": types.MappingProxyType({"x": x}),
        "dataclass": Batch(x, "a", [x + 1]),
        "frozen dataclass with slots": Frozen(x),
        "named tuple": Named(x, "a"),
        "registered": Registered(x, "a"),
        "tuple with a __new__ of its own": Pair(x, "a"),
        "tuple of all arguments": Items(x, x + 1),
        "deque": collections.deque([x, x + 1]),
        "UserList": collections.UserList([x]),
        "named result": torch.stack([x, x]).max(0),
        "nested": [(Encoding({"x": [Batch(x, "a")]}),)],
    }


@pytest.mark.parametrize("name", containers(torch.zeros(2)))
def test_containers_come_with_their_tensors(device, name):
    data = [containers(torch.full((2,), float(i)))[name] for i in range(5)]
    expected = [[leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves_of(batch)] for batch in data]
    count = len(tensors_of(data[0]))
    assert count > 0

    def check(found: list) -> None:
        assert len(found) == 5
        for batch, given, wanted in zip(found, data, expected):
            assert type(batch) is type(given) and structure_of(batch) == structure_of(given)
            tensors = tensors_of(batch)
            assert len(tensors) == count and all(tensor.device.type == device for tensor in tensors)
            assert [leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves_of(batch)] == wanted
            assert not {id(tensor) for tensor in tensors} & {id(tensor) for tensor in tensors_of(given)}

    check([map_tensors(torch.clone, batch) for batch in sluice.prefetch(data, device)])
    run = sluice.pipeline(lambda held: map_tensors(torch.clone, held["batch"]), device=device)
    check(list(run([{"batch": batch} for batch in data])))


def test_what_else_a_container_holds_comes_with_it(device):
    (found,) = sluice.prefetch([Encoding({"x": torch.ones(2)}, encodings="kept")], device)
    assert found.encodings == "kept" and found["x"].device.type == device
    (found,) = sluice.prefetch([Output(torch.ones(2))], device)
    assert found.logits is found["logits"] and found.loss is None


def test_other_values_pass(device):
    class Thing:
        pass

    thing, plain = Thing(), Batch("no tensor", "a")
    given = (torch.ones(1), "text", b"bytes", None, True, 3, thing, Thing, plain, {1, 2}, range(3), torch.Size([2]))
    (found,) = sluice.prefetch([given], device)
    assert found[1:] == given[1:] and found[6] is thing and found[8] is not plain  # which the loader may fill again


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed"])
def test_objects_whose_attributes_are_keys(device, schedule):
    class Record:
        def __init__(self, **values) -> None:
            self.__dict__["values"] = values

        def __getattr__(self, name):
            return self.values[name]

    batches = [(torch.full((2,), float(i)), Record(name=str(i))) for i in range(6)]
    run = sluice.pipeline(lambda x, record: (x * 2, record), schedule=schedule, device=device)
    assert [(x[0].item(), record.name) for x, record in run(batches)] == [(2.0 * i, str(i)) for i in range(6)]


def test_packed_sequences(device):
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 3), torch.zeros(4, 3)], enforce_sorted=False)
    (found,) = sluice.prefetch([packed], device)
    assert found.data.device.type == device and found.batch_sizes.device.type == "cpu"
    assert found.sorted_indices.device.type == device and found.batch_sizes.equal(packed.batch_sizes)
    torch.nn.LSTM(3, 2).to(device)(found)


def test_arrays_of_numpy(device):
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    fixed = x.copy()
    fixed.setflags(write=False)
    records = numpy.zeros(3, dtype=[("a", numpy.int8), ("b", numpy.float32)])
    arrays = [x, x[::-1], x[:, ::-1], x[::-2, ::2], x.T, x[1:, 1:], numpy.broadcast_to(x[0], (3, 4)), fixed, x.astype(">f4"),
              numpy.array(3.0), x > 3, x.astype(numpy.uint16), x.astype(numpy.float16), x + 1j, x[:0], records["b"][::-1]]
    for found, array in zip(sluice.prefetch([(a,) for a in arrays], device), arrays):
        assert isinstance(found[0], torch.Tensor) and found[0].device.type == device
        assert found[0].tolist() == array.tolist()
    passing = [numpy.array(["a", "b"]), numpy.array([None, "x"], dtype=object), numpy.array("2020-01-01", dtype="datetime64[D]"),
               records, numpy.ma.masked_array(x, x > 3), numpy.float32(3)]
    for (found,), array in zip(sluice.prefetch([(a,) for a in passing], device), passing):
        assert type(found) is type(array) and repr(found) == repr(array)


@pytest.mark.filterwarnings("ignore:.*beta state", "ignore:The PyTorch API of nested")
def test_nested_and_sparse_tensors(device):
    def forms(i: int) -> dict[str, torch.Tensor]:
        parts = [torch.full((2 + i, 3), float(i)), torch.full((4, 3), float(i))]
        dense = torch.eye(4) * i
        return {"jagged": torch.nested.nested_tensor(parts, layout=torch.jagged), "nested": torch.nested.nested_tensor(parts),
                "coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(), "plain": dense}

    for i, found in enumerate(sluice.prefetch([forms(i) for i in range(6)], device)):
        for name, tensor in forms(i).items():
            assert found[name].device.type == device and found[name].layout == tensor.layout
            assert same_bits(found[name].cpu(), tensor), name
    kept = [found["jagged"] for found in sluice.prefetch([forms(i) for i in range(6)], device)]  # in memory of its own
    assert all(same_bits(tensor.cpu(), forms(i)["jagged"]) for i, tensor in enumerate(kept))
    run = sluice.pipeline(lambda batch: batch["jagged"] * 2, lambda x: x.values().sum(), device=device)
    assert [r.item() for r in run([forms(i) for i in range(6)])] == [2.0 * i * 3 * (6 + i) for i in range(6)]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
@pytest.mark.parametrize("schedule", ["graphed", "automatic"])
def test_nested_tensors_among_graphs(device, schedule):
    """They are of no fixed size: stages that get them, or pass them on, run eagerly."""
    def forms(i: int) -> list[torch.Tensor]:
        parts = [torch.full((2 + i % 3, 3), float(i)), torch.full((4, 3), float(i))]
        return [torch.nested.nested_tensor(parts), torch.nested.nested_tensor(parts, layout=torch.jagged), parts[0].to_sparse()]

    run = sluice.pipeline(lambda nested, jagged, sparse: (nested * 2, jagged + 1, sparse * 3),
                          lambda nested, jagged, sparse: (nested[1] + 1, jagged.values() * 2, sparse.to_dense()), schedule=schedule,
                          device=GraphingDevice() if device == "cpu" else device)
    for i, (nested, jagged, sparse) in enumerate(run([forms(i) for i in range(60)])):
        assert nested.shape == (4, 3) and bool((nested == 2 * i + 1).all()) and bool((jagged == 2 * (i + 1)).all())
        assert bool((sparse == 3 * i).all())


def test_signatures_tell_batches_apart():
    x = torch.zeros(2)
    trees = [x, (x,), [x], ((x,),), {"plus": x}, {"minus": x}, {1: x}, Named(x, "a"), Batch(x, "a"), Encoding({"plus": x}),
             (x, 1), (x, True), (x, 1.0), (x, "1"), (x, None), (1, x), x[:1], x.view(torch.int32), x[None]]
    assert len({signature_of(tree) for tree in trees}) == len(trees)
    assert signature_of({"plus": x}) == signature_of({"plus": x.detach()})


class TestInferenceMode:
    def test_around_a_loop(self, device):
        ahead = sluice.prefetch([torch.full((2,), float(i)) for i in range(6)], device)
        with torch.inference_mode():
            assert [x.sum().item() for x in ahead] == [2.0 * i for i in range(6)]
            made = [torch.full((2,), float(i)) for i in range(6)]  # tensors that have no version
            assert [x.sum().item() for x in sluice.prefetch(made, device)] == [2.0 * i for i in range(6)]
            run = sluice.pipeline(lambda x: x + 1, lambda x: x.sum(), device=device)
            assert [x.item() for x in run(made)] == [2.0 * i + 2 for i in range(6)]
        assert [x[0].item() for x in sluice.prefetch(made, device)] == list(range(6))

    def test_before_a_training(self, device):
        layer = torch.nn.Linear(2, 1).to(device)
        ahead = sluice.prefetch([torch.ones(3, 2)] * 4, device)
        with torch.inference_mode():
            for x in ahead:
                layer(x)
        for x in ahead:
            layer(x).sum().backward()
        assert layer.weight.grad.tolist() == [[12.0, 12.0]]


def test_a_device_by_its_number():
    if torch.cuda.is_available():
        (x,) = sluice.prefetch([torch.ones(1)], device=0)
        assert x.device == torch.device("cuda", 0)
    else:
        with pytest.raises(ValueError, match="the device is 'cuda:0', and PyTorch finds no CUDA device"):
            sluice.prefetch([], device=0)


@dataclasses.dataclass
class Counted:
    count: int
    more: list


FILLED = {"dictionary": (lambda: {"n": 0}, lambda held, i: held.update(n=i)), "list": (lambda: [0], lambda held, i: held.__setitem__(0, i)),
          "ordered": (lambda: collections.OrderedDict(n=0), lambda held, i: held.update(n=i)),
          "of a program's class": (lambda: Encoding({"n": 0}), lambda held, i: held.update(n=i)),
          "nested": (lambda: ("a", {"b": [0]}), lambda held, i: held[1]["b"].__setitem__(0, i)),
          "dataclass": (lambda: Counted(0, [0]), lambda held, i: (setattr(held, "count", i), held.more.append(i))),
          "set": (set, lambda held, i: held.add(i)), "bytes": (lambda: bytearray(9), lambda held, i: held.__setitem__(0, i)),
          "deque": (collections.deque, lambda held, i: held.append(i)),
          "strings": (lambda: pytest.importorskip("numpy").array(["0"]), lambda held, i: held.__setitem__(0, str(i)))}


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("how", ["prefetch", "serial", "overlapped", "graphed", "automatic", "verify"])
def test_containers_without_tensors_that_a_loader_fills_again(device, how, name):
    make, fill = FILLED[name]

    def loader():
        held = make()
        for i in range(9):
            fill(held, i)
            yield torch.tensor(i), held

    expected = [repr(held) for _, held in loader()]
    if how == "prefetch":
        found = [repr(held) for _, held in sluice.prefetch(loader(), device)]
    else:
        run = sluice.pipeline(lambda x, held: (x + 1, held), lambda x, held: (x, held), schedule="overlapped" if how == "verify" else how,
                              device=device, verify=how == "verify")
        found = [repr(held) for _, held in run(loader())]
    assert found == expected


def test_a_class_that_refuses_to_be_filled_passes(device):
    class Fixed(collections.UserDict):
        def __setitem__(self, key, value):
            if hasattr(self, "is_fixed"):
                raise TypeError("fixed")
            super().__setitem__(key, value)

    fixed = Fixed({"a": 1})
    fixed.is_fixed = True
    (found,) = sluice.prefetch([(torch.zeros(1), fixed)], device)
    assert found[1] is fixed
