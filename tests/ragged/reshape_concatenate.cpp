// Several batches as one.
#include <array>

#include "ragged/reshape_case.hpp"

namespace ragged_reshape_concatenate {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::reshape_case;

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// All ways to join one to four batches.
template <class T>
struct Joins {
    Joins(Ref stream, RaggedCapacity in_room, RaggedCapacity out_room)
        : room(in_room), workspace(out_room, stream), in{Operand<T>(stream, room), Operand<T>(stream, room),
                                                         Operand<T>(stream, room), Operand<T>(stream, room)} {
        for (int k = 0; k < 12; ++k)
            out.emplace_back(out_room, stream);
    }

    void load(Ref stream, std::uint64_t sample) {
        for (std::size_t k = 0; k < in.size(); ++k)
            in[k].load(stream, lists_for<T>(room, 4 * sample + k));
    }
    void poison(Ref stream) {
        for (RaggedBatch<T, B>& batch : out)
            reshape_case::poison(stream, batch);
    }
    void enqueue(Ref stream) {
        std::vector<RaggedView<const T>> views;
        for (std::size_t k = 0; k < in.size(); ++k) {
            views.push_back(in[k].view());
            ragged::concatenate_rows(stream, out[3 * k], std::span<const RaggedView<const T>>(views),
                                     workspace);
            ragged::concatenate_within(stream, out[3 * k + 1], std::span<const RaggedView<const T>>(views),
                                       workspace);
            ragged::stack(stream, out[3 * k + 2], std::span<const RaggedView<const T>>(views), workspace);
        }
    }
    void check(Ref stream) {
        for (std::size_t parts = 1; parts <= in.size(); ++parts) {
            CAPTURE(parts);
            Lists<T> rows, joined, stacked;
            std::size_t most = 0;
            for (std::size_t k = 0; k < parts; ++k) {
                rows.insert(rows.end(), in[k].lists.begin(), in[k].lists.end());
                most = std::max(most, in[k].lists.size());
            }
            for (std::size_t row = 0; row < most; ++row) {
                joined.emplace_back();
                for (std::size_t k = 0; k < parts; ++k) {
                    const std::vector<T> part =
                        row < in[k].lists.size() ? in[k].lists[row] : std::vector<T>{};
                    joined.back().insert(joined.back().end(), part.begin(), part.end());
                    stacked.push_back(part);
                }
            }
            expect(stream, "concatenate_rows", out[3 * (parts - 1)], rows);
            expect(stream, "concatenate_within", out[3 * (parts - 1) + 1], joined);
            expect(stream, "stack", out[3 * (parts - 1) + 2], stacked);
        }
    }

    RaggedCapacity room;
    RaggedWorkspace<B> workspace;
    std::array<Operand<T>, 4> in;
    std::vector<RaggedBatch<T, B>> out;
};

/// The orders of a batch's rows by length.
template <class T>
struct Orders {
    Orders(Ref stream, RaggedCapacity in_room)
        : room(in_room), workspace(room, stream), in(stream, room), shortest(stream, room.rows),
          longest(stream, room.rows), buckets(stream, room.rows), starts(stream, 5), ordered(room, stream) {}

    void load(Ref stream, std::uint64_t sample) { in.load(stream, lists_for<T>(room, sample)); }
    void poison(Ref stream) {
        for (Numbers<std::int64_t>* numbers : {&shortest, &longest, &buckets, &starts})
            fill_bytes(stream, numbers->memory, 0xee);
        reshape_case::poison(stream, ordered);
    }
    void enqueue(Ref stream) {
        ragged::order_by_length(stream, shortest.memory, in.view(), ragged::LengthOrder::shortest_first,
                                workspace);
        ragged::order_by_length(stream, longest.memory, in.view(), ragged::LengthOrder::longest_first,
                                workspace);
        ragged::reorder(stream, ordered, in.view(), longest.memory, workspace);
        ragged::bucket_by_length(stream, buckets.memory, starts.memory, in.view(), bounds, workspace);
    }
    void check(Ref stream) {
        const std::vector<std::int64_t> lengths = lengths_of(in.lists);
        const auto sorted = [&](auto&& key) {
            std::vector<std::int64_t> rows(lengths.size());
            for (std::size_t row = 0; row < rows.size(); ++row)
                rows[row] = static_cast<std::int64_t>(row);
            std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
                return key(lengths[index(a)]) < key(lengths[index(b)]);
            });
            rows.resize(index(room.rows), -1);
            return rows;
        };
        const auto bucket_of = [&](std::int64_t length) {
            return std::count_if(bounds.begin(), bounds.end(),
                                 [&](std::int64_t bound) { return bound <= length; });
        };
        const auto descending = sorted([](std::int64_t length) { return -length; });
        CHECK(shortest.read(stream) == sorted([](std::int64_t length) { return length; }));
        CHECK(longest.read(stream) == descending);
        CHECK(buckets.read(stream) == sorted(bucket_of));
        std::vector<std::int64_t> want_starts(5);
        for (const std::int64_t length : lengths) {
            for (auto bucket = index(bucket_of(length)) + 1; bucket < 5; ++bucket)
                ++want_starts[bucket];
        }
        CHECK(starts.read(stream) == want_starts);
        Lists<T> want;
        for (std::size_t row = 0; row < in.lists.size(); ++row)
            want.push_back(in.lists[index(descending[row])]);
        expect(stream, "reorder", ordered, want);
    }

    static constexpr std::array<std::int64_t, 3> bounds{1, 3, 20};
    RaggedCapacity room;
    RaggedWorkspace<B> workspace;
    Operand<T> in;
    Numbers<std::int64_t> shortest, longest, buckets, starts;
    RaggedBatch<T, B> ordered;
};

} // namespace

TEST_CASE("reshape: concatenate on both axes, and stack") {
    for (const RaggedCapacity room : rooms()) {
        CAPTURE(room.rows);
        drive<Joins<Number>>(30, room, RaggedCapacity{4 * room.rows, 4 * room.values});
        drive<Joins<Odd>>(15, room, RaggedCapacity{4 * room.rows, room.values});
        drive<Joins<Box>>(15, room, RaggedCapacity{1 + room.rows, 4 * room.values});
    }
    drive<Joins<Number>>(1, many_rows, RaggedCapacity{4 * many_rows.rows, 4 * many_rows.values});
}

TEST_CASE("reshape: parts listed in place") {
    const BasicStream<B> stream;
    const RaggedCapacity room{10, 20};
    Operand<Number> a(stream, room), b(stream, room);
    RaggedBatch<Number, B> out(room, stream);
    RaggedWorkspace<B> workspace(room, stream);
    a.load(stream, {{1}, {2, 3}});
    b.load(stream, {{4, 5}});
    ragged::concatenate_rows(stream, out, {a.view(), b.view()}, workspace);
    expect(stream, "concatenate_rows", out, {{1}, {2, 3}, {4, 5}});
    ragged::concatenate_within(stream, out, {a.view(), b.batch.view()}, workspace);
    expect(stream, "concatenate_within", out, {{1, 4, 5}, {2, 3}});
    ragged::stack(stream, out, {a.view(), b.view()}, workspace);
    expect(stream, "stack", out, {{1}, {4, 5}, {2, 3}, {}});
    ragged::stack(stream, out, {a.view(), a.view()}, workspace); // a part may come twice
    expect(stream, "stack", out, {{1}, {1}, {2, 3}, {2, 3}});

    const auto text = [&](auto&& call) { return text_of([&] { call(); }); };
    const std::vector<RaggedView<const Number>> five(5, a.view());
    CHECK(contains(
        text([&] { ragged::stack(stream, out, std::span<const RaggedView<const Number>>(five), workspace); }),
        "5 batches were given, expected 1 to 4"));
    CHECK(contains(text([&] {
                       ragged::concatenate_rows(stream, out, std::span<const RaggedView<const Number>>(),
                                                workspace);
                   }),
                   "0 batches"));
    CHECK(contains(text([&] {
                       ragged::concatenate_within(stream, out, {a.view(), out.view()}, workspace);
                   }),
                   "are the same batch"));
    stream.sync();
}

TEST_CASE("reshape: orders and buckets by length") {
    for (const RaggedCapacity room : rooms()) {
        CAPTURE(room.rows);
        drive<Orders<Number>>(40, room);
    }
    drive<Orders<Box>>(2, many_rows);
}

TEST_CASE("reshape: orders refuse what makes no sense") {
    const BasicStream<B> stream;
    const RaggedCapacity room{4, 10};
    RaggedBatch<Number, B> in(room, stream);
    RaggedWorkspace<B> workspace(room, stream);
    Numbers<std::int64_t> three(stream, 3), four(stream, 4);
    const auto bucket = [&](std::vector<std::int64_t> bounds) {
        return text_of([&] {
            ragged::bucket_by_length(stream, four.memory, three.memory, in.view(), bounds, workspace);
        });
    };
    CHECK(contains(text_of([&] {
                       ragged::order_by_length(stream, three.memory, in.view(),
                                               ragged::LengthOrder::longest_first, workspace);
                   }),
                   "expected at least 4"));
    CHECK(text_of([&] {
              ragged::order_by_length(stream, four.memory, in.view(), static_cast<ragged::LengthOrder>(-1),
                                      workspace);
          }) == "ragged::order_by_length: the order is -1, which has no name; expected shortest_first or "
                "longest_first");
    CHECK(contains(bucket({5, 5}), "expected at least 4"));
    CHECK(contains(text_of([&] {
                       ragged::bucket_by_length(stream, three.memory, four.memory, in.view(),
                                                std::vector<std::int64_t>{5, 6}, workspace);
                   }),
                   "bucket_by_length: the order"));
    CHECK(contains(bucket(std::vector<std::int64_t>(13, 1)), "at most 12"));
    CHECK(contains(bucket(std::vector<std::int64_t>(12, 1)), "expected at least 14")); // of starts
    Numbers<std::int64_t> many(stream, 10);
    CHECK(contains(text_of([&] {
                       ragged::bucket_by_length(stream, four.memory, many.memory, in.view(),
                                                std::vector<std::int64_t>{5, 5}, workspace);
                   }),
                   "bound 5 comes after 5"));
    stream.sync();
}

TEST_CASE("reshape: a workspace orders as many rows as it is for") {
    const BasicStream<B> stream;
    const RaggedCapacity room{1 << 20, 10};
    Operand<Number> in(stream, room);
    in.load(stream, {{1, 2, 3}, {}, {4}});
    Numbers<std::int64_t> order(stream, room.rows);
    RaggedWorkspace<B> workspace(room, stream);
    fill_bytes(stream, order.memory, 0xee);
    ragged::order_by_length(stream, order.memory, in.view(), ragged::LengthOrder::shortest_first, workspace);
    std::vector<std::int64_t> expected(index(room.rows), -1);
    expected[0] = 1, expected[1] = 2, expected[2] = 0;
    CHECK(order.read(stream) == expected);
}

TEST_CASE("reshape: orders refuse a workspace with too little room") {
    const BasicStream<B> stream;
    const RaggedCapacity room{1 << 17, 10};
    const RaggedBatch<Number, B> in(room, stream);
    Numbers<std::int64_t> order(stream, room.rows), starts(stream, 2);
    RaggedWorkspace<B> workspace({1, 1}, stream);
    CHECK(contains(text_of([&] {
                       ragged::order_by_length(stream, order.memory, in.view(),
                                               ragged::LengthOrder::shortest_first, workspace);
                   }),
                   "too small"));
    CHECK(contains(text_of([&] {
                       ragged::bucket_by_length(stream, order.memory, starts.memory, in.view(), {},
                                                workspace);
                   }),
                   "too small"));
    stream.sync();
}

} // namespace ragged_reshape_concatenate
