"""Operators on rows: shapes, gradients, derivatives forward, and what autocast has them compute in: sums and softmax in float32, as
PyTorch's own."""

from __future__ import annotations

import torch
from torch.library import register_autocast, register_fake

from sluice._registration.gradients import eager, ops, register_gradient


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


def save_offsets(ctx, inputs, output) -> tuple:
    ctx.size = inputs[0].shape[0]
    return (inputs[1],)


def save_expand(ctx, inputs, output) -> tuple:
    ctx.size = inputs[2]
    return (inputs[1],)


def sum_backward(ctx, incoming):
    (offsets,) = ctx.saved_tensors
    return eager["row_expand"](incoming, offsets, ctx.size), None


def sum_forward(ctx, along, _):
    (offsets,) = ctx.saved_tensors
    return eager["row_sum"](along, offsets)


def expand_forward(ctx, along, *_):
    (offsets,) = ctx.saved_tensors
    return eager["row_expand"](along, offsets, ctx.size)


def expand_backward(ctx, incoming):
    (offsets,) = ctx.saved_tensors
    return eager["row_sum"](incoming, offsets), None, None


def save_max(ctx, inputs, output) -> tuple:
    ctx.mark_non_differentiable(output[1])
    ctx.size = inputs[0].shape[0]
    return (inputs[1], output[1])


def max_backward(ctx, incoming, _):
    offsets, positions = ctx.saved_tensors
    return eager["row_place"](incoming, positions, offsets, ctx.size), None


def max_forward(ctx, along, _):
    offsets, positions = ctx.saved_tensors
    return at_positions(along, positions, offsets), None


def at_positions(values, positions, offsets):
    """[rows]: the value at each row's position."""
    size = values.shape[0]
    if size == 0:
        return values.new_zeros(positions.shape)
    return torch.where(positions >= 0, values[(offsets[:-1] + positions).clamp(0, size - 1)], 0)


def save_place(ctx, inputs, output) -> tuple:
    ctx.size = inputs[3]
    return (inputs[1], inputs[2])


def place_backward(ctx, incoming):
    positions, offsets = ctx.saved_tensors
    return at_positions(incoming, positions, offsets), None, None, None


def place_forward(ctx, along, *_):
    positions, offsets = ctx.saved_tensors
    return eager["row_place"](along, positions, offsets, ctx.size)


def save_softmax(ctx, inputs, output) -> tuple:
    return (inputs[1], output)


def softmax_backward(ctx, incoming):
    offsets, shares = ctx.saved_tensors
    weighted = incoming * shares
    return weighted - shares * eager["row_expand"](eager["row_sum"](weighted, offsets), offsets, shares.shape[0]), None


def softmax_forward(ctx, along, _):
    return softmax_backward(ctx, along)[0]  # its matrix of derivatives is symmetric


def save_sort(ctx, inputs, output) -> tuple:
    ctx.mark_non_differentiable(output[1])
    return (inputs[1], output[1])


def sort_forward(ctx, along, *_):
    offsets, positions = ctx.saved_tensors
    return in_order(along, positions, offsets), None


def in_order(values, positions, offsets):
    """The values of each row as they were sorted."""
    size = values.shape[0]
    if size == 0:
        return values
    begins = ops.row_expand(offsets[:-1].contiguous(), offsets, size)
    in_a_row = torch.arange(size, device=values.device) < offsets[-1]
    return torch.where(in_a_row, values[(begins + positions).clamp(0, size - 1)], 0)


def save_unsort(ctx, inputs, output) -> tuple:
    return (inputs[1], inputs[2])


def unsort_backward(ctx, incoming):
    positions, offsets = ctx.saved_tensors
    return in_order(incoming, positions, offsets), None, None


def unsort_forward(ctx, along, *_):
    positions, offsets = ctx.saved_tensors
    return eager["row_unsort"](along, positions, offsets)


def sort_backward(ctx, incoming, _):
    offsets, positions = ctx.saved_tensors
    return eager["row_unsort"](incoming, positions, offsets), None, None


register_gradient("row_sum", save_offsets, sum_backward, sum_forward)
register_gradient("row_expand", save_expand, expand_backward, expand_forward)
register_gradient("row_max", save_max, max_backward, max_forward)
register_gradient("row_softmax", save_softmax, softmax_backward, softmax_forward)
register_gradient("row_place", save_place, place_backward, place_forward)
register_gradient("row_unsort", save_unsort, unsort_backward, unsort_forward)
register_gradient("row_sort", save_sort, sort_backward, sort_forward)

for device in ("cpu", "cuda"):
    register_autocast("sluice::row_sum", device, torch.float32)
    register_autocast("sluice::row_softmax", device, torch.float32)
