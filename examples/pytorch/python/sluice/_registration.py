"""What PyTorch has to know of the operators beside their kernels: shapes, gradients and autocast.

Shapes serve `torch.compile`, gradients autograd. Under autocast, sums and softmax are computed in float32, as PyTorch's
own; the GIoU loss reads 16-bit boxes as they are and computes in float64, so autocast has nothing to cast there.
"""

from __future__ import annotations

import torch
from torch.library import register_autocast, register_autograd, register_fake

ops = torch.ops.sluice


def real_type(predictions: torch.Tensor) -> torch.dtype:
    return torch.float64 if predictions.dtype == torch.float64 else torch.float32


def loss_shape(reduction: str, rows: int) -> list[int]:
    return [rows] if reduction.startswith("row") else []


# Boxes


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


def save_giou(ctx, inputs, output) -> None:
    predictions, _, offsets, _, ctx.reduction, ctx.with_gradient = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    ctx.width = predictions.shape[1] if predictions.dim() == 3 else 0
    ctx.save_for_backward(output[1], offsets)


def giou_backward(ctx, incoming, _):
    if incoming is None:
        return None, None, None, None, None, None
    require_gradient(ctx)
    gradient, offsets = ctx.saved_tensors
    result = ops.giou_loss_backward(incoming, gradient, offsets, ctx.reduction, ctx.width, ctx.dtype)
    return result, None, None, None, None, None


def save_giou_masked(ctx, inputs, output) -> None:
    predictions, _, mask, _, ctx.reduction, ctx.with_gradient = inputs
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    ctx.save_for_backward(output[1], mask, output[2])


def giou_masked_backward(ctx, incoming, _, __):
    if incoming is None:
        return None, None, None, None, None, None
    require_gradient(ctx)
    gradient, mask, counts = ctx.saved_tensors
    result = ops.giou_loss_masked_backward(incoming, gradient, mask, counts, ctx.reduction, ctx.dtype)
    return result, None, None, None, None, None


register_autograd("sluice::giou_loss", giou_backward, setup_context=save_giou)
register_autograd("sluice::giou_loss_masked", giou_masked_backward, setup_context=save_giou_masked)


# Rows


@register_fake("sluice::row_sum")
def _(values, offsets):
    return values.new_empty([offsets.shape[0] - 1])


@register_fake("sluice::row_max")
def _(values, offsets):
    rows = offsets.shape[0] - 1
    return values.new_empty([rows]), values.new_empty([rows], dtype=torch.int64)


@register_fake("sluice::row_softmax")
def _(values, offsets):
    return values.new_empty(values.shape)


@register_fake("sluice::row_sort")
def _(values, offsets, descending=False):
    return values.new_empty(values.shape), values.new_empty(values.shape, dtype=torch.int64)


@register_fake("sluice::row_expand")
def _(of_rows, offsets, size):
    return of_rows.new_empty([size])


@register_fake("sluice::row_unsort")
def _(sorted, positions, offsets):
    return sorted.new_empty(sorted.shape)


@register_fake("sluice::row_place")
def _(of_rows, positions, offsets, size):
    return of_rows.new_empty([size])


def save_offsets(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.size = inputs[0].shape[0]


def sum_backward(ctx, incoming):
    (offsets,) = ctx.saved_tensors
    return ops.row_expand(incoming, offsets, ctx.size), None


def expand_backward(ctx, incoming):
    (offsets,) = ctx.saved_tensors
    return ops.row_sum(incoming, offsets), None, None


def save_max(ctx, inputs, output) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(inputs[1], output[1])
    ctx.size = inputs[0].shape[0]


def max_backward(ctx, incoming, _):
    offsets, positions = ctx.saved_tensors
    return ops.row_place(incoming, positions, offsets, ctx.size), None


def save_softmax(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[1], output)


def softmax_backward(ctx, incoming):
    offsets, shares = ctx.saved_tensors
    weighted = incoming * shares
    return weighted - shares * ops.row_expand(ops.row_sum(weighted, offsets), offsets, shares.shape[0]), None


def save_sort(ctx, inputs, output) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(inputs[1], output[1])


def sort_backward(ctx, incoming, _):
    offsets, positions = ctx.saved_tensors
    return ops.row_unsort(incoming, positions, offsets), None, None


register_autograd("sluice::row_sum", sum_backward, setup_context=save_offsets)
register_autograd("sluice::row_expand", expand_backward, setup_context=save_offsets)
register_autograd("sluice::row_max", max_backward, setup_context=save_max)
register_autograd("sluice::row_softmax", softmax_backward, setup_context=save_softmax)
register_autograd("sluice::row_sort", sort_backward, setup_context=save_sort)

for device in ("cpu", "cuda"):
    register_autocast("sluice::row_sum", device, torch.float32)
    register_autocast("sluice::row_softmax", device, torch.float32)


# Images


@register_fake("sluice::augment")
def _(images, samples, seed, crop_height, crop_width, least_degrees, most_degrees, least_sigma, most_sigma, height, width,
      fill, mean, deviation, dtype):
    interleaved = not images.is_contiguous() and images.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if interleaved else torch.contiguous_format
    return torch.empty([images.shape[0], images.shape[1], height, width], dtype=dtype, device=images.device,
                       memory_format=layout)


@register_fake("sluice::augment_parameters")
def _(samples, count, height, width, seed, crop_height, crop_width, least_degrees, most_degrees, least_sigma, most_sigma):
    return samples.new_empty([count, 4], dtype=torch.float32)
