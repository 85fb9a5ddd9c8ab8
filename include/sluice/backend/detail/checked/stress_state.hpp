/// \file
/// What a stress scope has set, and what is drawn from its seed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/error.hpp>

namespace sluice {
struct Stress;
struct StressCounts;
} // namespace sluice

namespace sluice::detail::checked {

/// `Stress` as it is kept.
struct StressSettings {
    std::uint64_t seed = 1;
    bool poison = true;
    int delay_us = 200;
    int one_in = 4;
    bool permute = true;
};
using OuterStress = std::optional<StressSettings>;

/// One for the program.
class StressState {
public:
    /// Never destroyed: threads that run replays end with the program.
    static StressState& instance() {
        static StressState& state = *new StressState;
        return state;
    }

    /// A number for the next operation of a stream: the same for the same seed and operation of the same stream.
    std::uint64_t next_of(Key stream) {
        const std::lock_guard lock(mutex_);
        std::size_t number = 0;
        while (number < streams_.size() && streams_[number].first != stream)
            ++number;
        if (number == streams_.size())
            streams_.emplace_back(stream, 0);
        return (static_cast<std::uint64_t>(number) << 40) + streams_[number].second++;
    }
    StressSettings settings() {
        const std::lock_guard lock(mutex_);
        return settings_;
    }
    OuterStress change(const OuterStress& to) {
        const std::lock_guard lock(mutex_);
        OuterStress former;
        if (on.load(std::memory_order_relaxed))
            former = settings_;
        settings_ = to.value_or(StressSettings{});
        streams_.clear();
        poisons.store(to && to->poison, std::memory_order_relaxed);
        permutes.store(to && to->permute, std::memory_order_relaxed);
        on.store(to.has_value(), std::memory_order_release);
        return former;
    }

    std::atomic<bool> on{false};
    std::atomic<bool> poisons{false};
    std::atomic<bool> permutes{false};
    std::atomic<std::uint64_t> operations{0}, delays{0}, poisonings{0}, holds{0}, orders{0};
    std::atomic<std::uint64_t> progress{0}; ///< Grows whenever a stream gets on or is handed something.

private:
    StressState() {
#if SLUICE_CHECKED // Only there is something that it could reach.
        if (const char* const seed = std::getenv("SLUICE_STRESS"); seed != nullptr && *seed != '\0') {
            char* rest = nullptr;
            settings_.seed = std::strtoull(seed, &rest, 10);
            const auto next = [&rest](int& value, long least) {
                if (*rest != ',')
                    return;
                const long given = std::strtol(rest + 1, &rest, 10);
                value = static_cast<int>(given < least ? least : given > 1000000 ? 1000000 : given);
            };
            next(settings_.one_in, 1);
            next(settings_.delay_us, 0);
            on = poisons = permutes = true;
        }
#endif
    }

    std::mutex mutex_;
    StressSettings settings_;
    std::vector<std::pair<Key, std::uint64_t>> streams_; // In the order in which they were first seen.
};

/// 64 bits that look random, of a seed and two numbers. (The finaliser of SplitMix64, thrice.)
inline std::uint64_t stress_bits(std::uint64_t seed, std::uint64_t number, std::uint64_t of = 0) noexcept {
    std::uint64_t bits = 0;
    for (const std::uint64_t part : {seed, number, of}) {
        bits += part + 0x9E3779B97F4A7C15U;
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
        bits ^= bits >> 31;
    }
    return bits;
}

/// Throws `Error` for what is out of range.
template <class S>
OuterStress begin_stress(const S& stress) {
    if (stress.delay_us < 0)
        throw Error("Stress::delay_us must be 0 or more, got " + std::to_string(stress.delay_us));
    if (stress.one_in < 1)
        throw Error("Stress::one_in must be 1 or more, got " + std::to_string(stress.one_in));
    return StressState::instance().change(
        StressSettings{stress.seed, stress.poison, stress.delay_us, stress.one_in, stress.permute});
}
inline void end_stress(const OuterStress& outer) { (void)StressState::instance().change(outer); }

template <class Counts = StressCounts>
Counts stress_counts() noexcept {
    const StressState& state = StressState::instance();
    Counts counts;
    counts.operations = state.operations.load(std::memory_order_relaxed);
    counts.delays = state.delays.load(std::memory_order_relaxed);
    counts.poisonings = state.poisonings.load(std::memory_order_relaxed);
    counts.holds = state.holds.load(std::memory_order_relaxed);
    counts.orders = state.orders.load(std::memory_order_relaxed);
    return counts;
}

} // namespace sluice::detail::checked
