"""The GIoU loss beside the same formulas in plain PyTorch."""

import pytest
import torch

import sluice

REDUCTIONS = ["mean", "sum", "row_mean", "row_sum"]


def article(p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    low, high = torch.maximum(p[..., :2], t[..., :2]), torch.minimum(p[..., 2:], t[..., 2:])
    shared = (high - low).prod(-1)
    union = (p[..., 2:] - p[..., :2]).prod(-1) + (t[..., 2:] - t[..., :2]).prod(-1) - shared
    around = (torch.maximum(p[..., 2:], t[..., 2:]) - torch.minimum(p[..., :2], t[..., :2])).prod(-1).clamp(min=1e-5)
    return shared / union.clamp(min=1e-5) - (around - union) / around


def torchvision(p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    extent = torch.minimum(p[..., 2:], t[..., 2:]) - torch.maximum(p[..., :2], t[..., :2])
    shared = torch.where((extent > 0).all(-1), extent.prod(-1), 0.0)
    union = (p[..., 2:] - p[..., :2]).prod(-1) + (t[..., 2:] - t[..., :2]).prod(-1) - shared
    around = (torch.maximum(p[..., 2:], t[..., 2:]) - torch.minimum(p[..., :2], t[..., :2])).prod(-1)
    return 1 - (shared / (union + 1e-7) - (around - union) / (around + 1e-7))


FORMULAS = {"article": article, "torchvision": torchvision}


def boxes(*shape: int, device: str) -> torch.Tensor:
    corner = torch.randint(0, 200, (*shape, 2), device=device)
    return torch.cat([corner, corner + torch.randint(1, 55, (*shape, 2), device=device)], -1)


def reduced(values: torch.Tensor, lengths: list[int], reduction: str) -> torch.Tensor:
    if not reduction.startswith("row"):
        return values.sum() / (max(len(values), 1) if reduction == "mean" else 1)
    sums = torch.stack([row.sum() for row in values.split(lengths)])
    counts = torch.tensor(lengths, device=values.device).clamp(min=1)
    return sums / counts if reduction == "row_mean" else sums


class Sample:
    """Padded predictions and targets, with the same targets as ragged ones."""

    def __init__(self, device: str, lengths: tuple[int, ...] = (3, 0, 8, 1, 5), width: int = 8) -> None:
        self.lengths = list(lengths)
        noise = torch.rand(len(lengths), width, 4, device=device)
        self.predictions = boxes(len(lengths), width, device=device).double() + noise
        self.mask = torch.arange(width, device=device) < torch.tensor(lengths, device=device)[:, None]
        self.padded = boxes(len(lengths), width, device=device)
        self.targets = self.padded[self.mask]
        self.offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device=device)


def test_a_loss_falls_to_zero_at_the_target(device):
    target = torch.tensor([[10.0, 10.0, 30.0, 40.0]], device=device)
    offsets = torch.tensor([0, 1], device=device)
    assert sluice.giou_loss(target, target, offsets).item() == pytest.approx(0, abs=1e-6)
    assert sluice.giou_loss_and_gradient(target, target, offsets)[0].item() == pytest.approx(0, abs=1e-6)
    assert sluice.giou_loss(target, target, offsets, formula="article").item() == 1  # the published score
    box = torch.tensor([[5.0, 14.0, 26.0, 44.0]], device=device, requires_grad=True)
    optimizer = torch.optim.SGD([box], lr=5.0)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        losses.append(sluice.giou_loss(box, target, offsets))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.1 < 0.5 < losses[0] and (box - target).abs().max() < 2


def test_the_defaults_of_the_operators_are_the_functions(device):
    sample = Sample(device)
    p, t, o, ops = sample.predictions, sample.targets, sample.offsets, torch.ops.sluice
    expected = torchvision(p[sample.mask], t.double()).mean()
    for found in (ops.giou_loss(p, t, o)[0], ops.giou_loss_masked(p, sample.padded, sample.mask)[0],
                  ops.giou_loss_and_gradient(p, t, o)[0], sluice.giou_loss(p, t, o)):
        torch.testing.assert_close(found, expected)


def test_nested_predictions_of_other_rows_than_the_targets(device):
    def nested(*offsets: int) -> torch.Tensor:
        return torch.nested.nested_tensor_from_jagged(torch.rand(3, 4, device=device), torch.tensor(offsets, device=device))

    assert not sluice.giou_loss(nested(0, 2, 3), nested(0, 2, 3)).isnan()
    if device == "cuda":  # to read them would stop the stream
        assert sluice.giou_loss(nested(0, 2, 3), nested(0, 1, 3)).isnan()
    else:
        with pytest.raises(RuntimeError, match="predictions has 2 boxes in row 0, expected 1, as targets has"):
            sluice.giou_loss(nested(0, 2, 3), nested(0, 1, 3))
    with pytest.raises(RuntimeError, match="predictions has 1 row, expected 2, as targets has"):
        sluice.giou_loss(nested(0, 3), nested(0, 1, 3))


def gradient_of(loss: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    weights = torch.arange(1.0, loss.numel() + 1, device=loss.device, dtype=loss.dtype).view(loss.shape)
    return torch.autograd.grad((loss * weights).sum(), leaf)[0]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("form", ["offsets", "mask", "ragged", "nested"])
def test_value_and_gradient_of_every_form(device, formula, reduction, form):
    sample = Sample(device)
    leaf = sample.predictions.clone().requires_grad_()
    expected = reduced(FORMULAS[formula](leaf[sample.mask], sample.targets.double()), sample.lengths, reduction)
    options = {"formula": formula, "reduction": reduction}
    if form == "offsets":
        loss = sluice.giou_loss(leaf, sample.targets, sample.offsets, **options)
    elif form == "mask":
        loss = sluice.giou_loss(leaf, sample.padded, mask=sample.mask, **options)
    elif form == "ragged":
        loss = sluice.giou_loss(leaf[sample.mask], sample.targets, sample.offsets, **options)
    else:
        predictions = torch.nested.nested_tensor_from_jagged(leaf[sample.mask], sample.offsets)
        targets = torch.nested.nested_tensor_from_jagged(sample.targets, sample.offsets)
        loss = sluice.giou_loss(predictions, targets, **options)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient_of(loss, leaf), gradient_of(expected, leaf))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("targets", [torch.uint8, torch.int32, torch.int64, torch.float32, torch.bfloat16])
def test_types(device, dtype, targets):
    sample = Sample(device)
    leaf = sample.predictions.to(dtype).requires_grad_()
    # In float64: in float32 a GPU's fused products alone make the formula's differences 6e-6 off.
    expected = article(leaf[sample.mask].double(), sample.targets.to(targets).double()).mean()
    loss = sluice.giou_loss(leaf, sample.targets.to(targets), sample.offsets, formula="article")
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected.float())
    (found,), (wanted,) = torch.autograd.grad(loss, leaf), torch.autograd.grad(expected, leaf)
    assert found.dtype == dtype
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradcheck(device, formula, reduction):
    sample = Sample(device, (2, 0, 3), 3)
    moved = torch.tensor([-0.3, 0.4, 0.2, 0.6], device=device)  # so that boxes overlap, and no two edges meet
    leaf = (sample.padded.double() + moved).requires_grad_()
    options = {"formula": formula, "reduction": reduction}
    torch.autograd.gradcheck(lambda p: sluice.giou_loss(p, sample.targets, sample.offsets, **options), leaf)
    torch.autograd.gradcheck(lambda p: sluice.giou_loss(p, sample.padded, mask=sample.mask, **options), leaf)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("form", ["offsets", "mask", "ragged"])
def test_derivatives_forward(device, reduction, form):
    sample = Sample(device)
    at = sample.predictions[sample.mask] if form == "ragged" else sample.predictions
    along = torch.randn_like(at)
    given = {"targets": sample.padded, "mask": sample.mask} if form == "mask" else {"targets": sample.targets,
                                                                                    "offsets": sample.offsets}
    loss, found = torch.func.jvp(lambda p: sluice.giou_loss(p, reduction=reduction, **given), (at,), (along,))
    leaf = at.clone().requires_grad_()
    plain = sluice.giou_loss(leaf, reduction=reduction, **given)
    assert loss.equal(plain.detach())
    rows = [torch.autograd.grad(number, leaf, retain_graph=True)[0] for number in plain.reshape(-1)]
    expected = torch.stack([(row * along).sum() for row in rows]).view(found.shape)
    torch.testing.assert_close(found, expected)
    gradient = torch.func.grad(lambda p: sluice.giou_loss(p, reduction=reduction, **given).sum())(at)
    torch.testing.assert_close(gradient, torch.stack(rows).sum(0))


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("form", ["offsets", "mask", "ragged"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_loss_and_gradient_at_once(device, formula, reduction, form, dtype):
    sample = Sample(device)
    leaf = sample.predictions.to(dtype)
    boxes = leaf[sample.mask].contiguous() if form == "ragged" else leaf
    given = (boxes, sample.padded) if form == "mask" else (boxes, sample.targets, sample.offsets)
    options = {"formula": formula, "reduction": reduction, "mask": sample.mask if form == "mask" else None}
    loss, gradient = sluice.giou_loss_and_gradient(*given, scale=3.0, **options)
    wanting = boxes.requires_grad_()
    expected = sluice.giou_loss(wanting, *given[1:], **options)
    (wanted,) = torch.autograd.grad(3.0 * expected.sum(), wanting)
    assert gradient.dtype == dtype and not gradient.requires_grad
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, wanted)


def test_loss_and_gradient_of_what_no_row_holds(device):
    sample = Sample(device)
    more = torch.cat([sample.targets, sample.targets[:4]])
    boxes = torch.cat([sample.predictions[sample.mask], sample.predictions[2, :4]])
    loss, gradient = sluice.giou_loss_and_gradient(boxes, more, sample.offsets, formula="article")
    torch.testing.assert_close(loss, article(boxes[:-4], sample.targets.double()).mean())
    assert (gradient[-4:] == 0).all() and (gradient[:-4] != 0).any()
    for rows in (0, 4):
        none = torch.zeros(0, 4, device=device), torch.zeros(rows + 1, dtype=torch.int64, device=device)
        loss, gradient = sluice.giou_loss_and_gradient(torch.rand(rows, 3, 4, device=device), *none)
        assert loss.item() == 0 and gradient.shape == (rows, 3, 4) and (gradient == 0).all()


@pytest.mark.parametrize("rows", [300, 5000])
def test_loss_and_gradient_of_many_rows(device, rows):
    lengths = torch.randint(0, 9, (rows,)).tolist()
    sample = Sample(device, lengths, 9)
    leaf = sample.predictions.requires_grad_()
    loss, gradient = sluice.giou_loss_and_gradient(leaf, sample.targets, sample.offsets, formula="article")
    expected = article(leaf[sample.mask], sample.targets.double()).mean()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, leaf)[0])
    torch.testing.assert_close(sluice.giou_loss(leaf, sample.targets, sample.offsets, formula="article"), expected)


@pytest.mark.parametrize("reduction", ["mean", "row_sum"])
def test_opcheck(device, reduction):
    sample = Sample(device, (2, 0, 3), 3)
    padded = sample.predictions.float().requires_grad_()
    ragged = sample.predictions[sample.mask].bfloat16().requires_grad_()
    ops = torch.ops.sluice
    for predictions in (padded, ragged):
        torch.library.opcheck(ops.giou_loss.default, (predictions, sample.targets, sample.offsets, "article", reduction, True))
    torch.library.opcheck(ops.giou_loss.default, (padded.detach(), sample.targets, sample.offsets, "article", reduction, False))
    torch.library.opcheck(ops.giou_loss_masked.default, (padded, sample.padded, sample.mask, "torchvision", reduction, True))
    torch.library.opcheck(ops.giou_loss_and_gradient.default,
                          (ragged.detach(), sample.targets, sample.offsets, "torchvision", "sum", 2.0))
    loss, gradient = ops.giou_loss(padded.detach(), sample.targets, sample.offsets, reduction=reduction)
    torch.library.opcheck(ops.giou_loss_backward.default, (loss, gradient, sample.offsets, reduction, 3, torch.bfloat16))
    torch.library.opcheck(ops.giou_loss_backward.default, (loss, gradient, sample.offsets, reduction, 0, torch.float32))
    loss, gradient, counts = ops.giou_loss_masked(padded.detach(), sample.padded, sample.mask, reduction=reduction)
    torch.library.opcheck(ops.giou_loss_masked_backward.default,
                          (loss, gradient, sample.mask, counts, reduction, torch.float32))


def test_compiled_without_a_graph_break(device):
    sample = Sample(device)

    def loss_of(p: torch.Tensor) -> torch.Tensor:
        return sluice.giou_loss(p * 2, sample.targets, sample.offsets) + sluice.giou_loss(p, sample.padded, mask=sample.mask)

    def both_of(p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return sluice.giou_loss_and_gradient(p, sample.targets, sample.offsets, scale=2.0)

    at_once = torch.compile(both_of, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(at_once(sample.predictions), both_of(sample.predictions))
    leaf = sample.predictions.float().requires_grad_()
    compiled = torch.compile(loss_of, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(leaf), loss_of(leaf))
    torch.testing.assert_close(torch.autograd.grad(compiled(leaf), leaf), torch.autograd.grad(loss_of(leaf), leaf))


def test_autocast_reads_16_bits_as_they_are(device):
    sample = Sample(device)
    leaf = sample.predictions.bfloat16().requires_grad_()
    with torch.autocast(device, torch.bfloat16):
        loss = sluice.giou_loss(leaf, sample.targets, sample.offsets)
    assert loss.dtype == torch.float32
    assert loss.equal(sluice.giou_loss(leaf, sample.targets, sample.offsets))


def test_values_behind_the_last_row_count_for_nothing(device):
    sample = Sample(device)
    more = torch.cat([sample.targets, sample.targets[:4]])
    leaf = torch.cat([sample.predictions[sample.mask], sample.predictions[2, :4]]).requires_grad_()
    loss = sluice.giou_loss(leaf, more, sample.offsets, formula="article")
    torch.testing.assert_close(loss, article(leaf[:-4], sample.targets.double()).mean())
    gradient = gradient_of(loss, leaf)
    assert (gradient[-4:] == 0).all() and (gradient[:-4] != 0).any()


def test_no_rows_and_no_boxes(device):
    for rows, width in ((0, 3), (4, 3), (4, 0), (0, 0)):
        leaf = torch.rand(rows, width, 4, device=device, requires_grad=True)
        none = torch.zeros(0, 4, device=device), torch.zeros(rows + 1, dtype=torch.int64, device=device)
        loss = sluice.giou_loss(leaf, *none)
        assert loss.item() == 0
        assert (torch.autograd.grad(loss, leaf)[0] == 0).all()
        masked = sluice.giou_loss(leaf, leaf.detach(), mask=torch.zeros(rows, width, dtype=torch.bool, device=device))
        assert masked.item() == 0
        assert sluice.giou_loss(leaf, *none, reduction="row_mean").tolist() == [0.0] * rows
        assert sluice.giou_loss_and_gradient(leaf, *none, reduction="row_mean")[1].equal(torch.zeros_like(leaf))


def test_views_and_other_strides(device):
    sample = Sample(device)
    bytes_ = torch.zeros(1 + 4 * len(sample.targets), dtype=torch.uint8, device=device)
    shifted = bytes_[1:].view(-1, 4).copy_(sample.targets)  # begins between two boxes
    across = sample.predictions.float().transpose(0, 1).contiguous().transpose(0, 1)
    plain = sluice.giou_loss(sample.predictions.float(), sample.targets, sample.offsets)
    assert plain.equal(sluice.giou_loss(across, shifted, sample.offsets))


def test_a_nan_stays_in_its_row(device):
    sample = Sample(device)
    sample.predictions[2, 0, 0] = float("nan")
    losses = sluice.giou_loss(sample.predictions, sample.targets, sample.offsets, reduction="row_mean")
    assert losses.isnan().tolist() == [False, False, True, False, False]


def wrong_arguments():
    sample = Sample("cpu")
    p, t, o, m, d = sample.predictions, sample.targets, sample.offsets, sample.mask, sample.padded
    loss = sluice.giou_loss
    return {
        "predictions is of int64, expected float32": lambda: loss(p.long(), t, o),
        "targets is of bool, expected float32": lambda: loss(p, t.bool(), o),
        "targets requires a gradient": lambda: loss(p, t.float().requires_grad_(), o),
        "targets has shape [17], expected [boxes, 4]": lambda: loss(p, t[:, 0], o),
        "predictions has shape [5, 8], expected [rows, width, 4], or [boxes, 4]": lambda: loss(p[..., 0], t, o),
        "predictions has shape [4, 8, 4], expected 5 rows, as offsets says": lambda: loss(p[:4], t, o),
        "predictions has shape [5, 4], expected 17 boxes, as targets has": lambda: loss(p[:, 0], t, o),
        "predictions has shape [4, 8, 4], expected 1 row, as offsets says": lambda: loss(p[:4], t, o[[0, -1]]),
        "predictions has shape [2, 4], expected 1 box, as targets has": lambda: loss(p[:2, 0], t[:1], [0, 1]),
        "offsets is of float32, expected integers": lambda: loss(p, t, o.float()),
        "offsets has shape [6, 1], expected [rows + 1]": lambda: loss(p, t, o[:, None]),
        "offsets begins with 1, expected 0": lambda: loss(p, t, o + 1),
        "expected its values, and the targets' offsets": lambda: sluice.giou_loss_and_gradient(
            torch.nested.nested_tensor_from_jagged(p[m], o), t, o),
        "giou_loss_and_gradient: targets requires": lambda: sluice.giou_loss_and_gradient(p, t.float().requires_grad_(), o),
        "giou_loss_and_gradient: a mask was given": lambda: sluice.giou_loss_and_gradient(p, t, o, mask=m),
        "offsets decreases from 3 to 2 at row 1": lambda: loss(p[:2], t, torch.tensor([0, 3, 2])),
        "offsets ends at 17, expected at most 16": lambda: loss(p, t[:16], o),
        "row 2 has 8 targets, expected at most 4": lambda: loss(p[:, :4], t, o),
        "formula is 'ciou', expected 'article' or 'torchvision'": lambda: loss(p, t, o, formula="ciou"),
        "reduction is 'none', expected 'mean', 'sum', 'row_mean' or 'row_sum'": lambda: loss(p, t, o, reduction="none"),
        "there are no offsets": lambda: loss(p, t),
        "a mask was given for ragged boxes": lambda: loss(p, t, o, mask=m),
        "mask is of uint8, expected bool": lambda: loss(p, d, mask=m.byte()),
        "giou_loss: mask is a list, expected a tensor": lambda: loss(p, d, mask=m.tolist()),
        "giou_loss_and_gradient: predictions is a ndarray, expected": lambda: sluice.giou_loss_and_gradient(p.numpy(), t, o),
        "mask has shape [5], expected [rows, width]": lambda: loss(p, d, mask=m[:, 0]),
        "targets has shape [5, 7, 4], expected [5, 8, 4], as mask says": lambda: loss(p, d[:, :7], mask=m),
    }


@pytest.mark.parametrize("sentence", wrong_arguments())
def test_wrong_arguments(sentence):
    with pytest.raises(RuntimeError) as error:
        wrong_arguments()[sentence]()
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_second_derivatives_are_refused():
    sample = Sample("cpu")
    loss = lambda p: sluice.giou_loss(p, sample.targets, sample.offsets)  # noqa: E731
    with pytest.raises(RuntimeError, match="giou_loss: a second derivative was asked for, and is not known"):
        torch.func.jvp(torch.func.grad(loss), (sample.predictions,), (sample.predictions,))
    leaf = sample.predictions.requires_grad_()
    found = loss(2 * leaf)
    gradient, = torch.autograd.grad(found, leaf, create_graph=True)
    assert torch.equal(gradient, torch.autograd.grad(loss(2 * leaf), leaf)[0])
    with pytest.raises(RuntimeError, match="giou_loss: a second derivative was asked for, and is not known"):
        (found + gradient.square().sum()).backward()


def test_backward_without_a_saved_gradient():
    sample = Sample("cpu")
    leaf = sample.predictions.requires_grad_()
    loss, _ = torch.ops.sluice.giou_loss(leaf, sample.targets, sample.offsets, with_gradient=False)
    with pytest.raises(RuntimeError, match="ran with with_gradient=False"):
        loss.backward()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_in_a_graph_and_on_a_stream_of_its_own():
    sample = Sample("cuda")
    leaf = sample.predictions.float().requires_grad_()

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        loss = sluice.giou_loss(leaf, sample.targets, sample.offsets)
        return loss.detach(), torch.autograd.grad(loss, leaf)[0]

    expected = step()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for found, wanted in zip(step(), expected):
            assert found.equal(wanted)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        leaf.mul_(1.5)
    graph.replay()
    for found, wanted in zip(captured, step()):
        assert found.equal(wanted)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_offsets_that_make_no_sense_on_a_device():
    sample = Sample("cuda")
    for wrong in ([0, 3, 2, 11, 12, 17], [0, 3, 3, 11, 12, 1 << 40], [0, -5, 3, 11, 12, 17], [1, 3, 3, 11, 12, 17]):
        loss = sluice.giou_loss(sample.predictions, sample.targets, torch.tensor(wrong, device="cuda"))
        assert loss.isnan().item()
    torch.cuda.synchronize()
