/// \file
/// Functions of each value: of values alone, with those of another ragged batch, with one dense element a row, or with
/// a padded array.
///
/// `f` is a small functor, `SLUICE_HOST_DEVICE` if it is to serve both backends. `out` is as in scans.hpp: device
/// memory with as much room as `rows`, or values over the same rows. It may be `rows` or `other` itself, element by element of one
/// size; to overlap one in part, or a dense or a padded operand, which other values are still made of, is an `Error`. Nothing
/// waits, nothing is allocated, and all can be captured.
///
/// For Host streams; CUDA streams need elementwise.cuh.
#pragma once

#include <cstdint>

#include <sluice/memory/span.hpp>
#include <sluice/ragged/operands.hpp>

namespace sluice::ragged {

/// `out[i] = f(rows[i])` for each value.
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void apply(const S& stream, const F& f, Out&& out, const Rows& rows);

/// `out[i] = f(rows[i], other[i])`. `other` has rows of the same lengths, which is not looked at: a view or a batch
/// (both, if they are batches of their own), or device memory. Throws `Error` when it has less room than `rows`.
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          RaggedValues<BackendOf<S>> Other>
void apply(const S& stream, const F& f, Out&& out, const Rows& rows, const Other& other);

/// `out[i] = f(rows[i], dense[r])` for each value of row r. `dense` is device memory with one element for each row
/// that `rows` has room for, or else `Error` is thrown.
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          DeviceMemory<BackendOf<S>> Dense>
void apply_by_row(const S& stream, const F& f, Out&& out, const Rows& rows, const Dense& dense);

/// `out[i] = f(rows[i], padded[r * width + p])` for each value at position p of row r. `padded` is device memory of
/// [rows, `width`], with as many rows as `rows` has room for, or else `Error` is thrown, as for a width below 0.
///
/// Where a row is longer than `width`, nothing at all is written to `out`; the first element of `refused`, if it has
/// one, becomes the length of the longest row then, and 0 otherwise: also where `rows` are themselves a result that did
/// not fit, and so have no values.
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows,
          DeviceMemory<BackendOf<S>> Padded>
void apply_padded(const S& stream, const F& f, Out&& out, const Rows& rows, const Padded& padded,
                  std::int64_t width, DeviceSpan<std::int64_t, BackendOf<S>> refused = {});

/// `out[i] = f(r, p, i)` for each value i, at position p of row r: for functions that look up what they need. `f` must
/// not read what it is called for elsewhere to write.
template <AnyStream S, class F, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void generate(const S& stream, const F& f, Out&& out, const Rows& rows);

} // namespace sluice::ragged

#include <sluice/ragged/detail/elementwise.inl>
