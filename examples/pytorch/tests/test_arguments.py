"""Wrong arguments of the operators' functions: one sentence that names the function which was called."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import sluice


def fake(tensor):
    return FakeTensorMode().from_tensor(tensor)


VALUES, OFFSETS = torch.rand(10), torch.tensor([0, 3, 3, 10])
BY_ROW = {"row_sum": sluice.row_sum, "row_mean": sluice.row_mean, "row_max": sluice.row_max, "row_min": sluice.row_min,
          "row_softmax": sluice.row_softmax, "row_log_softmax": sluice.row_log_softmax, "row_sort": sluice.row_sort}
WRONG = {  # values, offsets, and what is said of them
    "decreasing": (VALUES, [0, 5, 3, 10], "offsets decreases from 5 to 3 at row 1"),
    "beyond": (VALUES, [0, 3, 11], "offsets ends at 11, expected at most 10"),
    "beyond, of columns": (torch.rand(10, 2), [0, 3, 11], "offsets ends at 11, expected at most 10"),
    "none, of columns": (torch.rand(10, 2), [], "offsets has shape [0]"),
    "of a scalar": (torch.tensor(1.0), OFFSETS, "values has shape []"),
    "fractions": (VALUES, [0.0, 3.7], "offsets is [0.0, 3.7], expected a tensor or a list of integers"),
    "truths": (VALUES, [False, True], "offsets is [False, True], expected a tensor or a list of integers"),
    "elsewhere": (VALUES, OFFSETS.to("meta"), "offsets is on device meta, expected it on the CPU, where values is"),
    "values elsewhere": (VALUES.to("meta"), OFFSETS, "offsets is on the CPU, expected it on device meta, where values is"),
    "sparse": (VALUES.to_sparse(), OFFSETS, "values is of layout torch.sparse_coo, expected a dense tensor"),
    "sparse offsets": (VALUES, OFFSETS.to_sparse(), "offsets is of layout torch.sparse_coo, expected a dense tensor"),
    "offsets of truths": (VALUES, OFFSETS.bool(), "offsets is of bool, expected integers"),
    "offsets of truths, of columns": (torch.rand(10, 2), OFFSETS.bool(), "offsets is of bool, expected integers"),
    "complex offsets, of columns": (torch.rand(10, 2), OFFSETS.to(torch.complex64), "offsets is of complex64, expected integers"),
    "nested, with another uneven dimension": (
        torch.nested.nested_tensor([torch.rand(2, 9), torch.rand(3, 9)], layout=torch.jagged).transpose(1, 2), None,
        "dimension 2 of the nested tensor is the uneven one, expected dimension 1: transpose(1, 2)"),
    "bits": (torch.zeros(10, dtype=torch.uint8).view(torch.bits8), OFFSETS, "values is of bits8, expected numbers"),
    "not all fake": (fake(VALUES), OFFSETS, "offsets is not fake, expected a FakeTensor, as values is one"),
    "with fake offsets": (torch.rand(10, 2), fake(OFFSETS), "values is not fake, expected a FakeTensor, as offsets is one"),
    "nested offsets": (VALUES, torch.nested.nested_tensor([OFFSETS], layout=torch.jagged), "offsets is a nested tensor"),
}
BOXES = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(10, 4)
PADDED, MASK = BOXES[:8].view(2, 4, 4), torch.ones(2, 4, dtype=torch.bool)
IMAGES, IDS = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), sluice.sample_ids(torch.arange(2))


def nested(tensor):
    return torch.nested.nested_tensor(list(tensor), layout=torch.jagged)


def augment(**options):
    return lambda: sluice.augment(IMAGES, IDS, **{"crop": (4, 4), "size": (4, 4), **options})


SENTENCES = {
    "sluice.row_expand: size is 10.0, expected an integer": lambda: sluice.row_expand(VALUES[:3], OFFSETS, 10.0),
    "sluice.row_expand: size is -1, expected 0 or more": lambda: sluice.row_expand(torch.rand(3, 2), OFFSETS, -1),
    "sluice.row_expand: offsets ends at 10, expected at most 5": lambda: sluice.row_expand(torch.rand(3, 2), OFFSETS, 5),
    "sluice.row_expand: of_rows is a nested tensor": lambda: sluice.row_expand(
        torch.nested.nested_tensor([VALUES], layout=torch.jagged), OFFSETS, 10),
    "sluice.sample_ids: epoch has shape [2], expected one, or one for each of 1 sample": lambda: sluice.sample_ids(
        torch.arange(1), torch.arange(2)),
    "sluice.row_expand: of_rows is of class MaskedTensor, expected a dense tensor": lambda: sluice.row_expand(
        torch.masked.masked_tensor(VALUES[:3], VALUES[:3] > 0), OFFSETS, 10),
    "sluice.row_sum: offsets is of class MaskedTensor, expected a dense tensor": lambda: sluice.row_sum(
        VALUES, torch.masked.masked_tensor(OFFSETS, OFFSETS > 0)),
    "sluice.giou_loss: predictions is of class UninitializedParameter, expected a dense": lambda: sluice.giou_loss(
        torch.nn.UninitializedParameter(), BOXES, OFFSETS),
    "sluice.row_sum: values is of complex64, expected float32": lambda: sluice.row_sum(VALUES.to(torch.complex64), OFFSETS),
    "sluice.row_sum: values is of float8, expected float32": lambda: sluice.row_sum(VALUES.to(torch.float8_e5m2), OFFSETS),
    "sluice.row_max: values is of uint16, expected float32": lambda: sluice.row_max(VALUES.to(torch.uint16), OFFSETS),
    "sluice.giou_loss: reduction is None, expected 'mean'": lambda: sluice.giou_loss(BOXES, BOXES, OFFSETS, reduction=None),
    "sluice.giou_loss: formula is 1, expected 'torchvision'": lambda: sluice.giou_loss(BOXES, BOXES, OFFSETS, formula=1),
    "sluice.giou_loss: targets is on device meta": lambda: sluice.giou_loss(BOXES, BOXES.to("meta"), OFFSETS),
    "sluice.giou_loss: offsets is on device meta": lambda: sluice.giou_loss(BOXES, BOXES, OFFSETS.to("meta")),
    "sluice.giou_loss: mask is on device meta": lambda: sluice.giou_loss(PADDED, PADDED, mask=MASK.to("meta")),
    "sluice.giou_loss: mask is of float32, expected bool": lambda: sluice.giou_loss(PADDED, PADDED, mask=MASK.float()),
    "sluice.giou_loss_and_gradient: mask is of float32, expected bool": lambda: sluice.giou_loss_and_gradient(
        PADDED, PADDED, mask=MASK.float()),
    "sluice.giou_loss_and_gradient: offsets ends at 11, expected at most 10": lambda: sluice.giou_loss_and_gradient(
        BOXES, BOXES, [0, 11], reduction="row_mean"),
    "sluice.giou_loss_and_gradient: scale is 'a', expected a number": lambda: sluice.giou_loss_and_gradient(
        BOXES, BOXES, OFFSETS, scale="a"),
    "sluice.giou_loss_and_gradient: scale is 1180591620717411303424, expected a number of 64 bits": lambda: sluice.giou_loss_and_gradient(
        BOXES, BOXES, OFFSETS, scale=2 ** 70),
    "sluice.giou_loss: dimension 2 of the nested tensor is the uneven one": lambda: sluice.giou_loss(
        torch.rand(4, 4), torch.nested.nested_tensor([torch.rand(2, 4), torch.rand(2, 4)], layout=torch.jagged).transpose(1, 2)),
    "sluice.augment: dtype is float64, expected float32, float16 or bfloat16": augment(dtype=torch.float64),
    "sluice.augment: deviation is 'a', expected a number, or one for each channel": augment(deviation="a"),
    "sluice.augment: std is [1.0, nan, 1.0], expected finite numbers": augment(std=[1.0, float("nan"), 1.0]),
    "sluice.augment: fill is 1180591620717411303424, expected a number of 64 bits": augment(fill=2 ** 70),
    "sluice.augment: crop is 4, expected two integers": augment(crop=4),
    "sluice.augment: size is (4,), expected two integers": augment(size=(4,)),
    "sluice.augment: sigma is (0.1, 'a'), expected two numbers": augment(sigma=(0.1, "a")),
    "sluice.augment: mean is 'x', expected a number, or one for each channel": augment(mean="x"),
    "sluice.augment: seed is 'a', expected an integer": augment(seed="a"),
    "sluice.augment: seed is 1180591620717411303424, expected one of 64 bits": augment(seed=2 ** 70),
    "sluice.augment: samples is on device meta": lambda: sluice.augment(IMAGES, IDS.to("meta"), crop=(4, 4), size=(4, 4)),
    "sluice.augment_parameters: image is 8, expected two integers": lambda: sluice.augment_parameters(IDS, 2, 8),
    "sluice.sample_ids: samples is of float32, expected integers": lambda: sluice.sample_ids(VALUES),
    "sluice.sample_ids: samples is a list, expected a tensor": lambda: sluice.sample_ids([1]),
    "sluice.sample_ids: epoch is 0.5, expected an integer": lambda: sluice.sample_ids(torch.arange(2), 0.5),
    "sluice.sample_ids: epoch is -1, expected 0 to 4294967295": lambda: sluice.sample_ids(torch.arange(2), -1),
    "sluice.sample_ids: epoch has -1, expected 0 to 4294967295": lambda: sluice.sample_ids(torch.arange(2), torch.tensor([3, -1])),
    "sluice.sample_ids: epoch has 4294967296, expected 0 to": lambda: sluice.sample_ids(torch.arange(2), torch.tensor(2 ** 32)),
    "sluice.augment: the epochs of samples has -1, expected 0 to": lambda: sluice.augment(IMAGES, torch.tensor([[0, -1]]), crop=(4, 4)),
    "sluice.augment_parameters: the epochs of samples has -1, expected 0 to": lambda: sluice.augment_parameters(
        torch.tensor([[0, -1]]), 2, (8, 8), crop=(4, 4)),
    "sluice.sample_ids: epoch is of float32, expected integers": lambda: sluice.sample_ids(torch.arange(2), torch.tensor(3.0)),
    "sluice.sample_ids: epoch has shape [3], expected one, or": lambda: sluice.sample_ids(torch.arange(2), torch.arange(3)),
    "sluice.sample_ids: epoch is on device meta": lambda: sluice.sample_ids(torch.arange(2), torch.tensor(3, device="meta")),
    "sluice.sample_ids: samples has shape [2, 2], expected [images]": lambda: sluice.sample_ids(IDS),
    "sluice.sample_ids: samples has shape [], expected [images]": lambda: sluice.sample_ids(torch.tensor(1)),
    "sluice.sample_ids: samples is of bool, expected integers": lambda: sluice.sample_ids(torch.ones(2, dtype=torch.bool)),
    "sluice.row_expand: size is 1180591620717411303424, expected one of 64 bits": lambda: sluice.row_expand(VALUES[:3], OFFSETS, 2 ** 70),
    "sluice.row_expand: size is 4611686018427387904, expected fewer than 2^63 numbers": lambda: sluice.row_expand(
        torch.rand(3, 2), OFFSETS, 2 ** 62),
    "sluice: PyTorch made no tensor of shape [4611686018427387904] and float32, expected memory for it": lambda: sluice.row_expand(
        VALUES[:3], OFFSETS, 2 ** 62),
    "sluice: PyTorch made no tensor of shape [16, 3, 1048576, 1048576] and float32, expected memory": lambda: sluice.augment(
        IMAGES[:1].expand(16, -1, -1, -1), IDS[:1], crop=(4, 4), size=(2 ** 20, 2 ** 20)),
    "sluice.row_expand: of_rows has shape [], expected [3]": lambda: sluice.row_expand(torch.tensor(1.0), OFFSETS, 10),
    "sluice.row_expand: size is tensor([10, 1]), expected an integer": lambda: sluice.row_expand(
        torch.rand(3, 2), OFFSETS, torch.tensor([10, 1])),
    "sluice.row_expand: size is tensor(10.), expected an integer": lambda: sluice.row_expand(VALUES[:3], OFFSETS, torch.tensor(10.0)),
    "sluice.row_sort: descending is 'a', expected True or False": lambda: sluice.row_sort(VALUES, OFFSETS, "a"),
    "sluice.row_sort: descending is None, expected True or False": lambda: sluice.row_sort(torch.rand(10, 2), OFFSETS, None),
    "sluice.giou_loss: mask is a nested tensor": lambda: sluice.giou_loss(PADDED, PADDED, mask=nested(MASK)),
    "sluice.giou_loss_and_gradient: mask is a nested tensor": lambda: sluice.giou_loss_and_gradient(PADDED, PADDED, mask=nested(MASK)),
    "sluice.augment: images is a nested tensor": lambda: sluice.augment(nested(IMAGES), IDS),
    "sluice.augment: dtype is 'float32', expected a torch.dtype": augment(dtype="float32"),
    "sluice.augment: crop is {1: 2, 3: 4}, expected two integers": augment(crop={1: 2, 3: 4}),
    "sluice.augment: size is (1180591620717411303424, 1), expected two integers": augment(size=(2 ** 70, 1)),
    "sluice.augment: crop is (9, 4), expected at most (8, 8), the images' height": augment(crop=(9, 4)),
    "sluice.augment: degrees is (1.000000, 0.000000), expected two finite numbers, the first": augment(degrees=(1, 0)),
    "sluice.augment: degrees is (nan, 1.000000), expected two finite numbers": augment(degrees=(float("nan"), 1)),
    "sluice.augment: sigma is (0.000000, 0.000000), expected two finite numbers above 0": augment(sigma=(0, 0)),
    "sluice.augment_parameters: sigma is (0.100000, inf), expected two finite numbers": lambda: sluice.augment_parameters(
        IDS, 2, (8, 8), crop=(4, 4), sigma=(0.1, float("inf"))),
    "sluice.augment_parameters: crop is (4, 4), expected at most (1, 1)": lambda: sluice.augment_parameters(IDS, 2, (1, 1), crop=(4, 4)),
    "sluice.augment: mean is nan, expected finite numbers": augment(mean=float("nan")),
    "sluice.augment: std is 0.0, expected numbers other than 0": augment(std=0.0),
    "sluice.augment: std is inf, expected finite numbers": augment(std=float("inf")),
    "sluice.augment: mean is b'abc', expected a number, or one for each channel": augment(mean=b"abc"),
    "sluice.augment: mean is tensor(..., device='meta', size=(3,)), expected real numbers": augment(mean=torch.rand(3, device="meta")),
    "sluice.augment: std is of layout torch.sparse_coo, expected a dense tensor": augment(std=torch.rand(3).to_sparse()),
    "sluice.augment: seed is tensor([3, 4]), expected an integer": augment(seed=torch.tensor([3, 4])),
    "sluice.augment: images is of bits8, expected numbers": lambda: sluice.augment(IMAGES.view(torch.bits8), IDS),
    "sluice.giou_loss: predictions is of bits16, expected numbers": lambda: sluice.giou_loss(BOXES.half().contiguous().view(torch.bits16),
                                                                                       BOXES, OFFSETS),
    "sluice.row_expand: of_rows is of uint1, expected numbers": lambda: sluice.row_expand(torch.empty(3, dtype=torch.uint1), OFFSETS, 10),
    "sluice.giou_loss: targets is not fake, expected a FakeTensor, as predictions is one": lambda: sluice.giou_loss(
        fake(BOXES), BOXES, OFFSETS),
    "sluice.augment: samples is not fake, expected a FakeTensor, as images is one": lambda: sluice.augment(fake(IMAGES), IDS),
}


def says(sentence, work):
    with pytest.raises(RuntimeError) as error:
        work()
    assert str(error.value).startswith(sentence) and "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", BY_ROW)
def test_wrong_rows(name, wrong):
    values, offsets, sentence = WRONG[wrong]
    says(f"sluice.{name}: {sentence}", lambda: BY_ROW[name](values, offsets))


@pytest.mark.parametrize("name", ["row_sum", "row_mean", "row_max", "row_min", "row_softmax", "row_sort"])
def test_fake_rows(name):
    found = BY_ROW[name](fake(VALUES), [0, 3, 3, 10])  # a list is of any kind
    expected = BY_ROW[name](VALUES, [0, 3, 3, 10])
    for a, b in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)]):
        assert (a.shape, a.dtype, isinstance(a, FakeTensor)) == (b.shape, b.dtype, True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sentence", SENTENCES)
def test_other_wrong_arguments(sentence):
    says(sentence, SENTENCES[sentence])


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_sample_ids_of_any_integers(kind):
    """Of 64 bits, whatever the epoch."""
    for epoch in (300, torch.tensor(300), torch.tensor([300, 300], dtype=torch.int32)):
        found = sluice.sample_ids(torch.arange(2).to(kind), epoch)
        assert found.dtype is torch.int64 and found.tolist() == [[0, 300], [1, 300]]


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.uint64, list, tuple,
                                  np.array])
def test_offsets_of_any_integers(kind):
    offsets = OFFSETS.to(kind) if isinstance(kind, torch.dtype) else kind(OFFSETS.tolist())
    for function in BY_ROW.values():
        found, expected = function(VALUES, offsets), function(VALUES, OFFSETS)
        assert all(map(torch.equal, *((each,) if isinstance(each, torch.Tensor) else each for each in (found, expected))))


def test_numbers_of_numpy():
    images = torch.randint(0, 255, (2, 3, 8, 8), dtype=torch.uint8)
    plain = {"crop": (4, 4), "size": (6, 5), "degrees": (-3, 3.5), "sigma": (0.5, 1), "fill": 3, "mean": [1, 2, 3], "std": 2, "seed": 3}
    arrays = {name: np.array(value) for name, value in plain.items()}  # numbers are of no dimension
    single = {name: [np.float32(each) if isinstance(each, float) else np.int64(each) for each in value] if isinstance(value, (tuple, list))
              else np.int16(value) for name, value in plain.items()}
    for given in (arrays, single):
        assert torch.equal(sluice.augment(images, IDS, **given), sluice.augment(images, IDS, **plain))
        some = {name: given[name] for name in ("crop", "degrees", "sigma", "seed")}
        assert torch.equal(sluice.augment_parameters(IDS, np.int32(2), np.array([8, 8]), **some),
                           sluice.augment_parameters(IDS, 2, (8, 8), **{name: plain[name] for name in some}))
    assert torch.equal(sluice.augment(images, IDS, **{**plain, "seed": torch.tensor(3)}), sluice.augment(images, IDS, **plain))
    assert sluice.sample_ids(torch.arange(2), np.int64(3)).tolist() == [[0, 3], [1, 3]]
    scaled = [sluice.giou_loss_and_gradient(BOXES, BOXES + 1, OFFSETS, scale=scale)[1] for scale in (2.0, np.float32(2), np.int64(2))]
    assert torch.equal(scaled[0], scaled[1]) and torch.equal(scaled[0], scaled[2])


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", BY_ROW)
def test_shapes_alone(name, kind):
    """On the device `meta`."""
    values = torch.rand(10, 2).to(kind)
    found, expected = BY_ROW[name](values.to("meta"), OFFSETS.to("meta")), BY_ROW[name](values, OFFSETS)
    for a, b in zip(*((each,) if isinstance(each, torch.Tensor) else each for each in (found, expected))):
        assert (a.device.type, a.shape, a.dtype) == ("meta", b.shape, b.dtype)
