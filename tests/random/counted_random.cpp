// Contract 8: the numbers of a key depend on the key and on nothing else.
#include <cstdint>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include <sluice/random/philox.hpp>

#include "support/doctest.hpp"

namespace random_counted_random {

using namespace sluice;

namespace {

std::vector<std::uint32_t> draw(const RandomKey& key, int count) {
    CountedRandom random(key);
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < count; ++i)
        numbers.push_back(random.next_u32());
    return numbers;
}

constexpr std::uint32_t third_number(const RandomKey& key) {
    CountedRandom random(key);
    (void)random.next_u32();
    (void)random.next_u32();
    return random.next_u32();
}

} // namespace

static_assert(std::is_trivially_copyable_v<CountedRandom>);
static_assert(!std::is_convertible_v<RandomKey, CountedRandom>);

// Block 0 of the key of zeros is the first known answer: its third word.
static_assert(third_number({}) == 0xbc57ac4cu);

TEST_CASE("a key's place in the counter is part of the format") {
    // Saved results depend on these: seed is the key; the counter is (operation and block, epoch, sample).
    const RandomKey key{.seed = 0x299f31d0a4093822u,
                        .epoch = 0x85a308d3u,
                        .sample = 0x0370734413198a2eu,
                        .operation = 0x243f};
    const PhiloxBlock first =
        philox4x32_10({{0x243f0000u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u);
    const PhiloxBlock second =
        philox4x32_10({{0x243f0001u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u);
    const std::vector<std::uint32_t> expected{first.word[0],  first.word[1],  first.word[2],  first.word[3],
                                              second.word[0], second.word[1], second.word[2], second.word[3]};
    CHECK(draw(key, 8) == expected);
}

TEST_CASE("every part of a key counts") {
    const RandomKey base{.seed = 1, .epoch = 2, .sample = 3, .operation = 4};
    std::vector<RandomKey> keys(9, base);
    keys[1].seed = 5;
    keys[2].seed = base.seed + (std::uint64_t{1} << 32); // the upper halves too
    keys[3].epoch = 5;
    keys[4].sample = 5;
    keys[5].sample = base.sample + (std::uint64_t{1} << 32);
    keys[6].operation = 5;
    keys[7].operation = 0xFFFF;
    keys[8].epoch = 0xFFFFFFFFu;
    std::set<std::vector<std::uint32_t>> runs;
    for (const RandomKey& key : keys)
        runs.insert(draw(key, 4));
    CHECK(runs.size() == keys.size());
}

TEST_CASE("drawn in any order, samples get the same numbers") {
    constexpr std::uint64_t samples = 64;
    std::vector<std::vector<std::uint32_t>> forward;
    for (std::uint64_t sample = 0; sample < samples; ++sample)
        forward.push_back(draw({.seed = 9, .sample = sample}, 10));
    for (std::uint64_t sample = samples; sample-- > 0;)
        CHECK(draw({.seed = 9, .sample = sample}, 10) == forward[sample]);

    // Several at a time, one number each in turn.
    std::vector<CountedRandom> randoms;
    for (std::uint64_t sample = 0; sample < samples; ++sample)
        randoms.emplace_back(RandomKey{.seed = 9, .sample = sample});
    for (std::size_t i = 0; i < 10; ++i) {
        for (std::uint64_t sample = 0; sample < samples; ++sample)
            REQUIRE(randoms[sample].next_u32() == forward[sample][i]);
    }
}

TEST_CASE("drawn by any thread, samples get the same numbers") {
    constexpr std::size_t samples = 64;
    std::vector<std::vector<std::uint32_t>> alone(samples);
    for (std::size_t sample = 0; sample < samples; ++sample)
        alone[sample] = draw({.seed = 7, .epoch = 1, .sample = sample}, 100);
    for (const std::size_t workers : {1u, 3u, 8u}) {
        std::vector<std::vector<std::uint32_t>> together(samples);
        std::vector<std::thread> threads;
        for (std::size_t worker = 0; worker < workers; ++worker) {
            threads.emplace_back([&, worker] {
                for (std::size_t sample = worker; sample < samples; sample += workers)
                    together[sample] = draw({.seed = 7, .epoch = 1, .sample = sample}, 100);
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        CHECK(together == alone);
    }
}

TEST_CASE("a copy goes on from where the original was") {
    CountedRandom random(RandomKey{.seed = 3});
    for (int i = 0; i < 5; ++i) // in the middle of a block
        (void)random.next_u32();
    CountedRandom copy = random;
    for (int i = 0; i < 10; ++i)
        CHECK(copy.next_u32() == random.next_u32());
}

TEST_CASE("a key holds 2^18 numbers, and never reaches into another operation's") {
    constexpr int numbers = 1 << 18;
    CountedRandom random(RandomKey{.seed = 11, .operation = 1});
    const std::uint32_t first = CountedRandom(RandomKey{.seed = 11, .operation = 1}).next_u32();
    const std::uint32_t next_operation = CountedRandom(RandomKey{.seed = 11, .operation = 2}).next_u32();
    REQUIRE(first != next_operation);
    for (int i = 0; i < numbers; ++i)
        (void)random.next_u32();
    CHECK(random.next_u32() == first); // they repeat
}

} // namespace random_counted_random
