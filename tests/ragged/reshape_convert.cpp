// Ragged to padded and back, row ids and lengths.
#include "ragged/reshape_case.hpp"

namespace ragged_reshape_convert {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::reshape_case;

namespace {

constexpr std::int64_t poisoned = static_cast<std::int64_t>(0xeeeeeeeeeeeeeeee);

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// To padded and a mask, of a width that is at times too small.
template <class T>
struct ToPadded {
    ToPadded(Ref stream, RaggedCapacity room, std::int64_t columns)
        : rows(room.rows), width(columns), in(stream, room), padded(stream, rows * width),
          mask(stream, rows * width), refused(stream, 2), ids(stream, room.values), lengths(stream, rows) {}

    void load(Ref stream, std::uint64_t sample) { in.load(stream, lists_for<T>({rows, ids_room()}, sample)); }
    std::int64_t ids_room() const { return static_cast<std::int64_t>(ids.memory.size()); }
    void poison(Ref stream) {
        fill_bytes(stream, padded.memory, 0xee);
        fill_bytes(stream, mask.memory, 0xee);
        fill_bytes(stream, refused.memory, 0xee);
        fill_bytes(stream, ids.memory, 0xee);
        fill_bytes(stream, lengths.memory, 0xee);
    }
    void enqueue(Ref stream) {
        ragged::row_ids(stream, ids.memory, in.view());
        ragged::lengths(stream, lengths.memory, in.view());
        ragged::to_padded(stream, padded.memory, in.batch.view(), width, value_of<T>(77),
                          refused.memory.span().first(1));
        ragged::to_mask(stream, mask.memory, in.view(), width, refused.memory.span().last(1));
    }
    void check(Ref stream) {
        std::int64_t longest = 0;
        for (const std::vector<T>& row : in.lists)
            longest = std::max(longest, static_cast<std::int64_t>(row.size()));
        const bool fits = longest <= width;
        std::vector<T> want(index(rows * width), value_of<T>(77));
        std::vector<std::uint8_t> want_mask(want.size(), 0);
        for (std::size_t row = 0; fits && row < in.lists.size(); ++row) {
            for (std::size_t i = 0; i < in.lists[row].size(); ++i) {
                want[row * index(width) + i] = in.lists[row][i];
                want_mask[row * index(width) + i] = 1;
            }
        }
        CHECK(padded.read(stream) == want);
        CHECK(mask.read(stream) == want_mask);
        CHECK(refused.read(stream) == std::vector<std::int64_t>(2, fits ? 0 : longest));

        std::vector<std::int64_t> want_ids = row_ids_of(in.lists);
        want_ids.resize(ids.memory.size(), poisoned);
        CHECK(ids.read(stream) == want_ids);
        std::vector<std::int64_t> want_lengths = lengths_of(in.lists);
        want_lengths.resize(lengths.memory.size(), poisoned);
        CHECK(lengths.read(stream) == want_lengths);
    }

    std::int64_t rows, width;
    Operand<T> in;
    Numbers<T> padded;
    Numbers<std::uint8_t> mask;
    Numbers<std::int64_t> refused, ids, lengths;
};

/// From padded rows with lengths, and with a mask. At times there is no room for all.
template <class T>
struct FromPadded {
    FromPadded(Ref stream, RaggedCapacity room, std::int64_t columns)
        : rows(room.rows), width(columns), workspace({rows, std::max(rows * width, room.values)}, stream),
          padded(stream, rows * width), lengths(stream, rows), mask(stream, rows * width),
          by_length(room, stream), by_mask(room, stream) {}

    void load(Ref stream, std::uint64_t sample) {
        CountedRandom random({.seed = 31, .sample = sample});
        std::vector<T> values(index(rows * width));
        for (T& value : values)
            value = value_of<T>(random.next_u32());
        padded.load(stream, values);
        std::vector<std::int64_t> counts(index(rows));
        const std::uint32_t most = 1 + random.below(static_cast<std::uint32_t>(width) + 1);
        for (std::int64_t& count : counts)
            count = random.below(most);
        if (random.below(4) == 0)
            counts[random.below(static_cast<std::uint32_t>(rows))] = random.below(2) == 0 ? -5 : width + 3;
        lengths.load(stream, counts);
        std::vector<std::uint8_t> kept(values.size());
        const std::uint32_t density = random.below(5);
        for (std::uint8_t& keep : kept)
            keep = random.below(4) < density ? static_cast<std::uint8_t>(1u << random.below(8))
                                             : std::uint8_t{0};
        mask.load(stream, kept);
    }
    void poison(Ref stream) {
        reshape_case::poison(stream, by_length);
        reshape_case::poison(stream, by_mask);
    }
    void enqueue(Ref stream) {
        ragged::from_padded(stream, by_length, padded.memory, width, lengths.memory, workspace);
        ragged::from_padded_mask(stream, by_mask, padded.memory, width, mask.memory, workspace);
    }
    void check(Ref stream) {
        std::int64_t longest = 0;
        Lists<T> counted(index(rows)), kept(index(rows));
        for (std::size_t row = 0; row < index(rows); ++row) {
            const std::int64_t length = lengths.host[row] < 0 ? width + 1 : lengths.host[row];
            longest = std::max(longest, length);
            const auto begin = padded.host.begin() + static_cast<std::ptrdiff_t>(row * index(width));
            counted[row].assign(begin, begin + std::min(length, width));
            for (std::size_t i = row * index(width); i < (row + 1) * index(width); ++i) {
                if (mask.host[i] != 0)
                    kept[row].push_back(padded.host[i]);
            }
        }
        if (longest > width) {
            CHECK(by_length.counts_and_wait(stream) ==
                  RaggedCounts{0, 0, 0, longest, RaggedExcess::row_length});
            CHECK(contains(text_of([&] { by_length.require_valid_and_wait(stream); }),
                           "a row of " + std::to_string(longest) + " value"));
        } else {
            expect(stream, "from_padded", by_length, counted);
        }
        expect(stream, "from_padded_mask", by_mask, kept);
    }

    std::int64_t rows, width;
    RaggedWorkspace<B> workspace;
    Numbers<T> padded;
    Numbers<std::int64_t> lengths;
    Numbers<std::uint8_t> mask;
    RaggedBatch<T, B> by_length, by_mask;
};

} // namespace

TEST_CASE("reshape: to padded, to a mask, row ids and lengths") {
    for (const RaggedCapacity room : rooms()) {
        CAPTURE(room.rows);
        drive<ToPadded<Number>>(40, room, room.values);
        drive<ToPadded<Box>>(20, room, 1 + room.values / 4);
        drive<ToPadded<Long>>(20, room, std::int64_t{5});
    }
    drive<ToPadded<Box>>(2, many_rows, std::int64_t{7});
}

TEST_CASE("reshape: from padded rows, with lengths and with a mask") {
    for (const RaggedCapacity room : rooms()) {
        CAPTURE(room.rows);
        drive<FromPadded<Number>>(40, room, 1 + room.values / room.rows);
        drive<FromPadded<Odd>>(20, RaggedCapacity{room.rows, room.values * 2}, 1 + room.values / room.rows);
        drive<FromPadded<Box>>(20, room, std::int64_t{32});
    }
    // More values than one block of the device looks at.
    drive<FromPadded<Number>>(2, RaggedCapacity{20000, 600000}, std::int64_t{30});
}

TEST_CASE("reshape: there and back") {
    const BasicStream<B> stream;
    const RaggedCapacity room{30, 200};
    Operand<Odd> in(stream, room);
    Numbers<Odd> padded(stream, room.rows * room.values);
    Numbers<std::uint8_t> mask(stream, room.rows * room.values);
    Numbers<std::int64_t> refused(stream, 1), lengths(stream, room.rows);
    RaggedBatch<Odd, B> back(room, stream);
    RaggedWorkspace<B> workspace({room.rows, room.rows * room.values}, stream);
    in.load(stream, lists_for<Odd>(room, 40));
    Lists<Odd> expected = in.lists;
    expected.resize(index(room.rows));

    ragged::to_padded(stream, padded.memory, in.view(), room.values, Odd{}, refused.memory);
    ragged::to_mask(stream, mask.memory, in.view(), room.values, refused.memory);
    ragged::from_padded_mask(stream, back, padded.memory, room.values, mask.memory, workspace);
    expect(stream, "through a mask", back, expected);
    fill_bytes(stream, lengths.memory, 0);
    ragged::lengths(stream, lengths.memory, in.view());
    ragged::from_padded(stream, back, padded.memory, room.values, lengths.memory, workspace);
    expect(stream, "through lengths", back, expected);
}

TEST_CASE("reshape: rows are cut on purpose by their prefix") {
    const BasicStream<B> stream;
    const RaggedCapacity room{3, 10};
    Operand<Number> in(stream, room);
    RaggedBatch<Number, B> cut(room, stream);
    Numbers<Number> padded(stream, 6);
    Numbers<std::int64_t> refused(stream, 1);
    RaggedWorkspace<B> workspace(room, stream);
    in.load(stream, {{1, 2, 3, 4}, {}, {5}});
    ragged::to_padded(stream, padded.memory, in.view(), 2, 9u, refused.memory);
    CHECK(refused.read(stream) == std::vector<std::int64_t>{4});
    CHECK(padded.read(stream) == std::vector<Number>(6, 9));
    ragged::prefix(stream, cut, in.view(), 2, workspace);
    ragged::to_padded(stream, padded.memory, cut.view(), 2, 9u, refused.memory);
    CHECK(refused.read(stream) == std::vector<std::int64_t>{0});
    CHECK(padded.read(stream) == std::vector<Number>{1, 2, 9, 9, 5, 9});
}

TEST_CASE("reshape: rows with a mask refuse a workspace with too little room") {
    const BasicStream<B> stream;
    Numbers<std::uint8_t> padded(stream, 1 << 22), mask(stream, 1 << 22);
    RaggedBatch<std::uint8_t, B> out({2, 10}, stream);
    RaggedWorkspace<B> workspace({1, 1}, stream);
    CHECK(contains(text_of([&] {
                       ragged::from_padded_mask(stream, out, padded.memory, 1 << 21, mask.memory, workspace);
                   }),
                   "too small"));
    stream.sync();
}

TEST_CASE("reshape: what is behind the rows' places is left alone, and no rows at all are none refused") {
    const BasicStream<B> stream;
    const RaggedCapacity room{3, 10};
    Operand<Number> in(stream, room);
    in.load(stream, {{1, 2, 3, 4}, {}, {5}});
    Numbers<std::int64_t> lengths(stream, 5), rows(stream, 12);
    lengths.load(stream, std::vector<std::int64_t>(5, -7));
    rows.load(stream, std::vector<std::int64_t>(12, -7));
    ragged::lengths(stream, lengths.memory, in.view());
    ragged::row_ids(stream, rows.memory, in.view());
    const auto got = lengths.read(stream);
    CHECK(std::vector<std::int64_t>(got.begin(), got.begin() + 2) == std::vector<std::int64_t>{4, 0});
    CHECK(std::vector<std::int64_t>(got.begin() + 3, got.end()) == std::vector<std::int64_t>{-7, -7});
    const auto ids = rows.read(stream);
    CHECK(std::vector<std::int64_t>(ids.begin(), ids.begin() + 5) ==
          std::vector<std::int64_t>{0, 0, 0, 0, 2});
    CHECK(std::vector<std::int64_t>(ids.end() - 2, ids.end()) == std::vector<std::int64_t>{-7, -7});

    Operand<Number> empty(stream, {0, 10});
    Numbers<std::uint8_t> nothing(stream, 0);
    Numbers<Number> no_numbers(stream, 0);
    Numbers<std::int64_t> refused(stream, 1);
    empty.load(stream, {});
    refused.load(stream, {7});
    ragged::to_mask(stream, nothing.memory, empty.view(), 2, refused.memory);
    CHECK(refused.read(stream) == std::vector<std::int64_t>{0});
    refused.load(stream, {7});
    ragged::to_padded(stream, no_numbers.memory, empty.view(), 2, 9u, refused.memory);
    CHECK(refused.read(stream) == std::vector<std::int64_t>{0});
}

TEST_CASE("reshape: conversions refuse what makes no sense") {
    const BasicStream<B> stream;
    const RaggedCapacity room{4, 10};
    RaggedBatch<Number, B> batch(room, stream);
    RaggedWorkspace<B> workspace(room, stream);
    Numbers<Number> twelve(stream, 12), values(stream, 30);
    Numbers<std::uint8_t> bytes(stream, 30);
    Numbers<std::int64_t> one(stream, 1), three(stream, 3), five(stream, 5);
    const auto view = batch.view();
    const auto text = [&](auto&& call) { return text_of([&] { call(); }); };

    CHECK(contains(text([&] { ragged::row_ids(stream, three.memory, view); }), "expected at least 10"));
    CHECK(contains(text([&] { ragged::lengths(stream, three.memory, view); }), "expected at least 4"));
    CHECK(contains(text([&] { ragged::to_padded(stream, twelve.memory, view, 0, 0u, one.memory); }),
                   "width of 0"));
    CHECK(contains(text([&] { ragged::to_padded(stream, twelve.memory, view, 4, 0u, one.memory); }),
                   "4 rows of 4"));
    CHECK(contains(text([&] { ragged::to_padded(stream, twelve.memory, view, 3, 0u, three.memory); }),
                   "expected 1"));
    CHECK(contains(text([&] { ragged::to_mask(stream, bytes.memory, view, 5, one.memory); }), "4 rows of 5"));
    // Without elements, only the width says that it makes no sense.
    Numbers<Number> none(stream, 0);
    Numbers<std::uint8_t> no_bytes(stream, 0);
    Numbers<std::int64_t> no_lengths(stream, 0);
    CHECK(
        contains(text([&] { ragged::to_mask(stream, no_bytes.memory, view, 0, one.memory); }), "width of 0"));
    Numbers<std::uint8_t> twelve_bytes(stream, 12);
    CHECK(contains(text([&] { ragged::to_mask(stream, twelve_bytes.memory, view, 3, three.memory); }),
                   "expected 1"));
    CHECK(contains(
        text([&] { ragged::from_padded(stream, batch, none.memory, -1, no_lengths.memory, workspace); }),
        "width of -1"));
    CHECK(contains(
        text([&] { ragged::from_padded_mask(stream, batch, values.memory, -6, bytes.memory, workspace); }),
        "width of -6"));
    CHECK(
        contains(text([&] { ragged::from_padded(stream, batch, values.memory, 10, one.memory, workspace); }),
                 "1 row of 10"));
    CHECK(
        contains(text([&] { ragged::from_padded(stream, batch, values.memory, 6, five.memory, workspace); }),
                 "room for 4"));
    CHECK(contains(
        text([&] { ragged::from_padded_mask(stream, batch, values.memory, 7, bytes.memory, workspace); }),
        "multiple of the width 7"));
    CHECK(contains(
        text([&] { ragged::from_padded_mask(stream, batch, twelve.memory, 3, bytes.memory, workspace); }),
        "expected 12"));
    CHECK(contains(
        text([&] { ragged::from_padded_mask(stream, batch, values.memory, 6, bytes.memory, workspace); }),
        "room for 4"));
    RaggedBatch<Number, B> twelve_values({4, 12}, stream);
    Numbers<Number> six(stream, 6);
    const DeviceSpan<Number, B> inside = twelve_values.values();
    CHECK(contains(text([&] { ragged::to_padded(stream, inside, twelve_values.view(), 3, 0u, one.memory); }),
                   "ragged::to_padded: the result and the rows' values overlap"));
    CHECK(contains(
        text([&] { ragged::from_padded(stream, twelve_values, inside, 4, three.memory, workspace); }),
        "ragged::from_padded: the result and the padded rows overlap"));
    CHECK(contains(text([&] {
                       ragged::from_padded_mask(stream, twelve_values, inside, 4, twelve_bytes.memory,
                                                workspace);
                   }),
                   "ragged::from_padded_mask: the result and the padded rows overlap"));
    CHECK(contains(text([&] {
                       ragged::from_padded(stream, batch, six.memory, 2,
                                           std::as_const(batch).offsets().first(3), workspace);
                   }),
                   "ragged::from_padded: the result and the lengths overlap"));
    const RaggedView<const Number> of_offsets(view.values(), five.memory.data(), view.counts_pointer(), 4,
                                              10);
    CHECK(contains(text([&] { ragged::lengths(stream, five.memory, of_offsets); }),
                   "ragged::lengths: a result and the rows' offsets overlap"));
    const DeviceSpan<const std::uint8_t, B> mask_inside(reinterpret_cast<const std::uint8_t*>(inside.data()),
                                                        6);
    CHECK(contains(
        text([&] { ragged::from_padded_mask(stream, twelve_values, six.memory, 2, mask_inside, workspace); }),
        "ragged::from_padded_mask: the result and the mask overlap"));
    RaggedBatch<std::int64_t, B> wide({4, 12}, stream);
    DeviceBuffer<std::int64_t, B> wide_padded(12, stream);
    CHECK(contains(
        text([&] { ragged::to_padded(stream, wide_padded, wide.view(), 3, 0, wide_padded.span().last(1)); }),
        "ragged::to_padded: the place for what was refused and the result overlap"));
    CHECK(contains(
        text([&] { ragged::to_padded(stream, wide_padded, wide.view(), 3, 0, wide.values().first(1)); }),
        "ragged::to_padded: the place for what was refused and the rows' values overlap"));
    const DeviceSpan<std::uint8_t, B> wide_mask(reinterpret_cast<std::uint8_t*>(wide_padded.data()), 12);
    CHECK(contains(
        text([&] { ragged::to_mask(stream, wide_mask, wide.view(), 3, wide_padded.span().first(1)); }),
        "ragged::to_mask: the place for what was refused and the result overlap"));
    stream.sync();
}

} // namespace ragged_reshape_convert
