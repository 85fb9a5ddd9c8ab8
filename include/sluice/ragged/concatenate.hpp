/// \file
/// Several ragged batches as one. <sluice/ragged/reshape.hpp> says what holds for all of these operations.
/// For Host streams; CUDA streams need <sluice/ragged/reshape.cuh>.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>

#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// Operands that one operation takes. More are joined step by step.
inline constexpr std::size_t most_parts = 4;

/// The rows of all parts, those of the first part first. Throws `Error` for no part, or more than
/// `most_parts`.
template <AnyStream S, class T>
void concatenate_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<std::span<const RaggedView<const T>>> parts,
                      RaggedWorkspace<BackendOf<S>>& workspace);

/// Row r is row r of all parts, one behind the other. As many rows as the part with the most has; in the
/// others, rows that are not there count as empty. Throws `Error` likewise.
template <AnyStream S, class T>
void concatenate_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                        std::type_identity_t<std::span<const RaggedView<const T>>> parts,
                        RaggedWorkspace<BackendOf<S>>& workspace);

/// Row n * r + k is row r of part k, of n parts: what belongs together comes to lie together. As many rows as
/// n times those of the part with the most; in the others, rows that are not there count as empty. Throws
/// `Error` likewise.
template <AnyStream S, class T>
void stack(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
           std::type_identity_t<std::span<const RaggedView<const T>>> parts,
           RaggedWorkspace<BackendOf<S>>& workspace);

/// The same for parts that are listed in place: `concatenate_rows(stream, out, {a.view(), b.view()},
/// workspace)`.
/// @{
template <AnyStream S, class T>
void concatenate_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
                      RaggedWorkspace<BackendOf<S>>& workspace);
template <AnyStream S, class T>
void concatenate_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                        std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
                        RaggedWorkspace<BackendOf<S>>& workspace);
template <AnyStream S, class T>
void stack(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
           std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
           RaggedWorkspace<BackendOf<S>>& workspace);
/// @}

} // namespace sluice::ragged

#include <sluice/ragged/detail/concatenate.inl>
