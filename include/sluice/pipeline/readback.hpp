/// \file
/// Results on their way back to the host, without a wait in the loop.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

/// Copies small results, such as a loss a batch, to the host and hands them over in order once they have
/// arrived.
///
/// `handler(std::size_t index, std::span<const T> values)` is called for each result, in the order of the
/// pushes, on the thread that calls `push`, `poll` or `finish`; index counts from 0. Nothing is lost: when
/// all slots are on their way, `push` waits for the oldest.
///
/// A push cannot be captured: under `Schedule::graphed` its stage opts out (`StageOptions::graphed`), or all steps run
/// eagerly. Driven by the thread that drives the pipeline. Belongs to the device that was current when it was made; can
/// be neither copied nor moved. Destroying it waits for copies under way, and drops what has not been handed over: call
/// `finish` first.
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
    /// For results of `count` values each, of which `slots` may be on their way at once. Throws `Error` when
    /// `slots` is below one, or there is not enough memory.
    template <std::invocable<std::size_t, std::span<const T>> Handler>
    Readback(std::size_t count, Handler handler, int slots = 16)
        : Readback(count, std::make_unique<HandlerOf<Handler>>(std::move(handler)), slots) {}

    Readback(const Readback&) = delete;
    Readback& operator=(const Readback&) = delete;
    ~Readback() { reset(); }

    /// Enqueues the copy of `values`, device memory of `count` values, on `stream`. Later work of that stream
    /// may overwrite them. Throws `Error`, also while `stream` is being captured, and what the handler throws.
    void push(BasicStreamRef<B> stream, DeviceSpan<const T, B> values);

    /// Hands over what has arrived, without waiting. Throws `Error`, and what the handler throws.
    void poll();

    /// Waits for all results and hands them over. Throws `Error`, and what the handler throws.
    void finish();

    /// Waits for copies under way, drops what has not been handed over, and starts anew from index 0. Call it
    /// where the pipeline is reset: results of work that failed are still in the way otherwise.
    void reset() noexcept;

    /// Results that have been pushed since the readback was made or reset.
    std::size_t pushed() const noexcept { return pushed_; }

private:
    struct Slot {
        explicit Slot(std::size_t count)
            : values(count), arrived(EventOptions{.sleep_while_waiting = true}) {}
        PinnedBuffer<T, B> values;
        BasicEvent<B> arrived;
    };

    // Instead of std::function, whose header costs each file that includes sluice a tenth of a second.
    struct AnyHandler {
        virtual ~AnyHandler() = default;
        virtual void operator()(std::size_t index, std::span<const T> values) = 0;
    };
    template <class Handler>
    struct HandlerOf final : AnyHandler {
        explicit HandlerOf(Handler wrapped) : handler(std::move(wrapped)) {}
        void operator()(std::size_t index, std::span<const T> values) override { handler(index, values); }
        Handler handler;
    };

    Readback(std::size_t count, std::unique_ptr<AnyHandler> handler, int slots);
    void hand_over();

    std::size_t count_;
    std::unique_ptr<AnyHandler> handler_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::size_t pushed_ = 0;
    std::size_t handed_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, Backend B>
Readback<T, B>::Readback(std::size_t count, std::unique_ptr<AnyHandler> handler, int slots)
    : count_(count), handler_(std::move(handler)) {
    if (slots < 1)
        throw Error("a readback needs at least 1 slot, got " + std::to_string(slots));
    slots_.reserve(static_cast<std::size_t>(slots));
    for (int slot = 0; slot < slots; ++slot)
        slots_.push_back(std::make_unique<Slot>(count));
}

template <class T, Backend B>
void Readback<T, B>::reset() noexcept {
    for (; handed_ < pushed_; ++handed_) {
        try {
            slots_[handed_ % slots_.size()]->arrived.synchronize();
        } catch (...) {
            // The copy will not come; whoever waits for its stream is told so.
        }
    }
    pushed_ = handed_ = 0;
}

template <class T, Backend B>
void Readback<T, B>::push(BasicStreamRef<B> stream, DeviceSpan<const T, B> values) {
    if (values.size() != count_) {
        throw Error("readback: " + std::to_string(values.size()) + " values were pushed; this one takes " +
                    std::to_string(count_) + " at a time");
    }
    if (detail::records(stream)) {
        throw Error(
            "readback: a push was being captured, and its replays would hand nothing over; push outside of "
            "captures, in a pipeline from a stage that opts out (StageOptions::graphed)");
    }
    poll();
    if (pushed_ - handed_ == slots_.size()) {
        slots_[handed_ % slots_.size()]->arrived.synchronize();
        hand_over();
    }
    Slot& slot = *slots_[pushed_ % slots_.size()];
    copy(stream, slot.values, values);
    try {
        slot.arrived.record(stream);
    } catch (...) {
        // No event will tell of the copy's end, and the slot's memory must not go before it.
        try {
            stream.synchronize();
        } catch (...) {
        }
        throw;
    }
    ++pushed_;
}

template <class T, Backend B>
void Readback<T, B>::poll() {
    while (handed_ < pushed_ && slots_[handed_ % slots_.size()]->arrived.done())
        hand_over();
}

template <class T, Backend B>
void Readback<T, B>::finish() {
    while (handed_ < pushed_) {
        slots_[handed_ % slots_.size()]->arrived.synchronize();
        hand_over();
    }
}

template <class T, Backend B>
void Readback<T, B>::hand_over() {
    const PinnedBuffer<T, B>& values = slots_[handed_ % slots_.size()]->values;
    // Counted first, so that a handler that throws is not called for the same result again.
    const std::size_t index = handed_++;
    (*handler_)(index, std::span<const T>(values.data(), values.size()));
}

} // namespace sluice
