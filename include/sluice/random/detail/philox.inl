// The bodies of philox.hpp.
#pragma once

#include <sluice/random/philox.hpp>

namespace sluice {

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

// The low half of the first word counts blocks, the high half is the operation, so that a key's runs never meet.
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
