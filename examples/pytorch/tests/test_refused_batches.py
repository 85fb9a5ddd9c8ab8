"""Batches and results that cannot be: one sentence that names them."""

from collections.abc import Mapping

import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES

from torch.utils import _pytree

import sluice

np = pytest.importorskip("numpy")


class Items(list):
    """With an attribute that leads back to it."""

    def __init__(self, *items):
        super().__init__(items)
        self.owner = self


def own_dict():
    batch = {"x": torch.ones(2)}
    batch["more"] = [(batch,)]
    return batch


def own_list():
    batch = [torch.ones(2)]
    batch.append(batch)
    return batch


def deep_list():
    batch = [torch.ones(2)]
    for _ in range(5000):
        batch = [batch]
    return batch


ENDLESS = {"dict": own_dict, "list": own_list, "nested lists": deep_list}
SENTENCE = r"a (dict|list|tuple) contains itself, or is nested deeper than Python's limit of calls; expected a tree of containers$"


def device_of(device):
    return GraphingDevice() if device == "cpu" else device


@pytest.mark.parametrize("kind", ENDLESS)
class TestEndless:
    @pytest.mark.parametrize("verify", [False, True])
    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_of_a_batch(self, device, kind, schedule, verify):
        run = sluice.pipeline(lambda *x: 1, schedule=schedule, device=device_of(device), verify=verify)
        with pytest.raises(ValueError, match=f"^{SENTENCE}"):
            list(run([ENDLESS[kind]()]))
        assert list(run([torch.ones(2)])) == [1]

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_of_a_result(self, device, kind, schedule):
        run = sluice.pipeline(lambda x: x + 1, lambda x: ENDLESS[kind](), schedule=schedule, device=device_of(device))
        with pytest.raises(sluice.StageError, match=f"^stage '<lambda>', batch 0: ValueError: {SENTENCE}"):
            list(run([torch.ones(2)] * 9))

    def test_elsewhere(self, device, kind):
        with pytest.raises(ValueError, match=SENTENCE):
            list(sluice.prefetch([ENDLESS[kind]()], device))
        for batch, result in ((ENDLESS[kind](), 1), (torch.ones(2), ENDLESS[kind]())):
            with pytest.raises(ValueError, match=SENTENCE):
                sluice.verify_schedules(lambda schedule: sluice.pipeline(lambda *x: result, schedule=schedule, device=device), [batch])

    def test_a_result_of_a_plain_loop_passes(self, device, kind):
        assert len(list(sluice.pipeline(lambda x: ENDLESS[kind](), schedule="serial", device=device)([torch.ones(2)] * 3))) == 3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_attribute_that_leads_back(device, schedule):
    """It is no container's."""
    run = sluice.pipeline(lambda x, y: x + y, schedule=schedule, device=device_of(device))
    assert [x[0].item() for x in run([Items(torch.full((2,), float(i)), 1) for i in range(30)])] == [i + 1.0 for i in range(30)]


def quantized(count=4):
    return torch.quantize_per_channel(torch.arange(2.0 * count).view(count, 2), torch.ones(count), torch.zeros(count, dtype=torch.long), 0,
                                      torch.quint8)


UNCOPIED = {  # by PyTorch 2.11, on the CPU too
    "a tensor of the device 'meta', which has no numbers; expected one with memory": lambda: torch.ones(2, device="meta"),
    r"a tensor quantized by torch.per_channel_affine_float_qparams, which PyTorch does not copy to '\w+'; expected a dense one, such as dequ":
        lambda: torch.quantize_per_channel(torch.ones(2), torch.ones(2), torch.zeros(2), 0, torch.qint8),
    "an UninitializedParameter, which has no numbers yet; expected it after the first call": torch.nn.UninitializedParameter,
    "an UninitializedBuffer, which has no numbers yet; expected it after the first call": torch.nn.UninitializedBuffer,
}


@pytest.mark.parametrize("kind", UNCOPIED)
class TestUncopied:
    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_of_a_batch(self, device, kind, schedule):
        run, good = sluice.pipeline(lambda x, y: x + 1, schedule=schedule, device=device_of(device)), (torch.ones(2), 1)
        for bad in ((UNCOPIED[kind](), 1), [[UNCOPIED[kind]()], 1]):
            found = []
            with pytest.raises(RuntimeError, match=f"^batch 5 has {kind}"):
                found.extend(run([good] * 5 + [bad]))
            assert len(found) == 5
        assert len(list(run([good] * 5))) == 5

    def test_elsewhere(self, device, kind):
        batches = [torch.ones(2), UNCOPIED[kind]()]
        with pytest.raises(RuntimeError, match=f"^batch 1 has {kind}"):
            list(sluice.prefetch(batches, device))
        if kind.startswith("an "):
            with pytest.raises(RuntimeError, match=f"^batch 1 has {kind}"):
                list(sluice.pipeline(lambda x: x, device=device, verify=True)(batches))
            with pytest.raises(RuntimeError, match=f"^batch 1 has {kind}"):
                sluice.verify_schedules(lambda schedule: sluice.pipeline(lambda x: x, schedule=schedule, device=device), batches)

    def test_the_error_of_a_stage_is_its_own(self, device, kind):
        def fail(x):
            raise RuntimeError("of the stage")

        with pytest.raises(sluice.StageError, match="of the stage"):
            list(sluice.pipeline(fail, device=device)([{"x": torch.ones(1)}]))


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch copies them to no GPU")
def test_what_the_cpu_copies():
    for like in (lambda i: torch.full((4,), float(i)).to_mkldnn(), lambda i: quantized(5 - i % 4),
                 lambda i: torch.quantize_per_tensor(torch.arange(4.0 + i), 0.1 * (i + 1), 0, torch.quint8)):
        expected = [like(i).dequantize().to_dense() if like(i).is_quantized else like(i).to_dense() for i in range(30)]
        data = [(like(i), torch.tensor(i)) for i in range(30)]
        loops = [sluice.pipeline(lambda x, i: (x, i), schedule=schedule, device=GraphingDevice())(data) for schedule in SCHEDULES]
        for loop in (*loops, sluice.prefetch(data, "cpu")):
            for place, (x, i) in enumerate(loop):
                assert torch.equal(x.dequantize() if x.is_quantized else x.to_dense(), expected[place]) and i == place


class Array:
    """Of another library, with numbers of a type that PyTorch has not."""

    def __dlpack__(self, **options):
        raise BufferError("no such type")

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("loop", [*SCHEDULES, "prefetch"])
def test_an_array_that_pytorch_does_not_take(device, loop):
    batches = [{"x": [Array()]}]
    with pytest.raises(RuntimeError, match="^batch 0 has an Array, which PyTorch does not take by DLPack: no such type; expected an array"):
        list(sluice.prefetch(batches, device) if loop == "prefetch" else
             sluice.pipeline(lambda x: x, schedule=loop, device=device_of(device))(batches))


class Named(Mapping):
    """Is made in a way of its own, and cannot be changed."""

    def __init__(self, **values):
        self.values_ = values

    def __getitem__(self, name):
        return self.values_[name]

    def __iter__(self):
        return iter(self.values_)

    def __len__(self):
        return len(self.values_)


class Registered(Named):
    pass


_pytree.register_pytree_node(Registered, lambda tree: (list(tree.values()), list(tree)),
                             lambda values, names: Registered(**dict(zip(names, values))))


@pytest.mark.parametrize("loop", [*SCHEDULES, "prefetch"])
def test_a_container_that_cannot_be_made_again(device, loop):
    def looped(of):
        batches = [of(x=torch.full((2,), float(i)), y=i) for i in range(30)]
        ahead = sluice.prefetch(batches, device) if loop == "prefetch" else sluice.pipeline(
            lambda batch: batch, schedule=loop, device=device_of(device))(batches)
        return [(type(batch), batch["x"][0].item(), batch["y"]) for batch in ahead]

    with pytest.raises(TypeError, match=r"^a Named cannot be made again with copies of its tensors: TypeError: .*; expected a class that is m"):
        looped(Named)
    assert looped(Registered) == [(Registered, float(i), i) for i in range(30)]


def test_a_device_by_a_number_of_numpy():
    if torch.cuda.is_available():
        assert sluice.prefetch([], np.int64(0)).device.device == torch.device("cuda", 0)
        return
    with pytest.raises(ValueError, match="^sluice: the device is 'cuda:0', and PyTorch finds no CUDA device; expected 'cpu'$"):
        sluice.prefetch([], np.int64(0))
