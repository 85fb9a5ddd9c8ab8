// Whether the numbers are spread as they should be. The bounds are wide: a right generator of another seed
// would pass, a wrong scale or a missing bit does not.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <sluice/random/philox.hpp>

#include "support/doctest.hpp"

namespace random_distribution {

using namespace sluice;

namespace {

constexpr int draws = 200000; // of one key, and fewer than it holds

/// How far counts are from even, in standard deviations of the chi-squared distribution.
double unevenness(const std::vector<int>& counts) {
    double total = 0;
    for (const int count : counts)
        total += count;
    const double expected = total / static_cast<double>(counts.size());
    double chi_squared = 0;
    for (const int count : counts)
        chi_squared += (count - expected) * (count - expected) / expected;
    const double freedom = static_cast<double>(counts.size()) - 1;
    return (chi_squared - freedom) / std::sqrt(2 * freedom);
}

} // namespace

TEST_CASE("uniform numbers lie in [0, 1) and are spread evenly") {
    CountedRandom random(RandomKey{.seed = 1});
    std::vector<int> counts(100);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < draws; ++i) {
        const float value = random.uniform();
        REQUIRE(value >= 0.0f);
        REQUIRE(value < 1.0f);
        const double exact = value;
        sum += exact;
        squares += exact * exact;
        ++counts[static_cast<std::size_t>(exact * 100)];
    }
    CHECK(std::abs(sum / draws - 0.5) < 0.005);
    CHECK(std::abs(squares / draws - 1.0 / 3.0) < 0.005);
    CHECK(std::abs(unevenness(counts)) < 6);
}

TEST_CASE("uniform numbers are steps of 2^-24, and odd ones occur") {
    CountedRandom random(RandomKey{.seed = 2});
    bool odd = false;
    for (int i = 0; i < 1000; ++i) {
        const float steps = random.uniform() * 16777216.0f;
        REQUIRE(steps == std::floor(steps));
        odd = odd || std::fmod(steps, 2.0f) == 1.0f;
    }
    CHECK(odd);
}

TEST_CASE("uniform and below use the leading bits of the same word") {
    CountedRandom words(RandomKey{.seed = 3});
    CountedRandom uniforms(RandomKey{.seed = 3});
    CountedRandom halves(RandomKey{.seed = 3});
    for (int i = 0; i < 100; ++i) {
        const std::uint32_t word = words.next_u32();
        CHECK(uniforms.uniform() == static_cast<float>(word >> 8) / 16777216.0f);
        CHECK(halves.below(2) == word >> 31);
    }
}

TEST_CASE("numbers below a bound reach all of them, evenly") {
    for (const std::uint32_t bound : {2u, 3u, 10u, 97u, 1000u}) {
        CAPTURE(bound);
        CountedRandom random(RandomKey{.seed = bound});
        std::vector<int> counts(bound);
        for (int i = 0; i < draws; ++i) {
            const std::uint32_t value = random.below(bound);
            REQUIRE(value < bound);
            ++counts[value];
        }
        CHECK(*std::min_element(counts.begin(), counts.end()) > 0);
        CHECK(std::abs(unevenness(counts)) < 6);
    }
}

TEST_CASE("the smallest and the largest bounds") {
    CountedRandom random(RandomKey{.seed = 4});
    std::uint32_t largest = 0;
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(random.below(0) == 0);
        REQUIRE(random.below(1) == 0);
        largest = std::max(largest, random.below(0xFFFFFFFFu));
    }
    CHECK(largest > 0xF0000000u);
}

TEST_CASE("each bit is set half the time, whatever samples and operations it is drawn for") {
    std::array<int, 32> set{};
    constexpr int keys = 20000;
    for (int i = 0; i < keys; ++i) {
        CountedRandom random(RandomKey{.seed = 5,
                                       .epoch = static_cast<std::uint32_t>(i % 3),
                                       .sample = static_cast<std::uint64_t>(i),
                                       .operation = static_cast<std::uint16_t>(i % 7)});
        const std::uint32_t word = random.next_u32();
        for (std::size_t bit = 0; bit < 32; ++bit)
            set[bit] += static_cast<int>((word >> bit) & 1u);
    }
    const double deviation = std::sqrt(keys * 0.25);
    for (const int count : set)
        CHECK(std::abs(count - keys / 2) < 6 * deviation);
}

} // namespace random_distribution
