"""The masked GIoU loss of rows of boxes."""

from __future__ import annotations

from typing import Optional

import torch

from sluice._registration.boxes import giou_gradient, giou_masked_gradient
from sluice._registration.gradients import is_forward, require_first, told_of_memory
from sluice.arguments import Offsets, counted, in_name_of, number_of, require_kind, require_one_tensor, require_tensors
from sluice.rows import parts_of

giou_masked = in_name_of("giou_loss", "giou_loss_masked", giou_masked_gradient)
giou_masked_plain = in_name_of("giou_loss", "giou_loss_masked", torch.ops.sluice.giou_loss_masked)
giou_masked_at_once = in_name_of("giou_loss_and_gradient", "giou_loss_masked", torch.ops.sluice.giou_loss_masked)
giou_at_once = in_name_of("giou_loss_and_gradient", "giou_loss", torch.ops.sluice.giou_loss)
FORMULAS, REDUCTIONS = "'torchvision' or 'article'", "'mean', 'sum', 'row_mean' or 'row_sum'"


def require_no_gradient(op: str, predictions: torch.Tensor, targets: torch.Tensor, mask: Optional[torch.Tensor], formula: str,
                        reduction: str) -> None:
    require_tensors(op, predictions=predictions, targets=targets, **({} if mask is None else {"mask": mask}))
    if not isinstance(formula, str) or not isinstance(reduction, str):
        require_kind(op, str, FORMULAS, formula=formula)
        require_kind(op, str, REDUCTIONS, reduction=reduction)
    if mask is not None:
        require_one_tensor(op, mask=mask)
    if targets.requires_grad:
        raise RuntimeError(f"sluice.{op}: targets requires a gradient; expected a tensor that does not, such as targets.detach()")


def same_rows(op: str, own: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`offsets` of the targets, which the predictions' have to equal: offsets that make no sense where only a GPU knows."""
    if own is offsets:
        return offsets
    if own.shape != offsets.shape:
        raise RuntimeError(f"sluice.{op}: predictions has {counted(own.shape[0] - 1, 'row')}, expected {offsets.shape[0] - 1}, as targets "
                           "has")
    if own.device == offsets.device and (own.device.type != "cpu" or torch.compiler.is_compiling()):
        return torch.where((own == offsets).all(), offsets, -1)
    if not torch.equal(own.cpu(), offsets.cpu()):
        row = int((own.cpu().diff() != offsets.cpu().diff()).nonzero()[0])
        raise RuntimeError(f"sluice.{op}: predictions has {counted(int(own.diff()[row]), 'box')} in row {row}, expected "
                           f"{int(offsets.diff()[row])}, as targets has")
    return offsets


def without_width(predictions: torch.Tensor, targets: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """[rows, 0, 4] as the [0, 4] that it is, for rows without a target: a width of 0 tells the operators of [boxes, 4]."""
    if predictions.dim() == 3 and predictions.shape[1] == 0 and predictions.shape[2] == 4 and targets.shape[0] == 0 and (
            predictions.shape[0] == offsets.shape[0] - 1):
        return predictions.reshape(0, 4)
    return predictions


@told_of_memory
def giou_loss(predictions: torch.Tensor, targets: torch.Tensor, offsets: Optional[Offsets] = None, *,
              mask: Optional[torch.Tensor] = None, formula: str = "torchvision", reduction: str = "mean") -> torch.Tensor:
    """The GIoU loss of predicted boxes and their targets, boxes being (x1, y1, x2, y2): one operator, forward and backward.

    The targets are

    - ragged: `targets` [boxes, 4] holds the boxes of all rows, and `offsets` [rows + 1], integers, where each row begins;
    - a nested tensor of layout `torch.jagged`;
    - padded: `targets` [rows, width, 4], and `mask` [rows, width], of bool, True where there is a box.

    `predictions` is [rows, width, 4], where box p of row r belongs to target p of row r; or, for ragged targets, [boxes, 4]
    or a nested tensor of the same rows. It is of float32, float64, bfloat16 or float16, and read without a cast; targets may
    be integers, too. Arithmetic is in float64, the result in float32 (float64 for predictions of that).

    `formula` is "torchvision", as `torchvision.ops.generalized_box_iou_loss`: 0 where a box is its target, up to 2 elsewhere.
    Or "article", which is no loss but a score, 1 where a box is its target, to be maximised: intersection / max(union, 1e-5)
    - (C - union) / C, with C the area around both, at least 1e-5, and an intersection that two misses make positive.
    `reduction` is "mean" or "sum" over all boxes, or "row_mean" or "row_sum", one number a row; a mean without boxes is 0.

    Only `predictions` gets a gradient, and only a first one. Wrong tensors raise a RuntimeError of one sentence. What only
    the device could see is checked on the CPU, and there only: offsets that decrease, a row with more targets than
    predictions, or nested predictions whose rows are not as long as the targets'. On a GPU such a row makes its loss and the
    mean NaN, such nested rows all losses, and nothing is read or written out of bounds.
    """
    require_no_gradient("giou_loss", predictions, targets, mask, formula, reduction)
    # What `torch.func.vmap` wraps does not say whether it requires a gradient.
    is_wrapped = torch._C._are_functorch_transforms_active()
    wanted = ((predictions.requires_grad or is_wrapped) and torch.is_grad_enabled()) or is_forward()
    eagerly = wanted and not torch.compiler.is_compiling()  # without the dispatcher's way round
    if eagerly:
        require_first("giou_loss")
    if mask is not None:
        if offsets is not None or targets.is_nested or predictions.is_nested:
            raise RuntimeError("sluice.giou_loss: a mask was given for ragged boxes; expected either a mask or offsets")
        masked = giou_masked if eagerly else giou_masked_plain
        return masked(predictions, targets, mask, formula, reduction, wanted)[0]
    targets, offsets = parts_of("giou_loss", targets, offsets)
    if predictions.is_nested:
        predictions, own = parts_of("giou_loss", predictions, None)
        offsets = same_rows("giou_loss", own, offsets)
    predictions = without_width(predictions, targets, offsets)
    ragged = giou_gradient if eagerly else torch.ops.sluice.giou_loss
    return ragged(predictions, targets, offsets, formula, reduction, wanted)[0]


@told_of_memory
def giou_loss_and_gradient(predictions: torch.Tensor, targets: torch.Tensor, offsets: Optional[Offsets] = None, *,
                           mask: Optional[torch.Tensor] = None, formula: str = "torchvision", reduction: str = "mean",
                           scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss, and its gradient by `predictions` times `scale`, at once: for a loss that nothing follows.

    A backward pass begins with a kernel that writes a 1 and one that multiplies with it; this spares both. For a mean or sum
    of few short ragged rows it is one kernel. Arguments are those of `giou_loss`, without nested predictions. Neither result
    knows of autograd: a network goes on from the gradient, by `predictions.backward(gradient)`. `scale` is what a loss
    would be multiplied with, such as a gradient scaler's factor.
    """
    require_no_gradient("giou_loss_and_gradient", predictions, targets, mask, formula, reduction)
    scale = number_of("giou_loss_and_gradient", "scale", scale)
    predictions = predictions.detach()
    if predictions.is_nested:
        raise RuntimeError("sluice.giou_loss_and_gradient: predictions is nested; expected its values, and the targets' offsets")
    if mask is None:
        targets, offsets = parts_of("giou_loss_and_gradient", targets, offsets)
        shape, predictions = predictions.shape, without_width(predictions, targets, offsets)
        if reduction in ("mean", "sum"):
            loss, gradient = torch.ops.sluice.giou_loss_and_gradient(predictions, targets, offsets, formula, reduction, scale)
            return loss, gradient if predictions.shape == shape else gradient.view(shape)
        loss, own = giou_at_once(predictions, targets, offsets, formula, reduction, True)
        width = predictions.shape[1] if predictions.dim() == 3 else 0
        gradient = torch.ops.sluice.giou_loss_backward(torch.full_like(loss, scale), own, offsets, reduction, width, predictions.dtype)
        return loss, gradient.view(shape)
    if offsets is not None or targets.is_nested:
        raise RuntimeError("sluice.giou_loss_and_gradient: a mask was given for ragged boxes; expected either a mask or offsets")
    loss, own, counts = giou_masked_at_once(predictions, targets, mask, formula, reduction, True)
    return loss, torch.ops.sluice.giou_loss_masked_backward(torch.full_like(loss, scale), own, mask, counts, reduction,
                                                            predictions.dtype)
