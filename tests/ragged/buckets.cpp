// Capacity buckets: a short ladder, and a graph for each bucket that batches have needed.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/ragged/buckets.hpp>
#include <sluice/ragged/packer.hpp>

#include "ragged/ragged_ops.hpp"
#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_buckets {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

/// What a graph of one bucket works on.
struct Bucket {
    Bucket(RaggedCapacity capacity, const BasicStream<B>& stream)
        : batch(capacity, stream), sums(static_cast<std::size_t>(capacity.rows), stream),
          rows_of(static_cast<std::size_t>(capacity.values), stream) {}
    RaggedBatch<Number, B> batch;
    DeviceBuffer<Number, B> sums;
    DeviceBuffer<std::int64_t, B> rows_of;
};

} // namespace

TEST_CASE("RaggedBuckets: each doubles the one before, up to the largest") {
    const RaggedBuckets buckets{{3, 10}, {10, 85}};
    const std::vector<RaggedCapacity> expected{{3, 10}, {6, 20}, {10, 40}, {10, 80}, {10, 85}};
    REQUIRE(buckets.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(buckets[i] == expected[i]);
    CHECK(contains(text_of([&] { (void)buckets[5]; }), "bucket 5 was asked for, of 5"));

    // The smallest with room, whatever is needed.
    for (std::int64_t rows = 0; rows <= 10; ++rows) {
        for (std::int64_t values = 0; values <= 85; ++values) {
            std::size_t index = 0;
            while (expected[index].rows < rows || expected[index].values < values)
                ++index;
            CHECK(buckets.index_for({rows, values}) == index);
            CHECK(buckets.bucket_for({rows, values}) == expected[index]);
        }
    }
}

TEST_CASE("RaggedBuckets: ends of the range") {
    CHECK(RaggedBuckets{{5, 7}, {5, 7}}.size() == 1);
    const RaggedBuckets from_nothing{{0, 0}, {0, 5}};
    CHECK(from_nothing.bucket_for({0, 0}) == RaggedCapacity{0, 0});
    CHECK(from_nothing.bucket_for({0, 1}) == RaggedCapacity{0, 1});
    CHECK(from_nothing.bucket_for({0, 5}) == RaggedCapacity{0, 5});
    // No overflow on the way to the largest.
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const RaggedBuckets wide{{1, 1}, {most, most}};
    CHECK(wide.size() == 64);
    CHECK(wide.bucket_for({5, std::int64_t{1} << 40}) ==
          RaggedCapacity{std::int64_t{1} << 40, std::int64_t{1} << 40});
    CHECK(wide.bucket_for({most, 0}) == RaggedCapacity{most, most});
}

TEST_CASE("RaggedBuckets: what is too much, and ladders that go down") {
    const RaggedBuckets buckets{{4, 16}, {16, 64}};
    const std::string text = text_of([&] { (void)buckets.bucket_for({3, 65}); });
    CHECK(contains(text, "3 rows and 65 values are needed"));
    CHECK(contains(text, "16 rows and 64 values is available"));
    CHECK_FALSE(text_of([&] { (void)buckets.bucket_for({17, 1}); }).empty());
    CHECK(text_of([&] {
              (void)buckets.bucket_for({-5, 1});
          }) == "no bucket is for -5 rows and 1 value; expected 0 or more of each");
    CHECK_FALSE(text_of([&] { (void)buckets.index_for({1, -5}); }).empty());
    CHECK(contains(text_of([] { RaggedBuckets{{4, 16}, {3, 64}}; }), "from 4 rows and 16 values to 3 rows"));
    CHECK_FALSE(text_of([] { RaggedBuckets{{4, 16}, {4, 15}}; }).empty());
    CHECK_FALSE(text_of([] { RaggedBuckets{{-4, 16}, {4, 16}}; }).empty());
}

TEST_CASE("RaggedBuckets: growing batches move to the next graph and come back without a new capture") {
#if defined(SLUICE_TEST_CUDA)
    ops::load_ragged_kernels();
#endif
    const BasicStream<B> stream;
    const RaggedBuckets buckets{{8, 32}, {64, 1024}};
    RaggedPacker<Number, B> packer(buckets[buckets.size() - 1]);
    std::vector<std::unique_ptr<Bucket>> memory;
    for (std::size_t i = 0; i < buckets.size(); ++i)
        memory.push_back(std::make_unique<Bucket>(buckets[i], stream));
    GraphCapture<RaggedCapacity, B> graphs{{.capacity = buckets.size(), .warmup = 0}};
    std::uint64_t sample = 0;
    const auto step = [&](RaggedCapacity about) {
        const Lists<Number> rows = random_rows(about, sample++, 5);
        const RaggedCapacity needed{static_cast<std::int64_t>(rows.size()), offsets_of(rows).back()};
        const RaggedCapacity bucket = buckets.bucket_for(needed);
        Bucket& at = *memory[buckets.index_for(needed)];
        packer.clear(bucket);
        packer.pack(rows);
        graphs.run(stream, bucket, [&](Ref to) {
            fill_bytes(to, at.sums, 0xee);
            packer.copy_to(to, at.batch);
            ops::sums_and_rows(to.get(), at.batch.view(), at.sums.data(), at.rows_of.data());
        });
        packer.mark_in_use(stream);
        CHECK(to_lists_and_wait(stream, at.batch) == rows);
        std::vector<Number> got(at.sums.size());
        std::vector<Number> want(at.sums.size(), 0xeeeeeeee);
        copy_and_wait(stream, got, at.sums);
        for (std::size_t row = 0; row < rows.size(); ++row) {
            want[row] = 0;
            for (const Number value : rows[row])
                want[row] += value;
        }
        CHECK(got == want);
    };
    const auto lap = [&] {
        for (std::int64_t size = 1; size <= 16; size *= 2) {
            for (int time = 0; time < 30; ++time)
                step({4 * size, 64 * size});
        }
        for (int time = 0; time < 30; ++time)
            step({8, 32});
    };
    lap();
    const std::uint64_t captures = graphs.counters().captures;
    CHECK(captures > 2);
    CHECK(captures <= buckets.size());
    lap();
    CHECK(graphs.counters().captures <= buckets.size());
    sample = 0;
    const std::uint64_t settled = graphs.counters().captures;
    lap(); // the sizes of the first lap again
    CHECK(graphs.counters().captures == settled);
    CHECK(graphs.counters().evictions == 0);
    CHECK(graphs.counters().refusals == 0);
    CHECK(graphs.counters().instantiations == settled);
}

} // namespace ragged_buckets
