"""Operations on the values of ragged rows.

Rows are a nested tensor of layout `torch.jagged`, uneven in dimension 1, or values and offsets: `values` [size] or [size,
columns, ...] holds the values of all rows one after the other, and `offsets` [rows + 1], integers of a tensor or a list, where
each row begins. Of several columns, each is an operation of its own. Values from `offsets[-1]` on are in no row. Values are of
float32, float64, int32 or int64; 16-bit ones are computed in float32, and rounded afterwards. Wrong tensors raise a
RuntimeError of one sentence; on the CPU so do offsets that make no sense, and on a GPU these make results NaN (of integers 0),
without anything being read out of bounds.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence

import torch

from sluice._registration.gradients import eager
from sluice.arguments import Offsets, fits, flag_of, in_name_of, integer_of, offsets_of, require_tensors

eager_sum, eager_max, eager_softmax = eager["row_sum"], eager["row_max"], eager["row_softmax"]
eager_sort, eager_expand = eager["row_sort"], eager["row_expand"]
MINIMAL = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64)
mean_sum, min_max = in_name_of("row_mean", "row_sum", eager_sum), in_name_of("row_min", "row_max", eager_max)
log_max = in_name_of("row_log_softmax", "row_max", eager_max)


def parts_of(name: str, values: torch.Tensor, offsets: Optional[Offsets]) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and offsets of int64 from what a function was given."""
    require_tensors(name, values=values)
    if values.is_nested:
        if offsets is not None:
            raise RuntimeError(f"sluice.{name}: offsets were given beside a nested tensor, which has its own; expected one of "
                               "the two")
        if values.layout != torch.jagged:
            raise RuntimeError(f"sluice.{name}: the nested tensor has layout {values.layout}, expected torch.jagged")
        if values._ragged_idx != 1:  # whose values begin with another dimension
            raise RuntimeError(f"sluice.{name}: dimension {values._ragged_idx} of the nested tensor is the uneven one, expected "
                               f"dimension 1: transpose(1, {values._ragged_idx})")
        if values.lengths() is not None:
            raise RuntimeError(f"sluice.{name}: the nested tensor has gaps between its rows, expected none: contiguous() "
                               "makes one")
        values, offsets = values.values(), values.offsets()
    if offsets is None:
        raise RuntimeError(f"sluice.{name}: there are no offsets; expected where each row begins, or a nested tensor")
    return values, offsets_of(name, offsets, values)


def is_autocast(values: torch.Tensor) -> bool:
    return values.device.type != "meta" and torch.is_autocast_enabled(values.device.type)


def is_narrow(values: torch.Tensor) -> bool:
    return values.dtype in (torch.bfloat16, torch.float16)


def widened(values: torch.Tensor) -> torch.Tensor:
    return values.float() if is_narrow(values) else values


def rounded(result: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Back to 16 bits where the values are, unless autocast wants such operations in float32."""
    if is_narrow(values) and not is_autocast(values):
        return result.to(values.dtype)
    return result


def like(result: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Over the rows of a nested tensor where those were one."""
    return torch.nested.nested_tensor_from_jagged(result, rows.offsets()) if rows.is_nested else result


def has_no_columns(values: torch.Tensor, offsets: torch.Tensor) -> bool:
    """Or the operator says what is wrong."""
    return values.dim() < 2 or offsets.dim() != 1 or offsets.shape[0] == 0


class Columns:
    """Several columns as one of more rows: those of the first, a row of what is in none, those of the second, and so on."""

    def __init__(self, shape: Sequence[int], offsets: torch.Tensor) -> None:
        self.of_one = offsets
        self.size, self.shape = shape[0], tuple(shape[1:])
        self.count = 1
        for extent in self.shape:
            self.count *= extent
        self.rows = offsets.shape[0] - 1
        begins = torch.arange(self.count, device=offsets.device)[:, None] * self.size
        end = torch.full([1], self.count * self.size, dtype=torch.int64, device=offsets.device)
        self.offsets = torch.cat([(offsets + begins).reshape(-1), end])
        self.inner = torch.arange(self.size, device=offsets.device) < offsets[-1]

    def flat(self, values: torch.Tensor) -> torch.Tensor:
        return values.reshape(self.size, self.count).t().reshape(-1)

    def by(self, op: Callable, flat: torch.Tensor, extent: int) -> Any:
        """`op` of all columns. A column alone, which is `extent` long in `flat`, says what is wrong with offsets."""
        try:
            return op(flat, self.offsets)
        except RuntimeError:
            op(flat[:extent], self.of_one)
            raise

    def of_rows(self, result: torch.Tensor) -> torch.Tensor:
        """[rows, columns, ...]."""
        return result.view(self.count, self.rows + 1)[:, :self.rows].t().reshape(self.rows, *self.shape)

    def of_values(self, result: torch.Tensor) -> torch.Tensor:
        """[size, columns, ...]; 0 for values in no row."""
        result = result.view(self.count, self.size).t()
        return torch.where(self.inner[:, None], result, 0).reshape(self.size, *self.shape)


def by_row(op: Callable, values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    if has_no_columns(values, offsets):
        return op(values, offsets)
    columns = Columns(values.shape, offsets)
    return columns.of_rows(columns.by(op, columns.flat(values), columns.size))


def by_value(op: Callable, values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    if has_no_columns(values, offsets):
        return op(values, offsets)
    columns = Columns(values.shape, offsets)
    return columns.of_values(columns.by(op, columns.flat(values), columns.size))


def lengths_of(offsets: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """[rows, 1, ...]: as many dimensions as results have."""
    return offsets.diff().view(-1, *[1] * (values.dim() - 1))


def row_sum(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> torch.Tensor:
    """[rows, columns, ...]: the sum of each row; 0 for an empty one."""
    values, offsets = parts_of("row_sum", rows, offsets)
    return rounded(by_row(eager_sum, widened(values), offsets), values)


def row_mean(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> torch.Tensor:
    """[rows, columns, ...]: the mean of each row, of floating-point values; 0 for an empty one."""
    values, offsets = parts_of("row_mean", rows, offsets)
    if not values.dtype.is_floating_point:
        raise RuntimeError(f"sluice.row_mean: values is of {str(values.dtype)[6:]}, expected a floating-point type")
    sums = by_row(mean_sum, widened(values), offsets)
    return rounded(sums / lengths_of(offsets, values).clamp(min=1), values)


def row_max(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, columns, ...] twice: the greatest value of each row (NaN if there is one; -infinity, or the lowest integer, for an
    empty row), and its position in the row, the first of equal ones (-1 for an empty row)."""
    values, offsets = parts_of("row_max", rows, offsets)
    greatest, positions = maxima(eager_max, widened(values), offsets)
    return greatest.to(values.dtype), positions


def maxima(op: Callable, values: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if has_no_columns(values, offsets):
        return op(values, offsets)
    columns = Columns(values.shape, offsets)
    greatest, positions = columns.by(op, columns.flat(values), columns.size)
    return columns.of_rows(greatest), columns.of_rows(positions)


def row_min(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, columns, ...] twice: the least value of each row (NaN if there is one; infinity, or the highest integer, for an
    empty row), and its position, as by `row_max`."""
    values, offsets = parts_of("row_min", rows, offsets)
    if values.dtype not in MINIMAL:
        raise RuntimeError(f"sluice.row_min: values is of {str(values.dtype)[6:]}, expected a floating-point type, int32 or int64")
    real = values.dtype.is_floating_point
    turned = -values if real else ~values  # ~ has a result for the lowest integer, too
    greatest, positions = maxima(min_max, widened(turned), offsets)
    return (-greatest.to(values.dtype) if real else ~greatest), positions


def row_softmax(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> torch.Tensor:
    """The softmax of each row, of floating-point values; 0 for values in no row. Like `rows`: nested, or values. In a row with
    +infinity that value's share is NaN and the others' 0, where PyTorch's are all NaN."""
    values, offsets = parts_of("row_softmax", rows, offsets)
    return like(rounded(by_value(eager_softmax, widened(values), offsets), values), rows)


def row_log_softmax(rows: torch.Tensor, offsets: Optional[Offsets] = None) -> torch.Tensor:
    """The logarithm of each row's softmax, as exact for small shares as for large ones; 0 for values in no row. Like `rows`:
    nested, or values."""
    values, offsets = parts_of("row_log_softmax", rows, offsets)
    if not values.dtype.is_floating_point:
        raise RuntimeError(f"sluice.row_log_softmax: values is of {str(values.dtype)[6:]}, expected a floating-point type")
    if is_autocast(values):
        with torch.autocast(values.device.type, enabled=False):
            result = by_value(log_softmax, widened(values), offsets)
    else:
        result = by_value(log_softmax, widened(values), offsets)
    return like(rounded(result, values), rows)


def log_softmax(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    greatest = log_max(values.detach(), offsets)[0]
    size = values.shape[0]
    greatest = torch.where(greatest == -torch.inf, 0, greatest)  # of an empty row; a row with infinity is NaN, as PyTorch's
    shifted = values - eager_expand(greatest, offsets, size)
    sums = eager_sum(shifted.exp(), offsets)
    result = shifted - eager_expand(torch.where(offsets.diff() > 0, sums, 1).log(), offsets, size)
    return torch.where(torch.arange(size, device=values.device) < offsets[-1], result, 0)


def row_sort(rows: torch.Tensor, offsets: Optional[Offsets] = None,
             descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The values of each row in order, and where each was in its row. Equal values keep their order; a NaN stands beyond the
    infinity of its sign. Like `rows`: nested, or values."""
    values, offsets = parts_of("row_sort", rows, offsets)
    descending = flag_of("row_sort", "descending", descending, RuntimeError)
    wide = widened(values)

    def sort(values: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return eager_sort(values, offsets, descending)

    if has_no_columns(values, offsets):
        ordered, positions = sort(wide, offsets)
    else:
        columns = Columns(values.shape, offsets)
        ordered, positions = map(columns.of_values, columns.by(sort, columns.flat(wide), columns.size))
    return like(ordered.to(values.dtype), rows), like(positions, rows)


def row_expand(of_rows: torch.Tensor, offsets: Offsets, size: int) -> torch.Tensor:
    """[size, columns, ...]: each row's number for each of its values; 0 for values in no row. `of_rows` is [rows, columns, ...]."""
    require_tensors("row_expand", of_rows=of_rows)
    if of_rows.is_nested:
        raise RuntimeError("sluice.row_expand: of_rows is a nested tensor, expected [rows, ...], a number for each row")
    offsets = offsets_of("row_expand", offsets, of_rows, "of_rows")
    size = integer_of("row_expand", "size", size)
    wide = widened(of_rows)
    if isinstance(size, int) and not fits(size * math.prod(of_rows.shape[1:])):
        raise RuntimeError(f"sluice.row_expand: size is {size}, expected fewer than 2^63 numbers in all columns")
    if has_no_columns(of_rows, offsets) or not isinstance(size, torch.Tensor) and size < 0 or of_rows.shape[0] != offsets.shape[0] - 1:
        return eager_expand(wide, offsets, size).to(of_rows.dtype)
    columns = Columns([size, *of_rows.shape[1:]], offsets)
    padded = torch.nn.functional.pad(wide.reshape(columns.rows, columns.count).t(), (0, 1)).reshape(-1)

    def expand(of_rows: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return eager_expand(of_rows, offsets, columns.count * size if offsets is columns.offsets else size)

    return columns.of_values(columns.by(expand, padded, columns.rows)).to(of_rows.dtype)
