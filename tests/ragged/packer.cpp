// RaggedPacker: every way to make a batch gives the rows that it was made from.
#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace ragged_packer {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr RaggedCapacity capacity{24, 150};

/// What the packer holds, and what a batch holds after the copy.
template <class T>
void check_holds(const BasicStream<B>& stream, const RaggedPacker<T, B>& packer, const Lists<T>& rows) {
    CHECK(packer.rows() == static_cast<std::int64_t>(rows.size()));
    CHECK(packer.lengths() == lengths_of(rows));
    std::int64_t longest = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::span<const T> held = packer.row(static_cast<std::int64_t>(row));
        CHECK(std::vector<T>(held.begin(), held.end()) == rows[row]);
        longest = std::max(longest, static_cast<std::int64_t>(rows[row].size()));
    }
    const std::vector<T> values = joined(rows);
    CHECK(std::vector<T>(packer.values().begin(), packer.values().end()) == values);
    CHECK(packer.counts() == RaggedCounts{static_cast<std::int64_t>(rows.size()),
                                          static_cast<std::int64_t>(values.size()), longest, 0});

    RaggedBatch<T, B> batch(packer.capacity(), stream);
    fill_bytes(stream, batch.block(), 0xee);
    packer.copy_to(stream, batch);
    CHECK(batch.counts_and_wait(stream) == packer.counts());
    CHECK(batch.offsets_and_wait(stream) == offsets_of(rows));
    CHECK(to_lists_and_wait(stream, batch) == rows);
}

struct Padded {
    std::vector<std::uint32_t> values;
    std::vector<std::uint8_t> mask;
};

/// The rows at their places in a [rows, width] array, with rubbish between them. `spread`: anywhere in the row, in
/// order, otherwise at its beginning.
Padded padded(const Lists<std::uint32_t>& rows, std::size_t width, CountedRandom& random, bool spread) {
    Padded result;
    for (const auto& row : rows) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < width; ++i) {
            const std::size_t left = row.size() - next;
            const bool take = left > 0 && (!spread || left == width - i || random.below(2) == 1);
            result.values.push_back(take ? row[next++] : random.next_u32());
            result.mask.push_back(take ? static_cast<std::uint8_t>(1 + random.below(255)) : std::uint8_t{0});
        }
    }
    return result;
}

} // namespace

TEST_CASE("RaggedPacker: random rows, made in every way") {
    const BasicStream<B> stream;
    RaggedPacker<std::uint32_t, B> packer(capacity);
    for (std::uint64_t sample = 0; sample < 150; ++sample) {
        CAPTURE(sample);
        const Lists<std::uint32_t> rows = random_rows(capacity, sample);
        const std::vector<std::uint32_t> values = joined(rows);
        const std::vector<std::int64_t> lengths = lengths_of(rows);
        std::int64_t longest = 0;
        for (const std::int64_t length : lengths)
            longest = std::max(longest, length);

        packer.clear();
        CHECK(packer.rows() == 0);
        for (const auto& row : rows)
            packer.add_row(row);
        check_holds(stream, packer, rows);
        packer.pack(rows);
        check_holds(stream, packer, rows);
        packer.pack(values, lengths);
        check_holds(stream, packer, rows);
        packer.pack_offsets(values, offsets_of(rows));
        check_holds(stream, packer, rows);
        packer.pack_row_ids(values, row_ids_of(rows), static_cast<std::int64_t>(rows.size()));
        check_holds(stream, packer, rows);

        CountedRandom random(RandomKey{.seed = 9, .sample = sample});
        const std::int64_t width = longest + random.below(4);
        packer.pack_padded(padded(rows, static_cast<std::size_t>(width), random, false).values, width,
                           lengths);
        check_holds(stream, packer, rows);
        if (width > 0) {
            for (const bool spread : {false, true}) {
                const Padded from = padded(rows, static_cast<std::size_t>(width), random, spread);
                packer.pack_masked(from.values, width, from.mask);
                check_holds(stream, packer, rows);
            }
        }
    }
}

TEST_CASE("RaggedPacker: integers of any type, ranges of any kind, values of any trivially copyable type") {
    const BasicStream<B> stream;
    struct Box {
        std::int16_t corner[4];
        bool operator==(const Box&) const = default;
    };
    const Lists<Box> boxes{{{{1, 2, 3, 4}}, {{5, 6, 7, 8}}}, {}, {{{9, 10, 11, 12}}}};
    RaggedPacker<Box, B> packer({3, 3});
    packer.pack(std::list<std::vector<Box>>(boxes.begin(), boxes.end()));
    check_holds(stream, packer, boxes);
    packer.pack(std::array<std::span<const Box>, 3>{boxes[0], boxes[1], boxes[2]});
    check_holds(stream, packer, boxes);
    packer.pack(joined(boxes), std::array<std::uint8_t, 3>{2, 0, 1});
    check_holds(stream, packer, boxes);
    packer.pack_offsets(joined(boxes), std::vector<std::int32_t>{0, 2, 2, 3});
    check_holds(stream, packer, boxes);
    packer.pack_offsets(joined(boxes), std::vector<std::size_t>{0, 2, 2, 3});
    check_holds(stream, packer, boxes);
    packer.pack_row_ids(joined(boxes), std::vector<short>{0, 0, 2}, 3);
    check_holds(stream, packer, boxes);
    const bool mask[] = {false, true, true, false, false, false, true, false, false};
    std::vector<Box> array(9);
    array[1] = boxes[0][0];
    array[2] = boxes[0][1];
    array[6] = boxes[2][0];
    packer.pack_masked(array, 3, mask);
    check_holds(stream, packer, boxes);
}

TEST_CASE("RaggedPacker: a packer of no room holds the batch of no rows") {
    const BasicStream<B> stream;
    RaggedPacker<float, B> packer({0, 0});
    packer.pack(Lists<float>{});
    check_holds(stream, packer, {});
    packer.pack_offsets({}, std::vector<std::int64_t>{0});
    check_holds(stream, packer, {});
    packer.pack_padded({}, 7, std::vector<int>{});
    check_holds(stream, packer, {});
    CHECK(packer.fits(0, 0));
    CHECK_FALSE(packer.fits(-1, 0));
    CHECK_FALSE(packer.fits(0, -1));
    CHECK_FALSE(packer.fits(1, 0));
}

TEST_CASE("RaggedPacker: laid out anew within its memory") {
    const BasicStream<B> stream;
    const Lists<std::uint32_t> wide{std::vector<std::uint32_t>(100, 7)};
    Lists<std::uint32_t> tall(40);
    tall[39] = {1, 2, 3};
    RaggedPacker<std::uint32_t, B> packer({1, 200});
    packer.pack(wide);
    packer.clear({40, 10});
    CHECK(packer.capacity() == RaggedCapacity{40, 10});
    CHECK(packer.rows() == 0);
    packer.pack(tall);
    check_holds(stream, packer, tall);
    packer.clear({1, 200});
    packer.pack(wide);
    check_holds(stream, packer, wide);
}

TEST_CASE("RaggedPacker: says what fits, and how much it copies") {
    RaggedPacker<std::uint32_t, B> packer({4, 10});
    CHECK(packer.fits(4, 10));
    CHECK_FALSE(packer.fits(5, 0));
    CHECK_FALSE(packer.fits(0, 11));
    CHECK(packer.bytes() == 256 + 8);
    packer.add_row({});
    CHECK(packer.bytes() == 256 + 16);
    packer.add_row(std::vector<std::uint32_t>{1, 2, 3});
    CHECK(packer.bytes() == 512 + 12);
    CHECK(packer.fits(2, 7));
    CHECK_FALSE(packer.fits(3, 7));
    CHECK_FALSE(packer.fits(2, 8));
}

TEST_CASE("RaggedPacker: an eager copy is as long as what is held") {
    const BasicStream<B> stream;
    for (std::uint64_t sample = 0; sample < 30; ++sample) {
        CAPTURE(sample);
        RaggedPacker<std::uint32_t, B> packer(capacity);
        RaggedBatch<std::uint32_t, B> batch(capacity, stream);
        packer.pack(random_rows(capacity, sample));
        fill_bytes(stream, batch.block(), 0xee);
        packer.copy_to(stream, batch);
        std::vector<std::byte> block(batch.block().size());
        copy_and_wait(stream, block, batch.block());
        REQUIRE(packer.bytes() <= block.size());
        std::size_t changed = 0;
        for (std::size_t i = packer.bytes(); i < block.size(); ++i)
            changed += block[i] == std::byte{0xee} ? 0u : 1u;
        CHECK(changed == 0);
    }
}

TEST_CASE("graph_key: what captured work reads on the host, and not what is held") {
    const BasicStream<B> stream;
    RaggedPacker<int, B> packer({4, 10});
    RaggedColumnPacker<float, B> labels(10);
    const auto of_packer = graph_key(packer);
    packer.pack(Lists<int>{{1, 2}, {3}});
    labels.pack(packer, Lists<float>{{1, 2}, {3}});
    const auto of_labels = graph_key(labels);
    CHECK(graph_key(packer) == of_packer);
    packer.pack(Lists<int>{{1, 2, 3}});
    labels.pack(packer, Lists<float>{{1, 2, 3}});
    CHECK(graph_key(packer) == of_packer);
    CHECK(graph_key(labels) == of_labels);
    CHECK(std::get<1>(of_packer) == 4);
    CHECK(std::get<2>(of_packer) == 10);
    packer.clear({2, 8}); // laid out anew: a captured copy takes other bytes
    CHECK(graph_key(packer) != of_packer);
    labels.pack(packer, Lists<float>{});
    CHECK(graph_key(labels) != of_labels);
    packer.clear({4, 10});
    CHECK(graph_key(packer) == of_packer);
    CHECK(graph_key(RaggedPacker<int, B>({4, 10})) != of_packer);

    RaggedBatch<int, B> batch({4, 10}, stream), other({4, 10}, stream);
    CHECK(graph_key(batch) == graph_key(std::as_const(batch)));
    CHECK(graph_key(batch) != graph_key(other));
    CHECK(graph_key(batch.view()) == graph_key(RaggedView<const int>(batch.view())));
    CHECK(graph_key(batch.view()) != graph_key(other.view()));
    int value = 0;
    CHECK(graph_key(batch.view().over(&value)) != graph_key(batch.view()));
    RaggedColumn<int, B> column(10, stream), shorter(9, stream);
    CHECK(graph_key(column) == graph_key(column));
    CHECK(graph_key(column) != graph_key(shorter));
}

} // namespace ragged_packer
