/// \file
/// How a source's `fill` is called, and from within which calls of it a thread asks.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/pipeline/source_ends.hpp>

namespace sluice::detail {

/// What a source's `fill` returns; without `type` where it cannot be called.
template <class State, class Fill, class Batch, class... Stop>
struct FillResult : std::invoke_result<Fill&, State&, std::size_t, Batch&, Stop...> {};
template <class Fill, class Batch, class... Stop>
struct FillResult<NoState, Fill, Batch, Stop...> : std::invoke_result<Fill&, std::size_t, Batch&, Stop...> {};
/// The same, called in the way that fits.
template <class State, class Fill, class Batch>
struct FillCall : FillResult<State, Fill, Batch, FillStop> {
    static constexpr bool takes_stop = true;
};
template <class State, class Fill, class Batch>
requires requires { typename FillResult<State, Fill, Batch>::type; }
struct FillCall<State, Fill, Batch> : FillResult<State, Fill, Batch> {
    static constexpr bool takes_stop = false;
};

/// A call of a source's `fill` on this thread.
struct FillInProgress {
    const void* source;
    FillInProgress* outer; // One source's `fill` may take batches of another source.
    bool stop = false;     // Whether it has called `stop`.

    explicit FillInProgress(const void* of) noexcept : source(of), outer(innermost()) { innermost() = this; }
    FillInProgress(const FillInProgress&) = delete;
    FillInProgress& operator=(const FillInProgress&) = delete;
    ~FillInProgress() { innermost() = outer; }

    static FillInProgress*& innermost() noexcept {
        thread_local FillInProgress* current = nullptr;
        return current;
    }
    /// That of `source`; null where there is none.
    static FillInProgress* of(const void* source) noexcept {
        FillInProgress* fill = innermost();
        while (fill != nullptr && fill->source != source)
            fill = fill->outer;
        return fill;
    }
};

} // namespace sluice::detail
