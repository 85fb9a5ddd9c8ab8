/// \file
/// Bytes that no device or memory can compress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <sluice/random/philox.hpp>

namespace bench {

/// Random bytes, the same again after 16 MiB.
inline std::vector<std::uint8_t> random_bytes(std::size_t count) {
    static const std::vector<std::uint32_t> words = [] {
        std::vector<std::uint32_t> drawn(std::size_t{1} << 22);
        sluice::CountedRandom random(sluice::RandomKey{.seed = 7});
        for (std::uint32_t& word : drawn)
            word = random.next_u32();
        return drawn;
    }();
    std::vector<std::uint8_t> bytes(count);
    const std::size_t period = 4 * words.size();
    for (std::size_t at = 0; at < count; at += period)
        std::memcpy(bytes.data() + at, words.data(), std::min(period, count - at));
    return bytes;
}

} // namespace bench
