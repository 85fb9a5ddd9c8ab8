// RaggedBatch and its views: what a batch holds, what kernels see of it, and what it says when asked.
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <sluice/ragged/packer.hpp>
#include <sluice/ragged/workspace.hpp>

#include "ragged/ragged_ops.hpp"
#include "ragged/random_rows.hpp"
#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_batch {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

/// Writes `values` at `byte` of the batch's block.
template <class T, class V>
void overwrite(const BasicStream<B>& stream, RaggedBatch<T, B>& batch, std::size_t byte,
               const std::vector<V>& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    copy_and_wait(stream, batch.block().subspan(byte, bytes.size()), bytes);
}

struct Box {
    std::uint8_t x1, y1, x2, y2;
    friend bool operator==(const Box&, const Box&) = default;
};

} // namespace

static_assert(std::is_trivially_copyable_v<RaggedView<Box>>);
static_assert(std::is_trivially_copyable_v<RaggedTarget<Box>>);
static_assert(std::is_convertible_v<RaggedView<Box>, RaggedView<const Box>>);
static_assert(!std::is_convertible_v<RaggedView<const Box>, RaggedView<Box>>);
static_assert(!std::is_copy_constructible_v<RaggedBatch<Box, B>>);
static_assert(std::is_nothrow_move_constructible_v<RaggedBatch<Box, B>>);

TEST_CASE("counts are equal where each of their numbers is") {
    const RaggedCounts counts{1, 2, 3, 4, RaggedExcess::rows};
    CHECK(counts == RaggedCounts{1, 2, 3, 4, RaggedExcess::rows});
    for (const RaggedCounts& other : {RaggedCounts{9, 2, 3, 4, RaggedExcess::rows},
                                      {1, 9, 3, 4, RaggedExcess::rows},
                                      {1, 2, 9, 4, RaggedExcess::rows},
                                      {1, 2, 3, 9, RaggedExcess::rows},
                                      {1, 2, 3, 4, RaggedExcess::values}})
        CHECK_FALSE(counts == other);
}

TEST_CASE("RaggedBatch: starts with no rows, with and without a stream") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({5, 20});
    const RaggedBatch<float, B> ordered({0, 0}, stream);
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{});
    CHECK(ordered.counts_and_wait(stream) == RaggedCounts{});
    batch.require_valid_and_wait(stream);
    ordered.require_valid_and_wait(stream);
    CHECK(batch.capacity() == RaggedCapacity{5, 20});
    CHECK(batch.values().size() == 20);
    CHECK(batch.offsets().size() == 6);
    CHECK(to_lists_and_wait(stream, batch).empty());
}

TEST_CASE("RaggedBatch: one block, each part at a multiple of 256 bytes") {
    RaggedBatch<Box, B> batch({100, 1000});
    const auto address = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
    const std::uintptr_t begin = address(batch.block().data());
    CHECK(begin % 256 == 0);
    CHECK(address(batch.counts().data()) == begin);
    CHECK(address(batch.offsets().data()) == begin + 256);
    CHECK(address(batch.values().data()) == begin + 256 + 1024);
    CHECK(batch.block().bytes() == 256 + 1024 + 4000);
    const RaggedView<Box> view = batch.view();
    CHECK(view.values() == batch.values().data());
    CHECK(view.offsets() == batch.offsets().data());
    CHECK(view.counts_pointer() == batch.counts().data());
    CHECK(view.row_capacity() == 100);
    CHECK(view.value_capacity() == 1000);
    // The address of a value beyond 2^31 is computed in 64 bits.
    CHECK(view.over(static_cast<char*>(nullptr)).value_capacity() == 1000);
}

TEST_CASE("RaggedBatch: kernels walk rows and find the row of a value") {
    const BasicStream<B> stream;
    const RaggedCapacity capacity{40, 300};
    for (std::uint64_t sample = 0; sample < 60; ++sample) {
        CAPTURE(sample);
        const Lists<Number> rows = random_rows(capacity, sample);
        RaggedPacker<Number, B> packer(capacity);
        RaggedBatch<Number, B> batch(capacity, stream);
        DeviceBuffer<Number, B> sums(40, stream);
        DeviceBuffer<std::int64_t, B> rows_of(300, stream);
        fill_bytes(stream, sums, 0xee);
        fill_bytes(stream, rows_of, 0xee);
        packer.pack(rows);
        packer.copy_to(stream, batch);
        ops::sums_and_rows(stream.get(), batch.view(), sums.data(), rows_of.data());
        std::vector<Number> got_sums(40);
        std::vector<std::int64_t> got_rows(300);
        copy_and_wait(stream, got_sums, sums);
        copy_and_wait(stream, got_rows, rows_of);

        std::vector<Number> want_sums(40, 0xeeeeeeee);
        std::vector<std::int64_t> want_rows = row_ids_of(rows);
        want_rows.resize(300, static_cast<std::int64_t>(0xeeeeeeeeeeeeeeee));
        for (std::size_t row = 0; row < rows.size(); ++row) {
            want_sums[row] = 0;
            for (const Number value : rows[row])
                want_sums[row] += value;
        }
        CHECK(got_sums == want_sums);
        CHECK(got_rows == want_rows);
        CHECK(to_lists_and_wait(stream, batch) == rows);
    }
}

TEST_CASE("RaggedBatch: work on the device makes rows, or refuses with what it needs") {
    const BasicStream<B> stream;
    RaggedBatch<Number, B> batch({3, 10}, stream);
    const auto make = [&](const std::vector<std::int64_t>& lengths) {
        DeviceBuffer<std::int64_t, B> memory(lengths.size(), stream);
        copy_and_wait(stream, memory, lengths);
        ops::make_rows(stream.get(), batch.target(), memory.data(),
                       static_cast<std::int64_t>(lengths.size()));
    };
    make({2, 0, 8});
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{3, 10, 8, 0});
    CHECK(to_lists_and_wait(stream, batch) == Lists<Number>{{0, 1}, {}, {0, 1, 2, 3, 4, 5, 6, 7}});

    make({2, 9});
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{0, 0, 0, 11, RaggedExcess::values});
    const std::string values = text_of([&] { batch.require_valid_and_wait(stream); });
    CHECK(contains(values, "room for 3 rows and 10 values"));
    CHECK(contains(values, "holds no result: 11 values were needed"));
    CHECK_FALSE(text_of([&] { (void)to_lists_and_wait(stream, batch); }).empty());

    make({1, 1, 1, 1});
    CHECK(contains(text_of([&] { batch.require_valid_and_wait(stream); }),
                   "holds no result: 4 rows were needed"));

    make({1}); // and it can be used again
    CHECK(to_lists_and_wait(stream, batch) == Lists<Number>{{0}});
    batch.clear(stream);
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{});
}

TEST_CASE("RaggedBatch: offsets and counts that cannot be are told apart") {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch({4, 10}, stream);
    const auto problem = [&](RaggedCounts counts, const std::vector<std::int64_t>& offsets) {
        overwrite(stream, batch, 0, std::vector<RaggedCounts>{counts});
        overwrite(stream, batch, batch.layout().offsets_at, offsets);
        return text_of([&] { batch.require_valid_and_wait(stream); });
    };
    CHECK(problem({3, 6, 4, 0}, {0, 2, 2, 6}) == "");
    CHECK(contains(problem({3, 6, 4, 0}, {1, 2, 2, 6}), "start at 1; expected 0"));
    CHECK(contains(problem({3, 6, 4, 0}, {0, 3, 2, 6}), "decrease from 3 to 2 at row 1"));
    CHECK(contains(problem({3, 6, 4, 0}, {0, 2, 2, 8}), "end at 8 and there are 6 values"));
    CHECK(contains(problem({3, 6, 3, 0}, {0, 2, 2, 6}), "longest row holds 3 values, and it holds 4"));
    CHECK(contains(problem({5, 6, 4, 0}, {0, 2, 2, 6}), "says that it holds 5 rows and 6 values"));
    CHECK(contains(problem({3, 11, 4, 0}, {0, 2, 2, 11}), "says that it holds 3 rows and 11 values"));
    CHECK(contains(problem({-1, 6, 4, 0}, {0, 2, 2, 6}), "says that it holds -1 rows"));
    CHECK(contains(problem({3, -2, 4, 0}, {0, 2, 2, 6}), "-2 values"));
}

TEST_CASE("RaggedBatch: what was refused is told in the singular and the plural") {
    const auto need = [](RaggedExcess excess, std::int64_t refused) {
        RaggedCounts counts{};
        counts.excess = excess;
        counts.refused = refused;
        return detail::ragged_need(counts);
    };
    CHECK(need(RaggedExcess::rows, 1) == "1 row was needed");
    CHECK(need(RaggedExcess::rows, 2) == "2 rows were needed");
    CHECK(need(RaggedExcess::values, 1) == "1 value was needed");
    CHECK(need(RaggedExcess::values, 2) == "2 values were needed");
    CHECK(need(RaggedExcess::row_length, 1) == "a row of 1 value was longer than rows may be");
    CHECK(need(RaggedExcess::row_length, 2) == "a row of 2 values was longer than rows may be");
}

TEST_CASE("RaggedBatch: asked while the stream is being captured") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({4, 10}, stream);
    B::begin_capture(stream.get(), CaptureMode::this_thread);
    const std::string text = text_of([&] { (void)batch.counts_and_wait(stream); });
    B::destroy_graph(B::end_capture(stream.get()));
    CHECK(contains(text, "RaggedBatch::counts_and_wait"));
    CHECK(contains(text, "being captured"));
}

TEST_CASE("RaggedBatch: moving keeps the memory, and everything is given back") {
    const BasicStream<B> stream;
    const Alive before = alive_now<B>();
    {
        RaggedPacker<Box, B> packer({2, 8});
        // With the stream, since a copy is on its way when they go.
        RaggedBatch<Box, B> first({2, 8}, stream);
        packer.pack(Lists<Box>{{{1, 2, 3, 4}}, {{5, 6, 7, 8}, {9, 10, 11, 12}}});
        packer.copy_to(stream, first);
        const Box* const values = first.values().data();
        RaggedBatch<Box, B> second = std::move(first);
        CHECK(second.values().data() == values);
        first = RaggedBatch<Box, B>({1, 1}, stream);
        CHECK(first.counts_and_wait(stream) == RaggedCounts{});
        RaggedPacker<Box, B> moved = std::move(packer);
        packer = RaggedPacker<Box, B>({1, 1});
        packer = std::move(moved);
        CHECK(packer.rows() == 2);
        packer.copy_to(stream, second);
        CHECK(to_lists_and_wait(stream, second)[1][1] == Box{9, 10, 11, 12});
        packer.copy_to(stream, second);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE("RaggedBatch and RaggedWorkspace: capacities below 0") {
    CHECK(contains(text_of([] { RaggedBatch<float, B> batch({-1, 5}); }), "-1 rows and 5 values"));
    CHECK(contains(text_of([] { RaggedPacker<float, B> packer({1, -5}); }), "1 row and -5 values"));
    CHECK(contains(text_of([] {
                       RaggedWorkspace<B> workspace(RaggedCapacity{1, -5});
                   }),
                   "expected 0 or more"));
    CHECK(contains(text_of([] { RaggedColumn<float, B> column(-5); }), "-5"));
}

TEST_CASE("RaggedCapacity: equal keys hash alike") {
    std::unordered_set<RaggedCapacity> keys;
    for (std::int64_t rows = 1; rows <= 1024; rows *= 2) {
        for (std::int64_t values = 1; values <= 1 << 20; values *= 2)
            keys.insert({rows, values});
    }
    CHECK(keys.size() == 11 * 21);
    CHECK(keys.count({8, 1024}) == 1);
    CHECK(keys.count({1024, 8}) == 1);
    CHECK(keys.count({3, 8}) == 0);
}

TEST_CASE("RaggedWorkspace: hands out aligned pieces that do not overlap, up to its end") {
    RaggedWorkspace<B> workspace(RaggedCapacity{100, 1000});
    CHECK(workspace.bytes() >= 1000 * RaggedWorkspace<B>::default_bytes_per_value);
    auto scratch = workspace.scratch();
    const auto* first = scratch.take<char>(std::size_t{3});
    const auto* second = scratch.take<double>(std::int64_t{10});
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 256 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(second) == reinterpret_cast<std::uintptr_t>(first) + 256);
    const std::size_t left = scratch.left();
    CHECK(left == workspace.bytes() - 512);
    const std::string text = text_of([&] { (void)scratch.take<char>(left + 1); });
    CHECK(contains(text, "needs " + std::to_string(left + 1) + " bytes"));
    CHECK(contains(text, "workspace of " + std::to_string(workspace.bytes()) + " bytes"));
    (void)scratch.take<char>(left);
    CHECK(scratch.left() == 0);
    // The next operation starts anew.
    auto next = workspace.scratch();
    CHECK(next.take<char>(std::size_t{1}) == first);
}

} // namespace ragged_batch
