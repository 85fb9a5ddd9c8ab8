// What a stress scope has set, and what is drawn from its seed.
#pragma once

#include <atomic>
#include <cstdint>

#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice {
struct Stress;
} // namespace sluice

namespace sluice::detail::checked {

/// What the environment variable `SLUICE_STRESS` asks for by `text`. Throws `Error`.
Stress stress_of(const char* text);

/// One for the program.
class StressState {
public:
    /// Never destroyed: threads that run replays end with the program.
    static StressState& instance();

    /// A number for the next operation of a stream: the same for the same seed and operation of the same stream. Throws `Error` once
    /// where the environment asks for a stress that there is not, and the program goes on without.
    std::uint64_t next_of(Key stream);
    Stress settings();
    /// Gives what was set, in `settings` too.
    bool change(bool on_now, Stress& settings);

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

} // namespace sluice::detail::checked
