/// \file
/// What sources and their fills tell each other: of bad batches, and of the end.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/detail/atomic.hpp>

namespace sluice {

/// The state of a source whose workers need none of their own.
struct NoState {};

/// The batches that a source has left out, see `SourceOptions::errors_in_a_row`.
struct SkippedBatches {
    std::size_t count = 0;   ///< How many.
    std::size_t first = 0;   ///< The number of the first one,
    std::string reason = {}; ///< and what its `fill` threw.
};

/// Tells a `fill` that waits, for a camera or a socket, that its source is being stopped or destroyed, which waits for it in
/// turn. Any thread may ask, until `fill` returns.
class FillStop {
public:
    /// Made by sources.
    explicit FillStop(const detail::Atomic<bool>& stopping) noexcept : stopping_(&stopping) {}
    /// Whether the batch will be dropped whatever `fill` does.
    bool stop_requested() const noexcept { return stopping_->load(); }

private:
    const detail::Atomic<bool>* stopping_;
};

} // namespace sluice
