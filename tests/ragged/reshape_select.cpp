// Some of a batch's rows or values.
#include <array>

#include "ragged/reshape_case.hpp"

namespace ragged_reshape_select {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::reshape_case;

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// All selections of one batch. The results have `out_room`, which is at times too small.
template <class T>
struct Selections {
    Selections(Ref stream, RaggedCapacity in_room, RaggedCapacity out_room)
        : room(in_room),
          workspace({std::max(in_room.rows, out_room.rows), std::max(in_room.values, out_room.values)},
                    stream),
          in(stream, room), indices(stream, out_room.rows), order(stream, room.rows),
          keep(stream, room.values), keep_rows(stream, room.rows), times(stream, room.rows),
          first(room.rows / 3), last(1 + room.rows / 2) {
        for (int k = 0; k < 11; ++k)
            out.emplace_back(out_room, stream);
    }

    void load(Ref stream, std::uint64_t sample) {
        in.load(stream, lists_for<T>(room, sample));
        CountedRandom random({.seed = 37, .sample = sample});
        const auto numbers = [&](std::size_t count, auto&& number) {
            std::vector<std::int64_t> values(count);
            for (std::int64_t& value : values)
                value = number();
            return values;
        };
        // Some name no row.
        const auto most = static_cast<std::uint32_t>(room.rows) + 2;
        indices.load(stream,
                     numbers(indices.memory.size(), [&] { return std::int64_t{random.below(most)} - 1; }));
        order.load(stream,
                   numbers(order.memory.size(), [&] { return std::int64_t{random.below(most)} - 1; }));
        times.load(stream, numbers(times.memory.size(), [&] { return std::int64_t{random.below(4)} - 1; }));
        const auto bytes = [&](std::size_t count) {
            const std::uint32_t density = random.below(5);
            std::vector<std::uint8_t> values(count);
            for (std::uint8_t& value : values)
                value = random.below(4) < density ? static_cast<std::uint8_t>(1u << random.below(8))
                                                  : std::uint8_t{0};
            return values;
        };
        keep.load(stream, bytes(keep.memory.size()));
        keep_rows.load(stream, bytes(keep_rows.memory.size()));
    }
    void poison(Ref stream) {
        for (RaggedBatch<T, B>& batch : out)
            reshape_case::poison(stream, batch);
    }
    void enqueue(Ref stream) {
        ragged::slice(stream, out[0], in.view(), first, last, workspace);
        ragged::slice_within(stream, out[1], in.view(), 1, 4, workspace);
        ragged::prefix(stream, out[2], in.batch.view(), 2, workspace);
        ragged::gather(stream, out[3], in.view(), indices.memory, workspace);
        ragged::reorder(stream, out[4], in.view(), order.memory, workspace);
        ragged::mask(stream, out[5], in.view(), keep.memory, workspace);
        ragged::mask_rows(stream, out[6], in.view(), keep_rows.memory, workspace);
        ragged::remove_empty(stream, out[7], in.view(), workspace);
        ragged::repeat(stream, out[8], in.view(), 2, workspace);
        ragged::repeat_each(stream, out[9], in.view(), times.memory, workspace);
        ragged::repeat(stream, out[10], in.view(), 0, workspace);
    }
    void check(Ref stream) {
        const Lists<T>& rows = in.lists;
        const auto row_or_nothing = [&](std::int64_t row) {
            return row >= 0 && row < static_cast<std::int64_t>(rows.size()) ? rows[index(row)]
                                                                            : std::vector<T>{};
        };
        Lists<T> sliced, within, prefixes, gathered, ordered, masked, kept, filled, twice, repeated;
        for (std::int64_t row = first; row < last && row < static_cast<std::int64_t>(rows.size()); ++row)
            sliced.push_back(rows[index(row)]);
        for (const std::int64_t row : indices.host)
            gathered.push_back(row_or_nothing(row));
        std::size_t value = 0;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const std::vector<T>& row = rows[r];
            ordered.push_back(row_or_nothing(order.host[r]));
            within.emplace_back();
            prefixes.emplace_back();
            masked.emplace_back();
            for (std::size_t i = 0; i < row.size(); ++i, ++value) {
                if (i >= 1 && i < 4)
                    within.back().push_back(row[i]);
                if (i < 2)
                    prefixes.back().push_back(row[i]);
                if (keep.host[value] != 0)
                    masked.back().push_back(row[i]);
            }
            if (keep_rows.host[r] != 0)
                kept.push_back(row);
            if (!row.empty())
                filled.push_back(row);
            twice.insert(twice.end(), 2, row);
            for (std::int64_t k = 0; k < times.host[r]; ++k)
                repeated.push_back(row);
        }
        expect(stream, "slice", out[0], sliced);
        expect(stream, "slice_within", out[1], within);
        expect(stream, "prefix", out[2], prefixes);
        expect(stream, "gather", out[3], gathered);
        expect(stream, "reorder", out[4], ordered);
        expect(stream, "mask", out[5], masked);
        expect(stream, "mask_rows", out[6], kept);
        expect(stream, "remove_empty", out[7], filled);
        expect(stream, "repeat", out[8], twice);
        expect(stream, "repeat_each", out[9], repeated);
        expect(stream, "repeat, never", out[10], Lists<T>{});
    }

    RaggedCapacity room;
    RaggedWorkspace<B> workspace;
    Operand<T> in;
    Numbers<std::int64_t> indices, order;
    Numbers<std::uint8_t> keep, keep_rows;
    Numbers<std::int64_t> times;
    std::int64_t first, last;
    std::vector<RaggedBatch<T, B>> out;
};

} // namespace

TEST_CASE("reshape: selections of rows and of values") {
    for (const RaggedCapacity room : rooms()) {
        CAPTURE(room.rows);
        drive<Selections<Number>>(40, room, RaggedCapacity{3 * room.rows, 3 * room.values});
        drive<Selections<Box>>(20, room, RaggedCapacity{3 * room.rows, room.values / 2});
        drive<Selections<Long>>(20, room, RaggedCapacity{1 + room.rows / 2, room.values});
    }
    drive<Selections<Number>>(2, many_rows, RaggedCapacity{3 * many_rows.rows, 3 * many_rows.values});
}

TEST_CASE("reshape: very many empty rows between values") {
    const BasicStream<B> stream;
    const RaggedCapacity room{100000, 300};
    Operand<Number> in(stream, room);
    RaggedBatch<Number, B> out(room, stream), filled(room, stream);
    Numbers<std::int64_t> ids(stream, room.values);
    RaggedWorkspace<B> workspace(room, stream);
    Lists<Number> rows(100000);
    const std::size_t places[] = {0, 1, 33, 40000, 40001, 99999};
    for (std::size_t k = 0; k < 6; ++k) {
        for (Number i = 0; i < 10 * k + 1; ++i)
            rows[places[k]].push_back(value_of<Number>(static_cast<Number>(1000 * k) + i));
    }
    in.load(stream, rows);
    poison(stream, out);
    ragged::prefix(stream, out, in.view(), 1000, workspace);
    ragged::remove_empty(stream, filled, in.view(), workspace);
    fill_bytes(stream, ids.memory, 0xee);
    ragged::row_ids(stream, ids.memory, in.view());
    expect(stream, "prefix", out, rows);
    std::vector<std::int64_t> got = ids.read(stream);
    const std::vector<std::int64_t> want = row_ids_of(rows);
    got.resize(want.size());
    CHECK(got == want);
    Lists<Number> left;
    for (const std::size_t place : places)
        left.push_back(rows[place]);
    expect(stream, "remove_empty", filled, left);
}

TEST_CASE("reshape: repeated more often than any memory holds") {
    const BasicStream<B> stream;
    const RaggedCapacity room{4, 20};
    Operand<Number> in(stream, room);
    RaggedBatch<Number, B> out(room, stream);
    Numbers<std::int64_t> times(stream, 4);
    RaggedWorkspace<B> workspace(room, stream);
    in.load(stream, {{1, 2}, {}, {3}});
    const std::int64_t many = std::int64_t{1} << 38;
    times.load(stream, {many, 1, many, many}); // the last one names no row
    ragged::repeat_each(stream, out, in.view(), times.memory, workspace);
    const auto refusal = [&] { return text_of([&] { out.require_valid_and_wait(stream); }); };
    const std::int64_t countable = RaggedCounts::countable;
    CHECK(out.counts_and_wait(stream) == RaggedCounts{0, 0, 0, countable + 1, RaggedExcess::rows});
    CHECK(contains(refusal(), "at least 549755813889 rows were needed"));
    // What is handed on says which it is, too.
    RaggedBatch<Number, B> next(room, stream);
    ragged::prefix(stream, next, out.view(), 1, workspace);
    CHECK(next.counts_and_wait(stream) == out.counts_and_wait(stream));
    ragged::concatenate_rows(stream, next, {in.view(), out.view()}, workspace);
    CHECK(next.counts_and_wait(stream) == out.counts_and_wait(stream));

    // Three rows so often: exact up to the most that is counted, and no more beyond.
    const std::int64_t most = countable / 3;
    const std::int64_t times_and_rows[][2] = {
        {most, 3 * most}, {most + 1, countable}, {std::int64_t{1} << 62, countable}};
    for (const auto& each : times_and_rows) {
        const std::int64_t often = each[0];
        const std::int64_t rows = each[1];
        CAPTURE(often);
        ragged::repeat(stream, out, in.view(), often, workspace);
        CHECK(out.counts_and_wait(stream) == RaggedCounts{0, 0, 0, rows, RaggedExcess::rows});
        CHECK(contains(refusal(),
                       (rows < countable ? "result: " : "at least ") + std::to_string(rows) + " rows"));
    }
    in.load(stream, {{1, 2}});
    ragged::repeat(stream, out, in.view(), std::int64_t{1} << 62, workspace);
    CHECK(out.counts_and_wait(stream).refused == countable);
    in.load(stream, {});
    ragged::repeat(stream, out, in.view(), std::int64_t{1} << 62, workspace);
    expect(stream, "repeat", out, Lists<Number>{});
}

TEST_CASE("reshape: repeated into a batch that has room for one row") {
    const BasicStream<B> stream;
    Operand<Number> in(stream, RaggedCapacity{3, 20});
    RaggedBatch<Number, B> out({1, 20}, stream);
    Numbers<std::int64_t> times(stream, 3);
    RaggedWorkspace<B> workspace({3, 20}, stream);
    in.load(stream, {{1}, {2, 3}, {4}});
    times.load(stream, {0, 1, 0});
    ragged::repeat_each(stream, out, in.view(), times.memory, workspace);
    expect(stream, "repeat_each", out, {{2, 3}});
}

TEST_CASE("reshape: a stream may be owned, referred to, or the backend's own handle") {
    const BasicStream<B> stream;
    const RaggedCapacity room{4, 20};
    Operand<Number> in(stream, room);
    RaggedBatch<Number, B> out(room, stream);
    RaggedWorkspace<B> workspace(room, stream);
    in.load(stream, {{1, 2, 3}, {4}});
    ragged::prefix(stream, out, in.view(), 1, workspace);
    expect(stream, "owned", out, {{1}, {4}});
    ragged::prefix(stream.ref(), out, in.view(), 2, workspace);
    expect(stream, "referred to", out, {{1, 2}, {4}});
    ragged::prefix(stream.get(), out, in.view(), 0, workspace);
    expect(stream, "native", out, {{}, {}});
}

TEST_CASE("reshape: what was refused stays refused") {
    const BasicStream<B> stream;
    const RaggedCapacity room{10, 100};
    Operand<Number> in(stream, room);
    RaggedBatch<Number, B> small_one({10, 5}, stream), after(room, stream), after_that(room, stream);
    Numbers<std::uint8_t> keep(stream, 100);
    RaggedWorkspace<B> workspace(room, stream);
    in.load(stream, {{1, 2, 3, 4}, {}, {5, 6, 7}});
    ragged::prefix(stream, small_one, in.view(), 50, workspace);
    ragged::slice(stream, after, small_one.view(), 0, 2, workspace);
    fill_bytes(stream, keep.memory, 1);
    ragged::mask(stream, after_that, after.view(), keep.memory, workspace);
    const RaggedCounts refused{0, 0, 0, 7, RaggedExcess::values};
    CHECK(small_one.counts_and_wait(stream) == refused);
    std::vector<std::int64_t> first(1, 9);
    copy_and_wait(stream, first, small_one.offsets().first(1));
    CHECK(first[0] == 0);
    CHECK(after.counts_and_wait(stream) == refused);
    CHECK(after_that.counts_and_wait(stream) == refused);
    ragged::remove_empty(stream, after_that, after.view(), workspace);
    CHECK(after_that.counts_and_wait(stream) == refused);
    ragged::slice(stream, after, in.view(), 0, 2, workspace); // and it can be used again
    expect(stream, "slice", after, {{1, 2, 3, 4}, {}});
}

TEST_CASE("reshape: a column goes the way of its batch") {
    const BasicStream<B> stream;
    const RaggedCapacity room{5, 20};
    Operand<Number> in(stream, room);
    RaggedColumn<Odd, B> column(20, stream);
    RaggedBatch<Odd, B> out(room, stream);
    Numbers<std::int64_t> indices(stream, 3);
    RaggedWorkspace<B> workspace(room, stream);
    in.load(stream, {{1, 2, 3}, {}, {4, 5}});
    std::vector<Odd> labels;
    for (Number i = 0; i < 20; ++i)
        labels.push_back(value_of<Odd>(i * 7));
    copy_and_wait(stream, column.values(), labels);
    indices.load(stream, {2, 1, 0});
    ragged::gather(stream, out, column.view_over(in.batch), indices.memory, workspace);
    expect(stream, "gather", out, {{labels[3], labels[4]}, {}, {labels[0], labels[1], labels[2]}});
}

TEST_CASE("reshape: selections refuse a workspace with too little room, and leave the result alone") {
    const BasicStream<B> stream;
    const RaggedCapacity room{1 << 17, 1 << 22};
    const RaggedBatch<std::uint8_t, B> in(room, stream);
    RaggedBatch<std::uint8_t, B> out(room, stream);
    Numbers<std::uint8_t> keep(stream, room.values);
    Numbers<std::int64_t> times(stream, room.rows);
    RaggedWorkspace<B> workspace({1, 1}, stream);
    fill_bytes(stream, out.block(), 0xee);
    const auto is_refused = [&](auto&& call) { return contains(text_of([&] { call(); }), "too small"); };
    CHECK(is_refused([&] { ragged::mask(stream, out, in.view(), keep.memory, workspace); }));
    CHECK(is_refused([&] { ragged::mask_rows(stream, out, in.view(), keep.memory, workspace); }));
    CHECK(is_refused([&] { ragged::remove_empty(stream, out, in.view(), workspace); }));
    CHECK(is_refused([&] { ragged::repeat_each(stream, out, in.view(), times.memory, workspace); }));
    CHECK(out.counts_and_wait(stream).rows == static_cast<std::int64_t>(0xeeeeeeeeeeeeeeee));
    // Also one that needs next to nothing, whose bytes would do.
    CHECK(is_refused([&] { ragged::slice(stream, out, in.view(), 0, 5, workspace); }));
}

TEST_CASE("reshape: selections refuse what makes no sense") {
    const BasicStream<B> stream;
    const RaggedCapacity room{4, 10};
    RaggedBatch<Number, B> in(room, stream), out(room, stream);
    RaggedWorkspace<B> workspace(room, stream);
    Numbers<std::uint8_t> bytes(stream, 3);
    Numbers<std::int64_t> three(stream, 3);
    const RaggedView<const Number> view = in.view();
    const auto text = [&](auto&& call) { return text_of([&] { call(); }); };
    ragged::slice(stream, out, view, 2, 2, workspace); // no rows, and no mistake
    ragged::slice_within(stream, out, view, 0, 0, workspace);
    stream.sync();
    CHECK(contains(text([&] { ragged::slice(stream, out, view, -1, 2, workspace); }),
                   "ragged::slice: from -1 up to 2"));
    CHECK(
        contains(text([&] { ragged::slice_within(stream, out, view, 3, 2, workspace); }), "from 3 up to 2"));
    CHECK(contains(text([&] { ragged::prefix(stream, out, view, -2, workspace); }), "ragged::prefix: -2"));
    CHECK(contains(text([&] { ragged::repeat(stream, out, view, -3, workspace); }), "repeat: -3"));
    CHECK(contains(text([&] { ragged::reorder(stream, out, view, three.memory, workspace); }),
                   "expected at least 4"));
    CHECK(contains(text([&] { ragged::mask(stream, out, view, bytes.memory, workspace); }),
                   "expected at least 10"));
    CHECK(contains(text([&] { ragged::mask_rows(stream, out, view, bytes.memory, workspace); }),
                   "expected at least 4"));
    CHECK(contains(text([&] { ragged::repeat_each(stream, out, view, three.memory, workspace); }),
                   "expected at least 4"));
    CHECK(contains(text([&] { ragged::slice(stream, in, view, 0, 1, workspace); }), "are the same batch"));
    CHECK(contains(text([&] { ragged::mask(stream, in, view, bytes.memory, workspace); }),
                   "are the same batch"));
    CHECK(contains(text([&] { ragged::remove_empty(stream, in, view, workspace); }), "are the same batch"));
    // The result's own values over the rows of another batch.
    const RaggedView<const Number> over_result = view.over(std::as_const(out).values().data());
    Numbers<std::int64_t> four(stream, 4);
    Numbers<std::uint8_t> ten_bytes(stream, 10);
    CHECK(text([&] { ragged::gather(stream, out, over_result, four.memory, workspace); }) ==
          "ragged::gather: the result and an operand's values overlap, expected other memory for the result");
    CHECK(contains(text([&] { ragged::mask(stream, out, over_result, ten_bytes.memory, workspace); }),
                   "overlap"));
    CHECK(contains(text([&] { ragged::remove_empty(stream, out, over_result, workspace); }), "overlap"));
    CHECK(contains(text([&] { ragged::stack(stream, out, {view, over_result}, workspace); }), "overlap"));
    const DeviceSpan<const std::int64_t, B> none(nullptr, 4);
    CHECK(contains(text([&] { ragged::gather(stream, out, view, none, workspace); }),
                   "ragged::gather: for the indices a null pointer to 4 elements"));
    CHECK(contains(text([&] { ragged::repeat_each(stream, out, view, none, workspace); }),
                   "ragged::repeat_each: for an operand or a result a null pointer to 4 elements"));
    CHECK(contains(text([&] { ragged::slice(stream, out, RaggedView<const Number>(), 0, 1, workspace); }),
                   "ragged::slice: for an operand's offsets a null pointer"));
    // What says which rows or values come, in the result.
    const auto offsets = std::as_const(out).offsets();
    CHECK(text([&] { ragged::gather(stream, out, view, offsets, workspace); }) ==
          "ragged::gather: the result and the indices overlap, expected other memory for the result");
    CHECK(contains(text([&] { ragged::reorder(stream, out, view, offsets, workspace); }),
                   "ragged::reorder: the result and the order overlap"));
    const DeviceSpan<const std::uint8_t, B> keep(
        reinterpret_cast<const std::uint8_t*>(std::as_const(out).values().data()), 10);
    CHECK(contains(text([&] { ragged::mask(stream, out, view, keep, workspace); }),
                   "ragged::mask: the result and the values to keep overlap"));
    const RaggedView<const Number> by_result(view.values(), offsets.data(), view.counts_pointer(), 4, 10);
    CHECK(contains(text([&] { ragged::slice(stream, out, by_result, 0, 1, workspace); }),
                   "ragged::slice: the result and an operand's offsets overlap"));
    DeviceBuffer<std::int64_t, B> numbers(8, stream);
    const std::array<std::int64_t, 1> bounds{2};
    CHECK(contains(text([&] {
                       ragged::bucket_by_length(stream, numbers.span().first(4), numbers.span().subspan(3, 3),
                                                view, bounds, workspace);
                   }),
                   "ragged::bucket_by_length: the order and the starts overlap"));
    stream.sync();
}

} // namespace ragged_reshape_select
