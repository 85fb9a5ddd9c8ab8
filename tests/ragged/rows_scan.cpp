// Softmax and exclusive sums of rows.
#include <algorithm>

#include "ragged/rows_case.hpp"

namespace ragged_rows_scan {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

namespace {

/// With a workspace, or without, which decides who goes through long rows.
template <bool Shared>
struct Scans {
    explicit Scans(Ref stream)
        : memory(room, stream), workspace(Shared ? &memory : nullptr), in(stream), again(stream),
          shares(stream, room.values), sums(room.values, stream), wide_sums(stream, room.values) {}

    void load(Ref stream, std::uint64_t sample) {
        rows = mixed_rows(sample, some_float);
        in.load(stream, rows);
        again.load(stream, rows);
    }
    void poison(Ref stream) {
        shares.poison(stream);
        wide_sums.poison(stream);
        fill_bytes(stream, sums.values(), 0xee);
    }
    void enqueue(Ref stream) {
        ragged::softmax(stream, shares.memory, in.batch, workspace);
        ragged::exclusive_sum(stream, sums.view_over(in.batch), in.batch, workspace);
        ragged::exclusive_sum(stream, wide_sums.memory, in.batch, workspace);
        ragged::softmax(stream, again.batch, again.batch, workspace); // in place
    }
    void check(Ref stream) {
        const auto share = shares.read(stream);
        const auto wide = wide_sums.read(stream);
        std::vector<float> sum(share.size());
        copy_and_wait(stream, sum, sums.values());
        std::size_t i = 0;
        std::size_t wrong = 0;
        for (const std::vector<float>& row : rows) {
            double total = 0, before = 0, terms = 0;
            const double greatest = row.empty() ? 0 : *std::max_element(row.begin(), row.end());
            for (const float value : row)
                total += std::exp(value - greatest);
            for (const float value : row) {
                const double expected = std::exp(value - greatest) / total;
                const bool right =
                    close(share[i], expected, expected, 1e-3) &&
                    close(sum[i], before, terms, 1e-7 * (20 + static_cast<double>(row.size()) / 8)) &&
                    close(wide[i], before, terms, 1e-12);
                wrong += right ? 0u : 1u;
                before += value;
                terms += std::abs(value);
                ++i;
            }
        }
        CHECK(wrong == 0);
        CHECK(untouched(share, i));
        CHECK(untouched(sum, i));
        CHECK(untouched(wide, i));
        // The same bits in place.
        std::vector<float> replaced;
        for (const std::vector<float>& row : to_lists_and_wait(stream, again.batch))
            replaced.insert(replaced.end(), row.begin(), row.end());
        CHECK(same_bytes(replaced,
                         std::vector<float>(share.begin(), share.begin() + static_cast<std::ptrdiff_t>(i))));
    }

    RaggedWorkspace<B> memory;
    RaggedWorkspace<B>* workspace;
    Operand<float> in, again;
    Result<float> shares;
    RaggedColumn<float, B> sums;
    Result<double> wide_sums;
    Lists<float> rows;
};

struct IntegerSums {
    explicit IntegerSums(Ref stream) : in(stream), sums(stream, room.values) {}
    void load(Ref stream, std::uint64_t sample) {
        rows = mixed_rows(sample,
                          [](CountedRandom& random) { return static_cast<std::uint8_t>(random.below(256)); });
        in.load(stream, rows);
    }
    void poison(Ref stream) { sums.poison(stream); }
    void enqueue(Ref stream) { ragged::exclusive_sum(stream, sums.memory, in.batch); }
    void check(Ref stream) {
        std::vector<std::int64_t> expected;
        for (const std::vector<std::uint8_t>& row : rows) {
            std::int64_t before = 0;
            for (const std::uint8_t value : row) {
                expected.push_back(before);
                before += value;
            }
        }
        const auto got = sums.read(stream);
        CHECK(std::equal(expected.begin(), expected.end(), got.begin()));
        CHECK(untouched(got, expected.size()));
    }
    Operand<std::uint8_t> in;
    Result<std::int64_t> sums;
    Lists<std::uint8_t> rows;
};

} // namespace

TEST_CASE("softmax and exclusive sums are those of plain loops") { drive<Scans<false>>(3 * kinds); }
TEST_CASE("softmax and exclusive sums of shared rows are those of plain loops") {
    drive<Scans<true>>(3 * kinds);
}

TEST_CASE("exclusive sums of integers are exact, in a wider type") { drive<IntegerSums>(3 * kinds); }

TEST_CASE("large values do not overflow a softmax") {
    const BasicStream<B> stream;
    Operand<float> in(stream);
    Result<float> shares(stream, room.values);
    in.load(stream, Lists<float>{{1000.0f, 1000.0f}, {-1000.0f}, {1000.0f, -1000.0f}});
    ragged::softmax(stream, shares.memory, in.batch);
    const auto got = shares.read(stream);
    CHECK(std::vector<float>(got.begin(), got.begin() + 5) ==
          std::vector<float>{0.5f, 0.5f, 1.0f, 1.0f, 0.0f});
}

TEST_CASE("a result over other rows, or too small, is refused") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    RaggedBatch<float, B> other({10, 100}, stream);
    DeviceBuffer<float, B> few(99, stream);
    CHECK(contains(text_of([&] { ragged::softmax(stream, other, batch); }), "rows of its own"));
    CHECK(contains(text_of([&] { ragged::exclusive_sum(stream, few, batch); }), "at least 100"));
    // The same offsets, and counts of its own; and the other way round.
    const RaggedView<const float> rows = batch.view();
    const RaggedView<float> mine = other.view();
    RaggedView<float> more(mine.values(), rows.offsets(), mine.counts_pointer(), 10, 100);
    RaggedView<float> elsewhere(mine.values(), mine.offsets(), rows.counts_pointer(), 10, 100);
    CHECK(contains(text_of([&] { ragged::softmax(stream, more, batch); }), "rows of its own"));
    CHECK(contains(text_of([&] { ragged::softmax(stream, elsewhere, batch); }), "rows of its own"));
    RaggedView<float> same(mine.values(), rows.offsets(), rows.counts_pointer(), 10, 100);
    CHECK(text_of([&] { ragged::softmax(stream, same, batch); }).empty());
    stream.sync();
}

TEST_CASE("a result that overlaps the rows' values in part is refused, and the same elements are not") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> memory(150, stream);
    const RaggedView<const float> rows = batch.view().over(std::as_const(memory).data() + 10);
    const auto at = [&](std::size_t offset) { return memory.span().subspan(offset, 100); };
    CHECK(text_of([&] { ragged::softmax(stream, at(9), rows); }) ==
          "ragged::softmax: the result and the rows' values overlap in part, expected the same elements, or "
          "other memory for the result");
    CHECK(contains(text_of([&] { ragged::exclusive_sum(stream, at(11), rows); }),
                   "ragged::exclusive_sum: the result and the rows' values overlap in part"));
    CHECK(text_of([&] { ragged::softmax(stream, at(10), rows); }).empty());
    CHECK(text_of([&] { ragged::exclusive_sum(stream, at(10), rows); }).empty());
    stream.sync();
}

TEST_CASE("a workspace with too little room is refused") {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch({10, 100}, stream);
    RaggedWorkspace<B> workspace({1, 1}, stream);
    const RaggedView<float> few = batch.view();
    // Nothing looks at the values that it says are there.
    const RaggedView<float> many(few.values(), few.offsets(), few.counts_pointer(), 10,
                                 std::int64_t{1} << 28);
    CHECK(contains(text_of([&] { ragged::softmax(stream, many, many, &workspace); }), "too small"));
    CHECK(contains(text_of([&] { ragged::exclusive_sum(stream, many, many, &workspace); }), "too small"));
    // Nor is one that is enough for these, and not for all that its capacity says.
    CHECK(text_of([&] { ragged::softmax(stream, few, few, &workspace); }) ==
          "ragged::softmax: the workspace is too small: it was made for 1 row and 1 value, and an operand "
          "has room for "
          "10 rows and 100 values; expected as much at least");
    RaggedWorkspace<B> enough({10, 100}, stream);
    ragged::softmax(stream, few, few, &enough);
    stream.sync();
}

} // namespace ragged_rows_scan
