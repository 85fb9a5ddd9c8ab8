// Samplers: every sample once an epoch, in an order that depends on nothing but the seed and the epoch; epochs, and
// several sources in one pipeline.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <type_traits>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/source_case.hpp"

namespace pipeline_source_sampler {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

namespace {

std::vector<std::uint64_t> all_of(const Sampler& sampler) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t index = 0; index < sampler.batches(); ++index) {
        for (const std::uint64_t sample : sampler.samples(index))
            numbers.push_back(sample);
    }
    return numbers;
}

std::vector<std::uint64_t> counted(std::uint64_t count) {
    std::vector<std::uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
    return numbers;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

} // namespace

static_assert(std::is_trivially_copyable_v<Sampler>);
static_assert(std::is_trivially_copyable_v<Sampler::Samples>);

TEST_CASE("Sampler: every sample once an epoch, in another order each epoch and for each seed") {
    for (const std::uint64_t samples : {0u, 1u, 2u, 3u, 4u, 5u, 16u, 17u, 100u, 1000u, 4096u, 4097u}) {
        CAPTURE(samples);
        const Sampler sampler{{.samples = samples, .batch = 7, .seed = 5}};
        CHECK(sampler.size() == samples);
        const auto order = all_of(sampler);
        CHECK(sorted(order) == counted(samples));
        CHECK(all_of(Sampler{{.samples = samples, .batch = 7, .seed = 5}}) == order);
        CHECK(sorted(all_of(sampler.of_epoch(1))) == counted(samples));
        if (samples >= 16) {
            CHECK(order != counted(samples));
            CHECK(all_of(sampler.of_epoch(1)) != order);
            CHECK(all_of(sampler.of_epoch(1).of_epoch(0)) == order);
            CHECK(all_of(Sampler{{.samples = samples, .batch = 7, .seed = 6}}) != order);
        }
        CHECK(all_of(Sampler{{.samples = samples, .batch = 7, .shuffle = false}}) == counted(samples));
    }
}

TEST_CASE("Sampler: orders stay what they were, so that a training goes on with its own from a checkpoint") {
    const auto second = [](std::uint64_t samples) {
        const Sampler sampler{{.samples = samples, .batch = 5, .seed = 7, .epoch = 3}};
        std::vector<std::uint64_t> numbers;
        for (const std::uint64_t sample : sampler.samples(1))
            numbers.push_back(sample);
        return numbers;
    };
    using Numbers = std::vector<std::uint64_t>;
    CHECK(second(10) == Numbers{0, 7, 2, 8, 6});
    CHECK(second(5000) == Numbers{256, 88, 280, 3832, 376});
    CHECK(second(1000000) == Numbers{362908, 101242, 791059, 331917, 802422});
}

TEST_CASE("Sampler: all orders of few samples are about equally frequent") {
    for (const std::uint64_t samples : {2u, 3u, 4u, 5u}) {
        CAPTURE(samples);
        std::size_t orders = 1;
        for (std::uint64_t i = 2; i <= samples; ++i)
            orders *= i;
        const std::size_t epochs = 200 * orders;
        const Sampler sampler{{.samples = samples, .batch = samples, .seed = 3}};
        std::map<std::vector<std::uint64_t>, std::size_t> seen;
        for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
            ++seen[all_of(sampler.of_epoch(epoch))];
        CHECK(seen.size() == orders);
        double chi_squared = 0;
        for (const auto& [order, count] : seen)
            chi_squared += std::pow(static_cast<double>(count) - 200.0, 2) / 200.0;
        // Its mean is the degrees of freedom, its variance twice that.
        const auto freedom = static_cast<double>(orders - 1);
        CHECK(chi_squared < freedom + 5 * std::sqrt(2 * freedom));
    }
}

TEST_CASE("Sampler: each place of many has each sample about equally often") {
    constexpr std::uint64_t samples = 50;
    constexpr std::uint32_t epochs = 5000;
    const Sampler sampler{{.samples = samples, .batch = samples, .seed = 8}};
    std::vector<std::size_t> counts(samples * samples);
    std::size_t neighbours = 0; // that follow each other as they did unshuffled
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        const auto order = all_of(sampler.of_epoch(epoch));
        for (std::size_t place = 0; place < samples; ++place) {
            ++counts[place * samples + order[place]];
            neighbours += place > 0 && order[place] == order[place - 1] + 1 ? 1u : 0u;
        }
    }
    double chi_squared = 0;
    for (const std::size_t count : counts)
        chi_squared += std::pow(static_cast<double>(count) - 100.0, 2) / 100.0;
    CHECK(chi_squared == doctest::Approx(49.0 * 49.0).epsilon(0.15));
    CHECK(static_cast<double>(neighbours) / epochs == doctest::Approx(49.0 / 50.0).epsilon(0.1));
}

TEST_CASE("Sampler: shards are disjoint and complete, and differ by one sample at most") {
    for (const bool shuffle : {true, false}) {
        for (const std::uint64_t samples : {0u, 1u, 5u, 64u, 103u}) {
            for (const std::uint64_t shards : {1u, 2u, 3u, 8u}) {
                CAPTURE(samples);
                CAPTURE(shards);
                std::vector<std::uint64_t> all;
                std::uint64_t fewest = samples;
                for (std::uint64_t shard = 0; shard < shards; ++shard) {
                    const Sampler sampler{{.samples = samples,
                                           .batch = 4,
                                           .shuffle = shuffle,
                                           .seed = 2,
                                           .epoch = 9,
                                           .shard = shard,
                                           .shards = shards}};
                    const auto mine = all_of(sampler);
                    CHECK(mine.size() == sampler.size());
                    CHECK(mine.size() == samples / shards + (shard < samples % shards ? 1 : 0));
                    CHECK(sampler.common_batches() == (samples / shards + 3) / 4);
                    fewest = std::min(fewest, sampler.batches());
                    all.insert(all.end(), mine.begin(), mine.end());
                }
                CHECK(sorted(all) == counted(samples));
                CHECK(fewest == Sampler{{.samples = samples, .batch = 4, .shards = shards}}.common_batches());
            }
        }
    }
}

TEST_CASE("Sampler: samples_of_all counts the samples of one batch of all shards") {
    for (const bool keep_last : {true, false}) {
        for (const std::uint64_t samples : {0u, 1u, 5u, 7u, 64u, 103u}) {
            for (const std::uint64_t shards : {1u, 2u, 3u, 8u}) {
                CAPTURE(samples);
                CAPTURE(shards);
                const auto sampler = [&](std::uint64_t shard) {
                    return Sampler{{.samples = samples,
                                    .batch = 4,
                                    .shard = shard,
                                    .shards = shards,
                                    .keep_last = keep_last}};
                };
                for (std::uint64_t batch = 0; batch <= sampler(0).batches(); ++batch) {
                    std::uint64_t sum = 0;
                    for (std::uint64_t shard = 0; shard < shards; ++shard)
                        sum += sampler(shard).samples(batch).size();
                    CHECK(sampler(shards - 1).samples_of_all(batch) == sum);
                }
            }
        }
    }
}

TEST_CASE("Sampler: a last batch that is not full is kept, shorter, or dropped") {
    const Sampler kept{{.samples = 10, .batch = 4}};
    const Sampler dropped{{.samples = 10, .batch = 4, .keep_last = false}};
    CHECK(kept.batches() == 3);
    CHECK(dropped.batches() == 2);
    for (const Sampler& sampler : {kept, dropped}) {
        CHECK(sampler.samples(0).size() == 4);
        CHECK(sampler.samples(1).size() == 4);
        CHECK(sampler.samples(3).empty());
    }
    CHECK(kept.samples(2).size() == 2);
    CHECK(dropped.samples(2).empty());
    CHECK(kept.samples(1)[3] == dropped.samples(1)[3]);
    CHECK(Sampler{{.samples = 8, .batch = 4}}.batches() == 2);
    CHECK(Sampler{{.samples = 3, .batch = 4, .keep_last = false}}.batches() == 0);
    CHECK(Sampler{{.samples = 3, .batch = std::uint64_t{1} << 63}}.samples(0).size() == 3);
}

TEST_CASE("Sampler: data sets of any size, without memory for them") {
    for (const int bits : {32, 33, 40, 63}) {
        const std::uint64_t samples = (std::uint64_t{1} << bits) - 5;
        const Sampler sampler{{.samples = samples, .batch = 1000, .seed = 4}};
        std::vector<std::uint64_t> some;
        for (const std::uint64_t index : {std::uint64_t{0}, samples / 2000, sampler.batches() - 1}) {
            for (const std::uint64_t sample : sampler.samples(index)) {
                CHECK(sample < samples);
                some.push_back(sample);
            }
        }
        some = sorted(some);
        CHECK(std::adjacent_find(some.begin(), some.end()) == some.end());
    }
}

TEST_CASE("Sampler: a place at which there is no sample is given back, whatever the samples") {
    for (const std::uint64_t samples : {0U, 1U, 2U, 5U, 10U, 1000U}) {
        const Sampler sampler{{.samples = samples, .batch = 3}};
        for (const std::uint64_t beyond : {std::uint64_t{0}, std::uint64_t{7}, ~samples})
            CHECK(sampler.at(samples + beyond) == samples + beyond);
    }
    const Sampler none{{}};
    CHECK(none.batches() == 0);
    CHECK(none.samples(0).begin() == none.samples(0).end());
}

TEST_CASE("Sampler: what cannot be sampled is refused in a sentence") {
    CHECK(text_of([] { Sampler{{.samples = 3, .batch = 0}}; }) ==
          "a sampler needs batches of at least 1 sample, got 0");
    CHECK(text_of([] { Sampler{{.samples = 3, .shard = 2, .shards = 2}}; }) ==
          "a sampler needs a shard below the number of shards, got shard 2 of 2");
    CHECK(contains(text_of([] { Sampler{{.samples = 3, .shards = 0}}; }), "got shard 0 of 0"));
    CHECK(contains(text_of([] { Sampler{{.samples = ~std::uint64_t{0}}}; }), "2^63 samples at most"));
}

TEST_CASE(
    "Sampler: in a source, over epochs, with rewind and without a gap, whatever the number of workers") {
    constexpr std::uint32_t epochs = 3;
    for_each_crew([](Options options) {
        Sampler sampler{{.samples = 23, .batch = 5, .seed = 1}};
        using Batch = std::vector<std::uint64_t>;
        const auto make = [](int) { return Batch{}; };
        std::vector<std::vector<std::uint64_t>> with_rewind(epochs), without(epochs);
        {
            options.batches = sampler.batches();
            Source source{make,
                          [&](std::size_t index, Batch& out) {
                              out.clear();
                              for (const std::uint64_t sample : sampler.samples(index))
                                  out.push_back(sample);
                          },
                          options};
            for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
                source.rewind();
                sampler = sampler.of_epoch(epoch);
                for (const auto& batch : source)
                    with_rewind[epoch].insert(with_rewind[epoch].end(), batch->begin(), batch->end());
            }
        }
        {
            options.batches = epochs * sampler.batches();
            Source source{make,
                          [&](std::size_t index, Batch& out) {
                              out.clear();
                              const auto epoch = static_cast<std::uint32_t>(index / sampler.batches());
                              for (const std::uint64_t sample :
                                   sampler.of_epoch(epoch).samples(index % sampler.batches()))
                                  out.push_back(sample);
                          },
                          options};
            for (const auto& batch : source) {
                auto& to = without[batch.index() / sampler.batches()];
                to.insert(to.end(), batch->begin(), batch->end());
            }
        }
        for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
            CHECK(with_rewind[epoch] == all_of(sampler.of_epoch(epoch)));
            CHECK(without[epoch] == with_rewind[epoch]);
        }
    });
}

TEST_CASE("Source: several sources feed one pipeline in turns") {
    constexpr std::size_t words = 16;
    constexpr std::size_t batches = 8;
    using Buffer = PinnedBuffer<Word, B>;
    const auto make = [](int) { return Buffer(words); };
    const auto fill_from = [](std::size_t first) {
        return [first](std::size_t index, Buffer& out) {
            dawdle(index);
            for (std::size_t i = 0; i < words; ++i)
                out[i] = input_word(first + index, i);
        };
    };
    for_each_crew([&](Options options) {
        options.batches = batches;
        Source real{make, fill_from(0), options};
        options.workers = 1;
        options.batches = batches / 2; // ends before the other one
        Source synthetic{make, fill_from(100), options};
        Chain<B> chain(2, words, 2 * batches);
        auto pipeline = chain.pipeline<2>();
        std::vector<std::size_t> passed;
        while (true) {
            const auto one = real.next();
            const auto other = synthetic.next();
            if (!one && !other)
                break;
            if (one) {
                passed.push_back(one.index());
                pipeline.submit(one);
            }
            if (other) {
                passed.push_back(100 + other.index());
                pipeline.submit(other);
            }
        }
        pipeline.finish();
        CHECK(passed.size() == batches + batches / 2);
        CHECK(chain.results(passed.size()) == chain_results(2, words, passed));
    });
}

} // namespace pipeline_source_sampler
