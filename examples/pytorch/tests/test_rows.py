"""Row operations beside the same on each row by itself."""

import pytest
import torch
from conftest import Rows

import sluice

REALS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
TYPES = REALS + [torch.int32, torch.int64]


def values_for(rows: Rows, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    device = rows.offsets.device
    if dtype.is_floating_point:
        return torch.randn(rows.size, device=device).to(dtype)
    return torch.randint(-9, 9, (rows.size,), device=device, dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_sum(rows, dtype):
    values = values_for(rows, dtype)
    expected = torch.stack([row.sum(dtype=dtype) for row in rows.of(values)])
    found = sluice.row_sum(values, rows.offsets)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_max(rows, dtype):
    values = values_for(rows, dtype)
    greatest, positions = sluice.row_max(values, rows.offsets)
    least = -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min
    assert greatest.tolist() == [row.max().item() if len(row) else least for row in rows.of(values)]
    assert positions.tolist() == [row.argmax().item() if len(row) else -1 for row in rows.of(values)]


@pytest.mark.parametrize("dtype", TYPES)
def test_min(rows, dtype):
    values = values_for(rows, dtype)
    if not dtype.is_floating_point:
        values[5] = torch.iinfo(dtype).min
    least, positions = sluice.row_min(values, rows.offsets)
    most = float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max
    assert least.dtype == dtype and least.tolist() == [row.min().item() if len(row) else most for row in rows.of(values)]
    assert positions.tolist() == [row.argmin().item() if len(row) else -1 for row in rows.of(values)]


@pytest.mark.parametrize("dtype", REALS)
def test_mean(rows, dtype):
    values = values_for(rows, dtype)
    found = sluice.row_mean(values, rows.offsets)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.stack([row.mean() if len(row) else row.sum() for row in rows.of(values)]))


@pytest.mark.parametrize("dtype", REALS)
def test_log_softmax(rows, dtype):
    values = values_for(rows, dtype) * 30
    found = sluice.row_log_softmax(values, rows.offsets)
    assert found.dtype == dtype and (found[rows.count:] == 0).all()
    torch.testing.assert_close(found[:rows.count], torch.cat([row.double().log_softmax(0) for row in rows.of(values)]).to(dtype))
    values[:3] = -float("inf")
    assert sluice.row_log_softmax(values, rows.offsets)[:3].isnan().all()  # as PyTorch's
    values[1] = float("inf")
    assert sluice.row_log_softmax(values, rows.offsets)[:3].isnan().all()


OPERATIONS = {
    "sum": (sluice.row_sum, lambda row: row.sum(0)), "mean": (sluice.row_mean, lambda row: row.mean(0)),
    "max": (lambda *a: sluice.row_max(*a)[0], lambda row: row.max(0).values),
    "min": (lambda *a: sluice.row_min(*a)[0], lambda row: row.min(0).values),
    "softmax": (sluice.row_softmax, lambda row: row.softmax(0)),
    "log_softmax": (sluice.row_log_softmax, lambda row: row.log_softmax(0)),
    "sort": (lambda *a: sluice.row_sort(*a)[0], lambda row: row.sort(dim=0, stable=True).values),
    "positions": (lambda *a: sluice.row_sort(*a)[1], lambda row: row.sort(dim=0, stable=True).indices),
    "greatest": (lambda *a: sluice.row_max(*a)[1], lambda row: row.max(0).indices),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("columns", [(1,), (3,), (2, 3), (0,)])
def test_several_columns(device, name, columns):
    rows = Rows([3, 1, 40, 7, 2], device, behind=5)
    ours, plain = OPERATIONS[name]
    values = torch.randn(rows.size, *columns, dtype=torch.float64, device=device, requires_grad=True)
    found = ours(values, rows.offsets)
    parts = [plain(row) for row in rows.of(values)]
    by_row = found.shape[0] == 5
    expected = torch.stack(parts) if by_row else torch.cat(parts)
    torch.testing.assert_close(found if by_row else found[:rows.count], expected)
    assert by_row or (found[rows.count:] == 0).all()
    if found.requires_grad and values.numel() > 0:
        weights = torch.randn_like(expected)
        given = weights if by_row else torch.cat([weights, weights.new_ones(5, *columns)])
        torch.testing.assert_close(torch.autograd.grad(found, values, given), torch.autograd.grad(expected, values, weights))


def test_expand_of_several_columns(device):
    rows = Rows([3, 0, 4], device, behind=2)
    of_rows = torch.randn(3, 2, 3, device=device)
    found = sluice.row_expand(of_rows, rows.offsets, rows.size)
    expected = of_rows.repeat_interleave(torch.tensor([3, 0, 4], device=device), 0)
    assert found[:7].equal(expected) and (found[7:] == 0).all() and found.shape == (9, 2, 3)


def test_nested_rows_of_several_columns(device):
    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged, device=device)
    expected = torch.stack([row.mean(0) for row in nested.unbind()])
    torch.testing.assert_close(sluice.row_mean(nested), expected)
    for found, row in zip(sluice.row_log_softmax(nested).unbind(), nested.unbind()):
        torch.testing.assert_close(found, row.log_softmax(0))


@pytest.mark.parametrize("kind", [torch.int32, torch.int16, list, tuple])
def test_offsets_of_other_kinds(device, kind):
    rows = Rows([3, 0, 4], device)
    given = rows.offsets.to(kind) if isinstance(kind, torch.dtype) else kind(rows.offsets.tolist())
    values = values_for(rows)
    for name, (ours, _) in OPERATIONS.items():
        torch.testing.assert_close(ours(values, given), ours(values, rows.offsets), equal_nan=True)
    assert sluice.row_expand(values[:3], given, 7).equal(sluice.row_expand(values[:3], rows.offsets, 7))
    boxes = torch.rand(7, 4, device=device)
    assert sluice.giou_loss(boxes, boxes, given).equal(sluice.giou_loss(boxes, boxes, rows.offsets))


def test_derivatives_forward(device):
    rows = Rows([3, 0, 1, 4], device, behind=2)
    values = values_for(rows)
    along = torch.randn_like(values)
    full = rows.offsets.diff() > 0
    of_rows, beside = (torch.randn(4, dtype=torch.float64, device=device) for _ in range(2))
    cases = [(lambda v: sluice.row_sum(v, rows.offsets), values, along),
             (lambda v: sluice.row_mean(v, rows.offsets), values, along),
             (lambda v: sluice.row_max(v, rows.offsets)[0][full], values, along),
             (lambda v: sluice.row_min(v, rows.offsets)[0][full], values, along),
             (lambda v: sluice.row_softmax(v, rows.offsets), values, along),
             (lambda v: sluice.row_log_softmax(v, rows.offsets), values, along),
             (lambda v: sluice.row_sort(v, rows.offsets, True)[0], values, along),
             (lambda r: sluice.row_expand(r, rows.offsets, rows.size), of_rows, beside)]
    for function, at, tangent in cases:
        found = torch.func.jvp(function, (at,), (tangent,))[1]
        step = 1e-6
        torch.testing.assert_close(found, (function(at + step * tangent) - function(at - step * tangent)) / (2 * step),
                                   rtol=1e-5, atol=1e-7)
        assert found.abs().max() > 0
        torch.autograd.gradcheck(function, at.clone().requires_grad_(), check_forward_ad=True)
        backward = torch.func.vjp(function, at)[1](torch.ones_like(found))[0]
        torch.testing.assert_close((backward * tangent).sum(), found.sum())


SQUARES = {
    "sum": lambda x, o: sluice.row_sum(x * x, o), "mean": lambda x, o: sluice.row_mean(x * x, o),
    "max": lambda x, o: sluice.row_max(x * x, o)[0], "softmax": sluice.row_softmax, "log_softmax": sluice.row_log_softmax,
    "sort": lambda x, o: sluice.row_sort(x * x, o)[0] * torch.arange(5, device=x.device),
    "expand": lambda x, o: sluice.row_expand(x[:2] ** 2, o, 5),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", SQUARES)
def test_second_derivatives(device, name):
    offsets = torch.tensor([0, 2, 5], device=device)
    at, along = (torch.randn(5, dtype=torch.float64, device=device) for _ in range(2))
    first, func, step = torch.func.grad(lambda x: SQUARES[name](x, offsets).square().sum()), torch.func, 1e-5

    def work(x: torch.Tensor) -> torch.Tensor:
        return SQUARES[name](x, offsets).square().sum()

    expected = (first(at + step * along) - first(at - step * along)) / (2 * step)
    found = [func.jvp(first, (at,), (along,))[1], torch.autograd.functional.hvp(work, at, along)[1],
             func.grad(lambda x: func.jvp(work, (x,), (along,))[1])(at), func.grad(lambda x: (first(x) * along).sum())(at),
             func.hessian(work)(at) @ along]
    for one in found:
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-6)
    if name in ("max", "softmax", "sort"):
        with pytest.raises(RuntimeError, match="a derivative forward of one forward was asked for"):
            func.jvp(lambda x: func.jvp(work, (x,), (along,))[1], (at,), (along,))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", SQUARES)
def test_vmap(device, name):
    offsets = torch.tensor([0, 2, 5], device=device)
    several = torch.randn(4, 5, dtype=torch.float64, device=device)
    found = torch.func.vmap(lambda x: SQUARES[name](x, offsets))(several)
    torch.testing.assert_close(found, torch.stack([SQUARES[name](x, offsets) for x in several]))
    jacobians = [of(lambda x: SQUARES[name](x, offsets))(several[0]) for of in (torch.func.jacfwd, torch.func.jacrev)]
    torch.testing.assert_close(*jacobians)


@pytest.mark.parametrize("dtype", REALS)
def test_softmax(rows, dtype):
    values = values_for(rows, dtype)
    found = sluice.row_softmax(values, rows.offsets)
    assert found.dtype == dtype and (found[rows.count:] == 0).all()
    torch.testing.assert_close(found[:rows.count], torch.cat([row.softmax(0) for row in rows.of(values)]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(rows, dtype, descending):
    values = values_for(rows, dtype)
    ordered, positions = sluice.row_sort(values, rows.offsets, descending)
    expected = [row.sort(stable=True, descending=descending) for row in rows.of(values)]
    assert ordered[:rows.count].equal(torch.cat([row.values for row in expected]))
    assert positions[:rows.count].equal(torch.cat([row.indices for row in expected]))


def test_long_rows(device):
    rows = Rows([20_000, 3, 0, 5_000], device)
    values = values_for(rows, torch.float32)
    torch.testing.assert_close(sluice.row_sum(values, rows.offsets), torch.stack([row.sum() for row in rows.of(values)]),
                               rtol=1e-4, atol=1e-3)
    ordered, _ = sluice.row_sort(values, rows.offsets)
    assert ordered.equal(torch.cat([row.sort().values for row in rows.of(values)]))


@pytest.mark.parametrize("lengths", [[5000, 0, 2048, 2049, 7], [1] * 3000, [3, 0, 1] * 2000, [127] * 600 + [9000], [2048] * 9,
                                     [3_000_000, 5, 0], [2_500_000, 3, 2_500_000]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_rows_of_any_length(device, lengths, dtype):
    rows = Rows(lengths, device, behind=3)
    values = torch.randint(-3, 4, (rows.size,), device=device).to(dtype)  # sums are exact, and many values are equal
    parts = rows.of(values)
    assert sluice.row_sum(values, rows.offsets).tolist() == [row.sum().item() for row in parts]
    for name, kept in (("max", values), ("nan", values.clone())):
        if name == "nan":
            if not dtype.is_floating_point or rows.count < 4000:
                continue
            kept[[rows.count // 2, rows.count // 2 + 1]] = float("nan")
        greatest, positions = sluice.row_max(kept, rows.offsets)
        for i, row in enumerate(rows.of(kept)):
            if i % 50 and len(lengths) > 1000:
                continue
            assert positions[i].item() == (row.argmax().item() if len(row) else -1)
            if len(row):
                torch.testing.assert_close(greatest[i], row.max(), equal_nan=True)


def test_nested_tensors(rows):
    values = values_for(rows)[:rows.count].requires_grad_()
    nested = torch.nested.nested_tensor_from_jagged(values, rows.offsets)
    assert sluice.row_sum(nested).equal(sluice.row_sum(values, rows.offsets))
    shares = sluice.row_softmax(nested)
    assert shares.is_nested and shares.values().equal(sluice.row_softmax(values, rows.offsets))
    ordered, positions = sluice.row_sort(nested, descending=True)
    assert ordered.is_nested and positions.is_nested
    sluice.row_max(nested)[0][rows.offsets.diff() > 0].sum().backward()
    assert values.grad.sum() == (rows.offsets.diff() > 0).sum()


def test_gradcheck(rows):
    values = values_for(rows).requires_grad_()
    of_rows = torch.randn(len(rows.lengths), dtype=torch.float64, device=values.device, requires_grad=True)
    full = rows.offsets.diff() > 0
    torch.autograd.gradcheck(lambda v: sluice.row_sum(v, rows.offsets), values)
    torch.autograd.gradcheck(lambda v: sluice.row_max(v, rows.offsets)[0][full], values)
    torch.autograd.gradcheck(lambda v: sluice.row_softmax(v, rows.offsets), values)
    torch.autograd.gradcheck(lambda v: sluice.row_log_softmax(v, rows.offsets), values)
    torch.autograd.gradgradcheck(lambda v: sluice.row_log_softmax(v, rows.offsets), values)
    torch.autograd.gradcheck(lambda v: sluice.row_sort(v, rows.offsets)[0], values)
    torch.autograd.gradcheck(lambda r: sluice.row_expand(r, rows.offsets, rows.size), of_rows)
    torch.autograd.gradgradcheck(lambda v: sluice.row_softmax(v, rows.offsets), values)


def test_opcheck(device):
    rows = Rows([2, 0, 3], device, behind=1)
    values = values_for(rows).requires_grad_()
    of_rows = torch.randn(3, dtype=torch.float64, device=device, requires_grad=True)
    plain, ops = values.detach(), torch.ops.sluice
    for op in (ops.row_sum, ops.row_max, ops.row_softmax, ops.row_sort):
        torch.library.opcheck(op.default, (values, rows.offsets))
    torch.library.opcheck(ops.row_expand.default, (of_rows, rows.offsets, rows.size))
    ordered, positions = ops.row_sort(plain, rows.offsets)
    torch.library.opcheck(ops.row_unsort.default, (ordered, positions, rows.offsets))
    assert ops.row_unsort(ordered, positions, rows.offsets)[:rows.count].equal(plain[:rows.count])
    greatest, positions = ops.row_max(plain, rows.offsets)
    torch.library.opcheck(ops.row_place.default, (greatest, positions, rows.offsets, rows.size))


def test_compiled_without_a_graph_break(rows):
    values = values_for(rows).float().requires_grad_()

    def work(v: torch.Tensor) -> torch.Tensor:
        columns = torch.stack([v, sluice.row_log_softmax(v, rows.offsets)], 1)
        shares = sluice.row_softmax(v, rows.offsets)
        return sluice.row_sum(shares * v, rows.offsets).sum() + sluice.row_mean(columns, rows.offsets).sum()

    compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(values), values), torch.autograd.grad(work(values), values))


def test_autocast_computes_in_float32(rows):
    values = values_for(rows, torch.bfloat16)
    with torch.autocast(values.device.type, torch.bfloat16):
        assert sluice.row_sum(values, rows.offsets).dtype == torch.float32
        assert torch.ops.sluice.row_softmax(values, rows.offsets).dtype == torch.float32
        assert sluice.row_max(values, rows.offsets)[0].dtype == torch.bfloat16


def test_no_rows_and_no_values(device):
    for lengths in ([], [0, 0]):
        rows = Rows(lengths, device)
        none = torch.zeros(0, device=device)
        assert sluice.row_sum(none, rows.offsets).tolist() == [0.0] * len(lengths)
        assert sluice.row_max(none, rows.offsets)[1].tolist() == [-1] * len(lengths)
        assert sluice.row_softmax(none, rows.offsets).shape == sluice.row_sort(none, rows.offsets)[0].shape == (0,)


def wrong_arguments():
    values, offsets = torch.randn(5), torch.tensor([0, 2, 5])
    strided = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)])
    return {
        "values is of int8, expected float32, float64, int32 or int64": lambda: sluice.row_sum(values.char(), offsets),
        "values is of int64, expected float32 or float64": lambda: sluice.row_softmax(values.long(), offsets),
        "values has shape [1, 5], expected one dimension": lambda: torch.ops.sluice.row_max(values[None], offsets),
        "offsets ends at 5, expected at most 1": lambda: torch.ops.sluice.row_max(values[:1], offsets),
        "values is of int64, expected a floating-point type": lambda: sluice.row_mean(values.long(), offsets),
        "row_log_softmax: values is of int32, expected a floating": lambda: sluice.row_log_softmax(values.int(), offsets),
        "offsets is of float32, expected integers": lambda: sluice.row_sum(values, offsets.float()),
        "offsets begins with 2, expected 0": lambda: sluice.row_sort(values, offsets[1:]),
        "offsets ends at 5, expected at most 4": lambda: sluice.row_sum(values[:4], offsets),
        "of_rows has shape [5], expected [2]": lambda: sluice.row_expand(values, offsets, 5),
        "size is -1, expected 0 or more": lambda: torch.ops.sluice.row_expand(values[:2], offsets, -1),
        "expected torch.jagged": lambda: sluice.row_sum(strided),
        "there are no offsets": lambda: sluice.row_sum(values),
        "sluice.row_min: values is of complex64, expected a floating-point": lambda: sluice.row_min(values.cfloat(), offsets),
        "sluice.row_sum: values is a list, expected a tensor": lambda: sluice.row_sum([1.0, 2.0], offsets),
        "row_max: offsets is [0, 'a'], expected a tensor or a list of integers": lambda: sluice.row_max(values, [0, "a"]),
        "row_expand: of_rows is a float, expected a tensor": lambda: sluice.row_expand(1.0, offsets, 5),
    }


@pytest.mark.parametrize("sentence", wrong_arguments())
def test_wrong_arguments(sentence):
    with pytest.raises(RuntimeError) as error:
        wrong_arguments()[sentence]()
    assert sentence in str(error.value) and "\n" not in str(error.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_offsets_that_make_no_sense_on_a_device():
    values = torch.randn(5, device="cuda")
    for wrong, rows in (([0, 3, 2], [1]), ([0, 2, 1 << 40], [1]), ([2, 2, 5], [0]), ([0, -1, 5], [0, 1]), ([0, 9, 5], [0, 1])):
        offsets = torch.tensor(wrong, device="cuda")
        for found in (sluice.row_sum(values, offsets), sluice.row_max(values, offsets)[0]):
            assert found[rows].isnan().all()
            for row in {0, 1} - set(rows):  # which makes sense
                assert not found[row].isnan()
        assert sluice.row_max(values, offsets)[1][rows].eq(-1).all()
        assert sluice.row_softmax(values, offsets).isnan().all() and sluice.row_sort(values, offsets)[0].isnan().all()
    torch.cuda.synchronize()
