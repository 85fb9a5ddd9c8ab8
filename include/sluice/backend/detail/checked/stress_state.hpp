/// \file
/// What a stress scope has set, and what is drawn from its seed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

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
/// Those of the scope around, and whether there is one.
struct OuterStress {
    bool on = false;
    StressSettings settings{};
};

/// One for the program.
class StressState {
public:
    /// Never destroyed: threads that run replays end with the program.
    static StressState& instance();

    /// A number for the next operation of a stream: the same for the same seed and operation of the same stream.
    std::uint64_t next_of(Key stream);
    StressSettings settings();
    OuterStress change(const OuterStress& to);

    std::atomic<bool> on{false};
    std::atomic<bool> poisons{false};
    std::atomic<bool> permutes{false};
    std::atomic<std::uint64_t> operations{0}, delays{0}, poisonings{0}, holds{0}, orders{0};
    std::atomic<std::uint64_t> progress{0}; ///< Grows whenever a stream gets on or is handed something.

private:
    struct Books;
    StressState();

    Books& books_;
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
    return StressState::instance().change(OuterStress{
        true, StressSettings{stress.seed, stress.poison, stress.delay_us, stress.one_in, stress.permute}});
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

#if SLUICE_HAS_CHECKER_BODIES
#include <sluice/backend/detail/checked/stress_state.inl>
#endif
