// What streams run between operations under stress.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/stress.hpp>

namespace sluice::detail::checked {

inline void pass_time(int microseconds) {
    // A shorter sleep takes as long as this.
    if (microseconds >= 60) {
        sleep_thread(std::int64_t{1000} * microseconds);
        return;
    }
    const std::int64_t end = steady_nanoseconds() + std::int64_t{1000} * microseconds;
    while (steady_nanoseconds() < end)
        sched_yield();
}

/// Returns when nothing has got on elsewhere for a while, or after `longest_us`.
inline void hold_back(int longest_us) {
    const std::atomic<std::uint64_t>& progress = StressState::instance().progress;
    const std::int64_t end = steady_nanoseconds() + std::int64_t{1000} * longest_us;
    std::uint64_t seen = progress.load(std::memory_order_relaxed);
    for (int still = 0; still < 2 && steady_nanoseconds() < end;) {
        pass_time(60);
        const std::uint64_t now = progress.load(std::memory_order_relaxed);
        still = now == seen ? still + 1 : 0;
        seen = now;
    }
}

/// What becomes of one operation.
struct StressDraw {
    int late_us = 0;      ///< Of the stream,
    int host_late_us = 0; ///< and of the thread that hands it over.
    bool held = false;

    StressDraw(const Stress& settings, std::uint64_t number, std::uint64_t launch) {
        const std::uint64_t bits = stress_bits(settings.seed, number, launch);
        const auto one_in = static_cast<std::uint64_t>(settings.one_in);
        const std::uint64_t share =
            (bits >> 32) & 0xFFFFU; // Squared: short ones are more frequent than long ones.
        const auto length =
            static_cast<int>((static_cast<std::uint64_t>(settings.delay_us) * share * share) >> 32);
        late_us = (bits & 0xFFFFU) % one_in == 0 ? length : 0;
        host_late_us = launch == 0 && ((bits >> 16) & 0xFFFFU) % (4 * one_in) == 0 ? length : 0;
        // Some operations in a row: the stream comes last for a while.
        constexpr std::uint64_t row = 16;
        held =
            settings.permute && stress_bits(~settings.seed, number / row, launch / row) % (2 * one_in) == 0;
    }
};

/// A callable for a stream. One that was captured draws anew in each launch.
struct StressPoint {
    std::uint64_t number = 0;
    int late_us = 0;
    bool held = false;
    std::shared_ptr<std::atomic<std::uint64_t>> launches{};

    void operator()() const {
        StressState& state = StressState::instance();
        state.progress.fetch_add(1, std::memory_order_relaxed);
        if (!state.on.load(std::memory_order_acquire))
            return;
        const Stress settings = state.settings();
        int late = late_us;
        bool holds = held;
        if (launches != nullptr) {
            const StressDraw draw(settings, number, 1 + launches->fetch_add(1, std::memory_order_relaxed));
            late = draw.late_us;
            holds = draw.held;
        }
        if (late > 0) {
            state.delays.fetch_add(1, std::memory_order_relaxed);
            pass_time(late);
        }
        if (holds) {
            state.holds.fetch_add(1, std::memory_order_relaxed);
            hold_back(200 + 5 * settings.delay_us);
        }
        state.progress.fetch_add(1, std::memory_order_relaxed);
    }
};

/// Comes between two operations of `stream`, a stream of the backend that is checked. `behind_wait`: and before no other one
/// perhaps, so that in a capture it might be left unjoined.
template <class B>
void stress_stream(typename B::NativeStream stream, bool behind_wait = false) {
    if constexpr (requires { B::enqueue(stream, StressPoint{}); }) {
        bool captured = false;
        if constexpr (requires { B::is_capturing(stream); }) {
            if (B::is_default_stream(stream))
                return; // Captures watch it.
            captured = B::is_capturing(stream);
        }
        // It joins a capture by its first wait: work before that would run now, outside of it.
        if (captured ? behind_wait : capture_ledger().depth > 0)
            return;
        StressState& state = StressState::instance();
        state.operations.fetch_add(1, std::memory_order_relaxed);
        state.progress.fetch_add(1, std::memory_order_relaxed);
        StressPoint point{.number = state.next_of(key_of(stream))};
        const StressDraw draw(state.settings(), point.number, 0);
        if (captured) {
            point.launches = std::make_shared<std::atomic<std::uint64_t>>(0);
        } else {
            if (draw.host_late_us > 0) {
                state.delays.fetch_add(1, std::memory_order_relaxed);
                pass_time(draw.host_late_us);
            }
            if (draw.late_us == 0 && !draw.held)
                return;
            point.late_us = draw.late_us;
            point.held = draw.held;
        }
        B::enqueue(stream, std::move(point));
    }
}

} // namespace sluice::detail::checked
