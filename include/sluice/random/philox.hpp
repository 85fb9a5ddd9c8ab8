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
    std::uint32_t word[4];
};

/// Ten rounds of Philox4x32 over `counter`, under a 64-bit key (`key_low` first).
SLUICE_HOST_DEVICE constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::uint32_t key_low,
                                                       std::uint32_t key_high);

/// What a run of random numbers is for. Two runs that differ in any member are independent.
struct RandomKey {
    std::uint64_t seed = 0;
    std::uint32_t epoch = 0;
    std::uint64_t sample = 0;
    std::uint16_t operation = 0;
};

/// Draws the numbers of one key in order. Trivially copyable; the same on the host and in a kernel, bit by
/// bit. A key holds 2^18 numbers (2^16 blocks of four), after which they repeat.
class CountedRandom {
public:
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

// ---------------------------------------------------------------------------------------------------------------

SLUICE_HOST_DEVICE constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::uint32_t key_low,
                                                       std::uint32_t key_high) {
    constexpr std::uint64_t multiplier_0 = 0xD2511F53u;
    constexpr std::uint64_t multiplier_1 = 0xCD9E8D57u;
    constexpr std::uint32_t weyl_0 = 0x9E3779B9u;
    constexpr std::uint32_t weyl_1 = 0xBB67AE85u;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product_0 = multiplier_0 * counter.word[0];
        const std::uint64_t product_1 = multiplier_1 * counter.word[2];
        counter = PhiloxBlock{{static_cast<std::uint32_t>(product_1 >> 32) ^ counter.word[1] ^ key_low,
                               static_cast<std::uint32_t>(product_1),
                               static_cast<std::uint32_t>(product_0 >> 32) ^ counter.word[3] ^ key_high,
                               static_cast<std::uint32_t>(product_0)}};
        key_low += weyl_0;
        key_high += weyl_1;
    }
    return counter;
}

// The low half of the first word counts blocks, the high half is the operation, so that a key's runs never
// meet.
SLUICE_HOST_DEVICE constexpr CountedRandom::CountedRandom(const RandomKey& key)
    : counter_{{static_cast<std::uint32_t>(key.operation) << 16, key.epoch,
                static_cast<std::uint32_t>(key.sample), static_cast<std::uint32_t>(key.sample >> 32)}},
      key_low_{static_cast<std::uint32_t>(key.seed)}, key_high_{static_cast<std::uint32_t>(key.seed >> 32)} {}

SLUICE_HOST_DEVICE constexpr std::uint32_t CountedRandom::next_u32() {
    if (used_ == 4) {
        drawn_ = philox4x32_10(counter_, key_low_, key_high_);
        const std::uint32_t operation = counter_.word[0] & 0xFFFF0000u;
        counter_.word[0] = operation | ((counter_.word[0] + 1u) & 0xFFFFu);
        used_ = 0;
    }
    return drawn_.word[used_++];
}

SLUICE_HOST_DEVICE constexpr float CountedRandom::uniform() {
    return static_cast<float>(next_u32() >> 8) * (1.0f / 16777216.0f);
}

SLUICE_HOST_DEVICE constexpr std::uint32_t CountedRandom::below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(next_u32()) * bound) >> 32);
}

} // namespace sluice
