/// \file
/// Random numbers that are counted, not streamed: the n-th number of a sample depends on what it is for,
/// never on which thread drew it, in which order, or on which backend.
///
/// Philox4x32-10 follows J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011.
#pragma once

#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice {

/// Four 32-bit words: a counter before the rounds, random bits after them.
struct PhiloxBlock {
    std::uint32_t word[4]; ///< Of a counter, the least significant first.
};

/// Ten rounds of Philox4x32 over `counter`, under a 64-bit key (`key_low` first).
SLUICE_HOST_DEVICE constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::uint32_t key_low,
                                                       std::uint32_t key_high);

/// What a run of random numbers is for. Two runs that differ in any member are independent.
struct RandomKey {
    std::uint64_t seed = 0;      ///< Of the program's run.
    std::uint32_t epoch = 0;     ///< The pass over the samples.
    std::uint64_t sample = 0;    ///< The sample's number.
    std::uint16_t operation = 0; ///< What the numbers serve; the caller gives each use a number.
};

/// Draws the numbers of one key in order. Trivially copyable; the same on the host and in a kernel, bit by
/// bit. A key holds 2^18 numbers (2^16 blocks of four), after which they repeat.
class CountedRandom {
public:
    /// Begins at the key's first number.
    SLUICE_HOST_DEVICE constexpr explicit CountedRandom(const RandomKey& key);

    /// 32 random bits.
    SLUICE_HOST_DEVICE constexpr std::uint32_t next_u32();

    /// Uniform in [0, 1), in steps of 2^-24.
    SLUICE_HOST_DEVICE constexpr float uniform();

    /// Uniform among 0 … bound-1 (the bias is below bound / 2^32); 0 when `bound` is 0.
    SLUICE_HOST_DEVICE constexpr std::uint32_t below(std::uint32_t bound);

private:
    PhiloxBlock counter_;
    PhiloxBlock drawn_{};
    std::uint32_t key_low_;
    std::uint32_t key_high_;
    std::uint32_t used_ = 4;
};

} // namespace sluice

#include <sluice/random/detail/philox.inl>
