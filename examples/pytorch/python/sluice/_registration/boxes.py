"""The GIoU loss: shapes, gradients, derivatives forward. It reads 16-bit boxes as they are and computes in float64, so autocast has
nothing to cast."""

from __future__ import annotations

from typing import Callable

import torch
from torch.autograd import forward_ad
from torch.library import register_fake

from sluice._registration.gradients import eager, link_of, ops, register_gradient, without_gradient, without_second


def real_type(predictions: torch.Tensor) -> torch.dtype:
    return torch.float64 if predictions.dtype == torch.float64 else torch.float32


def loss_shape(reduction: str, rows: int) -> list[int]:
    return [rows] if reduction.startswith("row") else []


@register_fake("sluice::giou_loss")
def _(predictions, targets, offsets, formula="torchvision", reduction="mean", with_gradient=True):
    real = real_type(predictions)
    return (predictions.new_empty(loss_shape(reduction, offsets.shape[0] - 1), dtype=real),
            predictions.new_empty(targets.shape if with_gradient else [0, 4], dtype=real))


@register_fake("sluice::giou_loss_and_gradient")
def _(predictions, targets, offsets, formula="torchvision", reduction="mean", scale=1.0):
    return predictions.new_empty([], dtype=real_type(predictions)), predictions.new_empty(predictions.shape)


@register_fake("sluice::giou_loss_masked")
def _(predictions, targets, mask, formula="torchvision", reduction="mean", with_gradient=True):
    real = real_type(predictions)
    return (predictions.new_empty(loss_shape(reduction, mask.shape[0]), dtype=real),
            predictions.new_empty(targets.shape if with_gradient else [0, 4], dtype=real),
            predictions.new_empty([mask.shape[0] + 1], dtype=torch.int64))


@register_fake("sluice::giou_loss_backward")
def _(incoming, gradient, offsets, reduction, width, dtype):
    shape = [offsets.shape[0] - 1, width, 4] if width > 0 else gradient.shape
    return gradient.new_empty(shape, dtype=dtype)


@register_fake("sluice::giou_loss_masked_backward")
def _(incoming, gradient, mask, counts, reduction, dtype):
    return gradient.new_empty([*mask.shape, 4], dtype=dtype)


def require_gradient(ctx) -> None:
    if not ctx.with_gradient:
        raise RuntimeError("sluice.giou_loss: the forward pass ran with with_gradient=False and saved no gradient; expected "
                           "with_gradient=True where backward() follows")


def save_giou(ctx, inputs, output) -> tuple:
    predictions, _, offsets, _, ctx.reduction, ctx.with_gradient, link = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    ctx.width = predictions.shape[1] if predictions.dim() == 3 else 0
    return (output[1], offsets, link)


def giou_backward(ctx, incoming, _):
    if incoming is None:
        return (None,) * 7
    require_gradient(ctx)
    gradient, offsets, link = ctx.saved_tensors
    result = ops.giou_loss_backward(incoming, gradient, offsets, ctx.reduction, ctx.width, ctx.dtype)
    return (without_second("giou_loss", result, link, incoming),) + (None,) * 6


def save_giou_masked(ctx, inputs, output) -> tuple:
    predictions, _, mask, _, ctx.reduction, ctx.with_gradient, link = inputs
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    return (output[1], mask, output[2], link)


def giou_masked_backward(ctx, incoming, _, __):
    if incoming is None:
        return (None,) * 7
    require_gradient(ctx)
    gradient, mask, counts, link = ctx.saved_tensors
    result = ops.giou_loss_masked_backward(incoming, gradient, mask, counts, ctx.reduction, ctx.dtype)
    return (without_second("giou_loss", result, link, incoming),) + (None,) * 6


def giou_forward(ctx, along, *_):
    require_gradient(ctx)
    gradient, offsets, link = ctx.saved_tensors
    along = along.to(gradient.dtype)
    if ctx.width > 0:  # those of the predictions that have a target
        boxes = gradient.shape[0]
        row = eager["row_expand"](torch.arange(along.shape[0], device=along.device), offsets, boxes)
        place = torch.arange(boxes, device=along.device) - eager["row_expand"](offsets[:-1].contiguous(), offsets, boxes)
        along = along[row, place.clamp(0, ctx.width - 1)]
    sums = eager["row_sum"]((gradient * along).sum(-1), offsets)
    return primal_only(reduced(sums, offsets.diff(), offsets[-1], ctx.reduction), link, along), None


def giou_masked_forward(ctx, along, *_):
    require_gradient(ctx)
    gradient, _, counts, link = ctx.saved_tensors
    sums = (gradient * along.to(gradient.dtype)).sum((1, 2))
    return primal_only(reduced(sums, counts[:-1], counts[-1], ctx.reduction), link, along), None, None


def primal_only(tangent: torch.Tensor, link: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
    """Whose gradient would be a second derivative."""
    return without_gradient("giou_loss", tangent, forward_ad.unpack_dual(link).primal, along)


def reduced(sums: torch.Tensor, counts: torch.Tensor, count: torch.Tensor, reduction: str) -> torch.Tensor:
    if not reduction.startswith("row"):
        sums, counts = sums.sum(), count
    return sums / counts.clamp(min=1) if reduction.endswith("mean") else sums


def linked(gradient: type[torch.autograd.Function]) -> Callable:
    return lambda *inputs: gradient.apply(*inputs, link_of(inputs[0]))


giou_gradient = linked(register_gradient("giou_loss", save_giou, giou_backward, giou_forward, is_linked=True))
giou_masked_gradient = linked(register_gradient("giou_loss_masked", save_giou_masked, giou_masked_backward, giou_masked_forward,
                                                is_linked=True))
