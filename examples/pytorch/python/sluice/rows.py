"""Operations on the values of ragged rows.

Rows are a nested tensor of layout `torch.jagged` with one number for each element, or values and offsets: `values` [size]
holds the values of all rows one after the other, and `offsets` [rows + 1], of int64, where each row begins. Values from
`offsets[-1]` on are in no row. Values are of float32, float64, int32 or int64; 16-bit ones are computed in float32, and
rounded afterwards. Wrong tensors raise a RuntimeError of one sentence; on the CPU so do offsets that make no sense, and on a
GPU these make all results NaN (of integers 0), without anything being read out of bounds.
"""

from __future__ import annotations

from typing import Optional

import torch


def parts_of(name: str, values: torch.Tensor, offsets: Optional[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and offsets of int64 from what a function was given."""
    if values.is_nested:
        if offsets is not None:
            raise RuntimeError(f"sluice.{name}: offsets were given beside a nested tensor, which has its own; expected one of "
                               "the two")
        if values.layout != torch.jagged:
            raise RuntimeError(f"sluice.{name}: the nested tensor has layout {values.layout}, expected torch.jagged")
        if values.lengths() is not None:
            raise RuntimeError(f"sluice.{name}: the nested tensor has gaps between its rows, expected none: contiguous() "
                               "makes one")
        values, offsets = values.values(), values.offsets()
    if offsets is None:
        raise RuntimeError(f"sluice.{name}: there are no offsets; expected where each row begins, or a nested tensor")
    return values, offsets.long() if offsets.dtype == torch.int32 else offsets


def is_narrow(values: torch.Tensor) -> bool:
    return values.dtype in (torch.bfloat16, torch.float16)


def widened(values: torch.Tensor) -> torch.Tensor:
    return values.float() if is_narrow(values) else values


def rounded(result: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Back to 16 bits where the values are, unless autocast wants such operations in float32."""
    if is_narrow(values) and not torch.is_autocast_enabled(values.device.type):
        return result.to(values.dtype)
    return result


def like(result: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Over the rows of a nested tensor where those were one."""
    return torch.nested.nested_tensor_from_jagged(result, rows.offsets()) if rows.is_nested else result


def row_sum(rows: torch.Tensor, offsets: Optional[torch.Tensor] = None) -> torch.Tensor:
    """[rows]: the sum of each row; 0 for an empty one."""
    values, offsets = parts_of("row_sum", rows, offsets)
    return rounded(torch.ops.sluice.row_sum(widened(values), offsets), values)


def row_max(rows: torch.Tensor, offsets: Optional[torch.Tensor] = None) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows] twice: the greatest value of each row (NaN if there is one; -infinity, or the lowest integer, for an empty row),
    and its position in the row, the first of equal ones (-1 for an empty row)."""
    values, offsets = parts_of("row_max", rows, offsets)
    greatest, positions = torch.ops.sluice.row_max(widened(values), offsets)
    return greatest.to(values.dtype), positions


def row_softmax(rows: torch.Tensor, offsets: Optional[torch.Tensor] = None) -> torch.Tensor:
    """The softmax of each row, of float32 or float64. Like `rows`: nested, or values."""
    values, offsets = parts_of("row_softmax", rows, offsets)
    return like(rounded(torch.ops.sluice.row_softmax(widened(values), offsets), values), rows)


def row_sort(rows: torch.Tensor, offsets: Optional[torch.Tensor] = None,
             descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The values of each row in order, and where each was in its row. Equal values keep their order; a NaN stands beyond the
    infinity of its sign. Like `rows`: nested, or values."""
    values, offsets = parts_of("row_sort", rows, offsets)
    ordered, positions = torch.ops.sluice.row_sort(widened(values), offsets, descending)
    return like(ordered.to(values.dtype), rows), like(positions, rows)


def row_expand(of_rows: torch.Tensor, offsets: torch.Tensor, size: int) -> torch.Tensor:
    """[size]: each row's number for each of its values; 0 for values in no row."""
    return torch.ops.sluice.row_expand(widened(of_rows), offsets, size).to(of_rows.dtype)
