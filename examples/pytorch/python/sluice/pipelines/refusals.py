"""What is wrong with a batch that cannot be copied: one sentence, where PyTorch's is about its own code."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin

from sluice.arguments import named
from sluice.pipelines.trees import as_tensor, is_plain, tensors_of


def require_copies(index: int, batch: Any, device: torch.device) -> None:
    """Raises a RuntimeError that says which tensor of batch `index` PyTorch does not copy to `device`; nothing where it copies all that are
    not plain memory, whose copies fail for other reasons."""
    others: list[Any] = []
    try:
        tensors = tensors_of(batch, others)
    except ValueError:  # it has no end
        return
    for tensor in tensors:
        sentence = why_not(tensor)
        if sentence and not is_copied(tensor, device):
            raise RuntimeError(f"batch {index} has {sentence.format(device)}") from None
    for other in others:
        try:
            as_tensor(other)
        except Exception as error:
            raise RuntimeError(f"batch {index} has {named(type(other))}, which PyTorch does not take by DLPack: {error}; expected an array "
                               "that it takes, or a tensor") from None


def why_not(tensor: torch.Tensor) -> str:
    unknown, name = "which PyTorch does not copy to '{}'", named(type(tensor))
    if isinstance(tensor, UninitializedTensorMixin):
        return f"{name}, which has no numbers yet; expected it after the first call of its module"
    if tensor.is_meta:
        return "a tensor of the device 'meta', which has no numbers; expected one with memory"
    if not is_plain(tensor):
        return f"a tensor of layout {tensor.layout}, {unknown}; expected a dense one, such as to_dense() makes"
    if tensor.is_quantized:
        return f"a tensor quantized by {tensor.qscheme()}, {unknown}; expected a dense one, such as dequantize() makes"
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return f"{name}, {unknown}; expected a tensor of another class"
    return ""


def is_copied(tensor: torch.Tensor, device: torch.device) -> bool:
    try:
        if tensor.to(device) is tensor:
            tensor.clone()
        return True
    except Exception:
        return False
