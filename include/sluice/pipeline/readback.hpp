/// \file
/// Results for the host, without a wait in the loop.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/pipeline/detail/readback_state.hpp>

namespace sluice {

/// Copies small results, such as a loss a batch, to the host and hands them over in order once they have
/// arrived.
///
/// `handler(std::size_t index, std::span<const T> values)` is called for each result, in the order of the
/// pushes, on the thread that calls `push`, `poll` or `finish`; index counts from 0. Nothing is lost: when
/// all slots are on their way, `push` waits for the oldest. The values are the handler's until it returns. It may push
/// further results, where a slot is free for them; `poll` does nothing within it, and `finish` throws.
///
/// A push may be captured by a `GraphCapture` or a graphed pipeline: each replay is a push of its own then, in the order
/// of the launches among those of the host, and hands over what has arrived first. Its graph has places for as many launches as
/// there are slots, rounded down to a power of two; launched once more before the oldest of them has been handed over, it waits for
/// that one, as a push does. It has places for one launch where those for all would take over 64 KiB, on a checked backend, on a
/// device other than the one that was current when the readback was made, and where the driver cannot compile a kernel. In a
/// plain `capture`, whose replays are not reported, and in the body of a branch or a loop a push is refused.
///
/// Driven by the thread that drives the pipeline and launches the graphs. Takes results of any device; can be neither
/// copied nor moved. Takes pinned memory for `slots` results, and about as much again for graphs. Destroying it waits for
/// copies under way, and drops what has not been handed over: call `finish` first. Graphs that it was captured into may
/// outlive it; their replays hand nothing over then. A stage that pushes may not be called any more: a pipeline calls its
/// stages for batches of a new kind, and where it works eagerly, so that it has to end first.
///
/// \code
/// sluice::Readback<float> losses{
///     1, [&](std::size_t, std::span<const float> loss) { history.push_back(loss[0]); }};
/// sluice::Stage train{"train", [&](sluice::StreamRef stream, Features& in) {
///                         decoder.step(stream, in);
///                         losses.push(stream, decoder.loss());
///                     }};
/// \endcode
template <class T, Backend B = DefaultBackend>
class Readback {
public:
    /// For results of up to `count` values each, of which `slots` may be on their way at once, beside those of graphs.
    /// Throws `Error` when the handler is empty, `slots` is below one, or there is not enough memory.
    template <std::invocable<std::size_t, std::span<const T>> Handler>
    Readback(std::size_t count, Handler handler, int slots = 16)
        : state_(State::make(count, sizeof(T), detail::make_owned<HandlerOf<Handler>>(std::move(handler)),
                             slots)) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64,
                      "sluice::Readback: values must be trivially copyable, and aligned to 64 bytes at most");
    }

    /// Does not compile.
    template <class Handler>
    requires(!std::invocable<Handler, std::size_t, std::span<const T>>)
        Readback(std::size_t, Handler, [[maybe_unused]] int slots = 16) {
        static_assert(sizeof(Handler) == 0, "sluice::Readback: the handler must be callable as "
                                            "handler(std::size_t index, std::span<const T> values)");
    }

    /// Does not compile.
    template <class First, class... Rest>
    requires(!std::convertible_to<First, std::size_t>) explicit Readback(const First&, const Rest&...) {
        static_assert(sizeof(First) == 0,
                      "sluice::Readback: the largest number of values of a result comes first, and the "
                      "handler behind it, as in Readback<float>{1, handler}");
    }

    Readback(const Readback&) = delete;            ///< Cannot be copied.
    Readback& operator=(const Readback&) = delete; ///< Cannot be assigned.
    /// Waits for copies under way.
    ~Readback() { reset(); }

    /// Enqueues the copy of `values`, device memory of up to `count` values, on `stream`; the handler is given as many.
    /// Later work of that stream may overwrite them. Throws `Error`, also in a plain `capture`, and what the handler throws.
    void push(BasicStreamRef<B> stream, DeviceSpan<const T, B> values) {
        state_->push(stream, values.data(), values.size(), nullptr);
    }
    /// The same for a result whose length the device alone knows: copies all of `values` and the one number in `length`,
    /// and the handler is given the first `length[0]` of them. A length that is negative, or beyond `values`, is thrown as
    /// an `Error` in the handler's stead.
    void push(BasicStreamRef<B> stream, DeviceSpan<const T, B> values,
              DeviceSpan<const std::int64_t, B> length) {
        state_->push(stream, values.data(), values.size(), &length);
    }

    /// Hands over what has arrived, without waiting. Throws `Error`, and what the handler throws.
    void poll() { state_->poll(); }

    /// Waits for all results and hands them over. Throws `Error`, and what the handler throws.
    void finish() { state_->finish(); }

    /// Waits for copies under way, drops what has not been handed over, and starts anew from index 0. Call it
    /// where the pipeline is reset: results of work that failed are still in the way otherwise. Call `poll` before it to have
    /// the results of the batches before the one that failed.
    void reset() noexcept { state_->reset(); }

    /// Results that have been pushed since the readback was made or reset, those of replays included.
    std::size_t pushed() const noexcept { return state_->pushed(); }

private:
    using State = detail::ReadbackState<B>;

    template <class Handler>
    struct HandlerOf final : State::AnyHandler {
        explicit HandlerOf(Handler wrapped) : handler(std::move(wrapped)) {
            detail::require_callable("readback: the handler", handler);
        }
        void operator()(std::size_t index, const std::byte* values, std::size_t size) override {
            handler(index, std::span<const T>(reinterpret_cast<const T*>(values), size));
        }
        Handler handler;
    };

    detail::Shared<State> state_;
};

} // namespace sluice
