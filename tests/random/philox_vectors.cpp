// Philox4x32-10 against known answers.
#include <array>
#include <cstdint>
#include <ostream>
#include <random>

#include <sluice/random/philox.hpp>

#include "support/doctest.hpp"

namespace random_philox_vectors {

using namespace sluice;

namespace {

using Words = std::array<std::uint32_t, 4>;

constexpr Words words_of(PhiloxBlock block) {
    return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

/// The same function in other words: the two products of a round as one 128-bit number, the key as one of 64
/// bits.
Words philox_again(Words counter, std::uint64_t key) {
    for (int round = 0; round < 10; ++round) {
        const auto key_low = static_cast<std::uint32_t>(key);
        const auto key_high = static_cast<std::uint32_t>(key >> 32);
        const auto left = static_cast<unsigned __int128>(0xD2511F53u) * counter[0];
        const auto right = static_cast<unsigned __int128>(0xCD9E8D57u) * counter[2];
        const auto both = (left << 64) | right;
        const auto part = [both](unsigned index) { return static_cast<std::uint32_t>(both >> (32 * index)); };
        counter = {part(1) ^ counter[1] ^ key_low, part(0), part(3) ^ counter[3] ^ key_high, part(2)};
        const std::uint64_t low = (key & 0xFFFFFFFFu) + 0x9E3779B9u;
        const std::uint64_t high = (key >> 32) + 0xBB67AE85u;
        key = (high << 32) | (low & 0xFFFFFFFFu);
    }
    return counter;
}

} // namespace

// The three lines for philox4x32 with 10 rounds in the file kat_vectors of Random123 1.09: zeros, ones, and the
// digits of pi.
static_assert(words_of(philox4x32_10({{0, 0, 0, 0}}, 0, 0)) ==
              Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
static_assert(words_of(philox4x32_10({{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}}, 0xffffffffu,
                                     0xffffffffu)) ==
              Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
static_assert(words_of(philox4x32_10({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u,
                                     0x299f31d0u)) ==
              Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});

TEST_CASE("the known answers hold when the program runs too") {
    volatile std::uint32_t ones = 0xffffffffu; // unknown to the compiler
    CHECK(words_of(philox4x32_10({{ones, ones, ones, ones}}, ones, ones)) ==
          Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
}

TEST_CASE("a second implementation agrees on counters and keys at random") {
    CHECK(philox_again({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822u) ==
          Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
    std::mt19937 engine(1);
    const auto draw = [&engine] { return static_cast<std::uint32_t>(engine()); };
    for (int i = 0; i < 10000; ++i) {
        const Words counter{draw(), draw(), draw(), draw()};
        const std::uint32_t low = draw();
        const std::uint32_t high = draw();
        const Words ours =
            words_of(philox4x32_10({{counter[0], counter[1], counter[2], counter[3]}}, low, high));
        REQUIRE(ours == philox_again(counter, (static_cast<std::uint64_t>(high) << 32) | low));
    }
}

} // namespace random_philox_vectors
