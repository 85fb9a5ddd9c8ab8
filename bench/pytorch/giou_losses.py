"""The box losses of giou.py: their batches, and the mean over the real boxes in each variant."""

from __future__ import annotations  # some name what may be missing

from typing import Callable

try:
    import torch
except ImportError:  # giou.py says so
    torch = None

from captured import Work

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

IMAGE = 256
EPSILON = 1e-5
Pairwise = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def article_giou(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Box by box, in float32."""
    p, t = prediction.float(), target.float()
    area_p = (p[..., 2] - p[..., 0]) * (p[..., 3] - p[..., 1])
    area_t = (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    low = torch.maximum(p[..., :2], t[..., :2])
    high = torch.minimum(p[..., 2:], t[..., 2:])
    inner = high - low
    shared = inner[..., 0] * inner[..., 1]
    union = area_p + area_t - shared
    around = torch.maximum(p[..., 2:], t[..., 2:]) - torch.minimum(p[..., :2], t[..., :2])
    enclosing = (around[..., 0] * around[..., 1]).clamp(min=EPSILON)
    return shared / union.clamp(min=EPSILON) - (enclosing - union) / enclosing


class Batch:
    """Predictions and targets in all forms."""

    def __init__(self, rows: int, width: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.lengths = torch.randn(rows, generator=generator).mul(3).abs().floor().clamp(max=width - 1).long()

        def boxes(shape: tuple[int, ...]) -> torch.Tensor:
            corner = torch.randint(0, IMAGE - 1, (*shape, 2), generator=generator)
            size = torch.randint(1, IMAGE - 1, (*shape, 2), generator=generator)
            return torch.cat([corner, (corner + size).clamp(max=IMAGE - 1)], -1)

        self.rows, self.width = rows, width
        self.mask_host = torch.arange(width)[None, :] < self.lengths[:, None]
        self.padded_host = boxes((rows, width)).to(torch.uint8) * self.mask_host[..., None]
        self.separate_host = [self.padded_host[r, :n].clone() for r, n in enumerate(self.lengths.tolist())]
        self.predictions = boxes((rows, width)).float().cuda().requires_grad_()
        self.predictions_16 = self.predictions.detach().bfloat16().requires_grad_()
        self.padded = self.padded_host.cuda()
        self.mask = self.mask_host.cuda()
        self.mask_bytes = self.mask.to(torch.uint8)
        self.separate = [t.cuda() for t in self.separate_host]
        self.counts = self.lengths.tolist()


def row_offsets(batch: Batch) -> torch.Tensor:
    return torch.nn.functional.pad(batch.lengths.cumsum(0), (1, 0)).cuda()


def loop_loss(batch: Batch, predictions: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((), device="cuda")
    for row, target in enumerate(batch.separate):
        if target.shape[0]:
            total = total + article_giou(predictions[row, :target.shape[0]], target).sum()
    return total / max(sum(batch.counts), 1)


def concatenation_loss(batch: Batch, predictions: torch.Tensor) -> torch.Tensor:
    chosen = torch.cat([predictions[row, :n] for row, n in enumerate(batch.counts)])
    return article_giou(chosen, torch.cat(batch.separate)).sum() / max(chosen.shape[0], 1)


def padding_loss(predictions: torch.Tensor, padded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    value = torch.where(mask, article_giou(predictions, padded), 0.0)
    return value.sum() / mask.sum().clamp(min=1)


def columns_giou(p: list[torch.Tensor], t: list[torch.Tensor], lesser: Pairwise, greater: Pairwise) -> torch.Tensor:
    """The same formula column by column, since jagged tensors cannot be sliced like others; the mean."""
    px1, py1, px2, py2 = p
    tx1, ty1, tx2, ty2 = t
    shared = (lesser(px2, tx2) - greater(px1, tx1)) * (lesser(py2, ty2) - greater(py1, ty1))
    union = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1) - shared
    around = (greater(px2, tx2) - lesser(px1, tx1)) * (greater(py2, ty2) - lesser(py1, ty1))
    enclosing = around.clamp(min=EPSILON)
    return (shared / union.clamp(min=EPSILON) - (enclosing - union) / enclosing).values().mean()


def nested_loss(predictions: torch.Tensor, target: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """One jagged tensor each, of which columns are selected. There is no gradient of `select`, nor
    of `minimum` and `maximum`."""
    boxes = [torch.nested.nested_tensor_from_jagged(packed.float(), offsets) for packed in (predictions, target)]
    p, t = ([nested.select(-1, i) for i in range(4)] for nested in boxes)
    return columns_giou(p, t, torch.minimum, torch.maximum)


def nested_columns_loss(predictions: torch.Tensor, target: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """A jagged tensor for each column, and sums with an absolute difference in place of `minimum` and `maximum`: for the
    gradient, which is that of these two also where both are equal."""
    p, t = ([torch.nested.nested_tensor_from_jagged(column, offsets) for column in packed.float().unbind(-1)]
            for packed in (predictions, target))
    return columns_giou(p, t, lambda a, b: (a + b - (a - b).abs()) / 2, lambda a, b: (a + b + (a - b).abs()) / 2)


if triton is not None:

    @triton.jit
    def _geometry(p0, p1, p2, p3, t0, t1, t2, t3):
        area = (p2 - p0) * (p3 - p1) + (t2 - t0) * (t3 - t1)
        shared = (tl.minimum(p2, t2) - tl.maximum(p0, t0)) * (tl.minimum(p3, t3) - tl.maximum(p1, t1))
        union = area - shared
        enclosing = (tl.maximum(p2, t2) - tl.minimum(p0, t0)) * (tl.maximum(p3, t3) - tl.minimum(p1, t1))
        return shared, union, enclosing

    @triton.jit
    def _giou_kernel(prediction, target, mask, sums, counts, boxes, skip: tl.constexpr, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < boxes
        real = tl.load(mask + at, mask=inside, other=0) != 0
        wanted = inside & real if skip else inside
        p0 = tl.load(prediction + 4 * at, mask=wanted, other=0).to(tl.float32)
        p1 = tl.load(prediction + 4 * at + 1, mask=wanted, other=0).to(tl.float32)
        p2 = tl.load(prediction + 4 * at + 2, mask=wanted, other=0).to(tl.float32)
        p3 = tl.load(prediction + 4 * at + 3, mask=wanted, other=0).to(tl.float32)
        t0 = tl.load(target + 4 * at, mask=wanted, other=0).to(tl.float32)
        t1 = tl.load(target + 4 * at + 1, mask=wanted, other=0).to(tl.float32)
        t2 = tl.load(target + 4 * at + 2, mask=wanted, other=0).to(tl.float32)
        t3 = tl.load(target + 4 * at + 3, mask=wanted, other=0).to(tl.float32)
        shared, union, enclosing = _geometry(p0, p1, p2, p3, t0, t1, t2, t3)
        least = 1e-5
        enclosing = tl.maximum(enclosing, least)
        value = shared / tl.maximum(union, least) - (enclosing - union) / enclosing
        tl.store(sums + tl.program_id(0), tl.sum(tl.where(real & inside, value, 0.0), 0))
        tl.store(counts + tl.program_id(0), tl.sum((real & inside).to(tl.float32), 0))


def triton_loss(batch: Batch, skip: bool, cast: bool) -> Work:
    """With Triton alone. `skip` what the mask leaves out; `cast` the predictions to float32 before."""
    boxes, block = batch.rows * batch.width, 1024
    blocks = (boxes + block - 1) // block
    sums = torch.empty(blocks, device="cuda")
    counts = torch.empty(blocks, device="cuda")

    def work() -> torch.Tensor:
        predictions = batch.predictions_16.detach()
        if cast:
            predictions = predictions.float()
        _giou_kernel[(blocks,)](predictions, batch.padded, batch.mask_bytes, sums, counts, boxes, skip, block)
        return sums.sum() / counts.sum().clamp(min=1)

    return work
