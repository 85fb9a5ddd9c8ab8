"""What PyTorch has to know of the operators beside their kernels: shapes, gradients, derivatives forward, and autocast.

Shapes serve `torch.compile`, gradients autograd, derivatives forward `torch.func.jvp`. Under autocast, sums and softmax
are computed in float32, as PyTorch's own; the GIoU loss reads 16-bit boxes as they are and computes in float64, so
autocast has nothing to cast there.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch._C._functorch import TransformType
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.library import register_autocast, register_fake

ops = torch.ops.sluice
library = torch.library.Library("sluice", "IMPL")
below_autograd = torch._C._AutoDispatchBelowAutograd


eager: dict[str, Callable] = {}  # the operators, called without the dispatcher's way through Python where it would do nothing


def is_forward() -> bool:
    """Whether derivatives may be carried along: no tensor tells of its own by `requires_grad`."""
    return forward_ad._current_level >= 0


def require_few(op: str, most: int, what: str, *kinds: Any) -> None:
    """Refuses what would come out as zeros, without a word."""
    if sum(transform.key() in kinds for transform in torch._C._functorch.get_interpreter_stack() or ()) > most:
        raise RuntimeError(f"sluice.{op}: {what} was asked for, and is not known; expected one of the two by other means")


def require_first(op: str) -> None:
    if torch._C._are_functorch_transforms_active():
        require_few(op, 1, "a second derivative", TransformType.Grad, TransformType.Jvp)


def gradient_of(op: str, save: Callable, backward: Callable, forward: Callable) -> type[torch.autograd.Function]:
    """An operator with its gradient. `save` returns what both directions need; `forward(ctx, *tangents)` has None for an input
    that carries none."""
    run = getattr(ops, op).default

    class Gradient(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            with below_autograd():
                return run(*inputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            kept = save(ctx, inputs, output)
            ctx.save_for_forward(*kept)
            ctx.save_for_backward(*kept)

    Gradient.__name__ = op
    Gradient.backward = staticmethod(backward)
    Gradient.jvp = staticmethod(forward)
    return Gradient


def register_gradient(op: str, save: Callable, backward: Callable, forward: Callable) -> type[torch.autograd.Function]:
    """In place of `torch.library.register_autograd`, which knows no derivatives forward: `torch.func.jvp` gives zeros there."""
    gradient = gradient_of(op, save, backward, forward)
    run = getattr(ops, op).default
    defaults = [argument.default_value for argument in run._schema.arguments]
    # The kernel is called within torch.func's transforms, not around them, as `Function.apply` takes it where there are any.
    apply = super(torch.autograd.Function, gradient).apply

    def kernel(*inputs: Any) -> Any:
        inputs += tuple(defaults[len(inputs):])  # which the dispatcher leaves out
        if is_forward() or (torch.is_grad_enabled() and inputs[0].requires_grad):
            if not torch._C._are_functorch_transforms_active():
                return apply(*inputs)
            with enable_single_level_autograd_function():
                return apply(*inputs)
        with below_autograd():
            return run(*inputs)

    def call(*inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return run(*inputs)
        if torch._C._are_functorch_transforms_active():  # of which there may be several, one around the other
            if op in ("row_max", "row_softmax", "row_sort"):
                require_few(op, 1, "a derivative forward of one forward", TransformType.Jvp)
            return gradient.apply(*inputs, *defaults[len(inputs):])
        if is_forward():
            return run(*inputs)
        if torch.is_grad_enabled() and inputs[0].requires_grad:
            return apply(*inputs)
        with below_autograd():
            return run(*inputs)

    library.impl(op, kernel, "Autograd")
    eager[op] = call
    return gradient


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


def save_giou(ctx, inputs, output) -> tuple:
    predictions, _, offsets, _, ctx.reduction, ctx.with_gradient = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    ctx.width = predictions.shape[1] if predictions.dim() == 3 else 0
    return (output[1], offsets)


def giou_backward(ctx, incoming, _):
    if incoming is None:
        return None, None, None, None, None, None
    require_gradient(ctx)
    gradient, offsets = ctx.saved_tensors
    result = ops.giou_loss_backward(incoming, gradient, offsets, ctx.reduction, ctx.width, ctx.dtype)
    return result, None, None, None, None, None


def save_giou_masked(ctx, inputs, output) -> tuple:
    predictions, _, mask, _, ctx.reduction, ctx.with_gradient = inputs
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.set_materialize_grads(False)
    ctx.dtype = predictions.dtype
    return (output[1], mask, output[2])


def giou_masked_backward(ctx, incoming, _, __):
    if incoming is None:
        return None, None, None, None, None, None
    require_gradient(ctx)
    gradient, mask, counts = ctx.saved_tensors
    result = ops.giou_loss_masked_backward(incoming, gradient, mask, counts, ctx.reduction, ctx.dtype)
    return result, None, None, None, None, None


def giou_forward(ctx, along, *_):
    require_gradient(ctx)
    gradient, offsets = ctx.saved_tensors
    along = along.to(gradient.dtype)
    if ctx.width > 0:  # those of the predictions that have a target
        boxes = gradient.shape[0]
        row = eager["row_expand"](torch.arange(along.shape[0], device=along.device), offsets, boxes)
        place = torch.arange(boxes, device=along.device) - eager["row_expand"](offsets[:-1].contiguous(), offsets, boxes)
        along = along[row, place.clamp(0, ctx.width - 1)]
    sums = eager["row_sum"]((gradient * along).sum(-1), offsets)
    return reduced(sums, offsets.diff(), offsets[-1], ctx.reduction), None


def giou_masked_forward(ctx, along, *_):
    require_gradient(ctx)
    gradient, _, counts = ctx.saved_tensors
    sums = (gradient * along.to(gradient.dtype)).sum((1, 2))
    return reduced(sums, counts[:-1], counts[-1], ctx.reduction), None, None


def reduced(sums: torch.Tensor, counts: torch.Tensor, count: torch.Tensor, reduction: str) -> torch.Tensor:
    if not reduction.startswith("row"):
        sums, counts = sums.sum(), count
    return sums / counts.clamp(min=1) if reduction.endswith("mean") else sums


giou_gradient = register_gradient("giou_loss", save_giou, giou_backward, giou_forward)
giou_masked_gradient = register_gradient("giou_loss_masked", save_giou_masked, giou_masked_backward, giou_masked_forward)


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
