/// \file
/// All operations that make ragged batches out of others: convert.hpp (padded and back, row ids, lengths), select.hpp
/// (slice, prefix, gather, mask, remove empty rows, repeat), concatenate.hpp (concatenate, stack) and order.hpp (by length).
/// What holds for all of them:
///
/// - They are enqueued on `stream`, wait for nothing and allocate nothing. The host reads no counts, so that
///   one captured graph serves any rows that fit; launches are laid out for the capacities.
/// - The result is another batch than the operands, and its former rows are gone. Values are moved as they
///   are, of any trivially copyable type.
/// - A result that does not fit leaves `out` without rows, and what it would have needed in
///   `RaggedCounts::refused`: of values, of rows, or of a row's length, as `RaggedCounts::excess` says. Nothing is cut. An
///   operand that was refused itself hands both on. `RaggedBatch::require_valid_and_wait` makes an `Error` of it.
/// - Several values over the same rows go through one after the other: `RaggedColumn::view_over` is an
///   operand like any other.
/// - `workspace` is made for the capacity of the largest operand or result; padded rows count with all their
///   places. Too little of it, spans that are too short, and a result that overlaps what it is made of, values, offsets or what
///   says which of them come, are an `Error`.
///
/// For Host streams; CUDA streams need <sluice/ragged/reshape.cuh>.
#pragma once

#include <sluice/ragged/concatenate.hpp>
#include <sluice/ragged/convert.hpp>
#include <sluice/ragged/order.hpp>
#include <sluice/ragged/select.hpp>
