// Sorting within rows.
#include <algorithm>
#include <numeric>

#include "ragged/rows_case.hpp"

namespace ragged_rows_sort {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

namespace {

template <class T>
T value_for(CountedRandom& random) {
    if constexpr (std::is_floating_point_v<T>) {
        switch (random.below(12)) { // zeros of both signs, which are equal, and values that come often
        case 0:
            return T(0);
        case 1:
            return -T(0);
        case 2:
            return static_cast<T>(random.below(3)) - T(1);
        case 3:
            return random.below(2) == 0 ? std::numeric_limits<T>::infinity()
                                        : -std::numeric_limits<T>::infinity();
        default:
            return static_cast<T>(random.uniform()) - T(0.5);
        }
    } else {
        return static_cast<T>(random.next_u32() * 2654435761ull * (sizeof(T) == 8 ? 0x100000001ull : 1ull));
    }
}

template <class T, ragged::Order Order>
struct Sorts {
    static constexpr bool descending = Order == ragged::Order::descending;

    explicit Sorts(Ref stream)
        : in(stream), alone(stream, room.values), sorted(stream, room.values), positions(stream, room.values),
          workspace(room, stream) {}

    void load(Ref stream, std::uint64_t sample) {
        rows = mixed_rows(sample, value_for<T>);
        in.load(stream, rows);
    }
    void poison(Ref stream) {
        alone.poison(stream);
        sorted.poison(stream);
        positions.poison(stream);
    }
    void enqueue(Ref stream) {
        ragged::sort(stream, alone.memory, in.batch, workspace, Order);
        ragged::sort_with_positions(stream, sorted.memory, positions.memory, in.batch, workspace, Order);
    }
    void check(Ref stream) {
        std::vector<T> expected;
        std::vector<std::int64_t> places;
        for (const std::vector<T>& row : rows) {
            std::vector<std::size_t> order(row.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return descending ? row[a] > row[b] : row[a] < row[b];
            });
            for (const std::size_t i : order) {
                expected.push_back(row[i]);
                places.push_back(static_cast<std::int64_t>(i));
            }
        }
        const auto first = [&](const auto& got) {
            return std::vector(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(expected.size()));
        };
        const auto got_alone = alone.read(stream), got = sorted.read(stream);
        const auto got_places = positions.read(stream);
        CHECK(same_bytes(first(got_alone), expected));
        CHECK(same_bytes(first(got), expected));
        CHECK(first(got_places) == places);
        CHECK(untouched(got_alone, expected.size()));
        CHECK(untouched(got, expected.size()));
        CHECK(untouched(got_places, expected.size()));
    }

    Operand<T> in;
    Result<T> alone, sorted;
    Result<std::int64_t> positions;
    RaggedWorkspace<B> workspace;
    Lists<T> rows;
};

} // namespace

// Each is a case of its own, so that a sanitizer's runs can go side by side.
TEST_CASE("floats are sorted as by a stable sort, upwards") {
    drive<Sorts<float, ragged::Order::ascending>>(3 * kinds);
}
TEST_CASE("floats are sorted as by a stable sort, downwards") {
    drive<Sorts<float, ragged::Order::descending>>(3 * kinds);
}
TEST_CASE("doubles are sorted as by a stable sort") {
    drive<Sorts<double, ragged::Order::descending>>(2 * kinds);
}
TEST_CASE("integers of 8 bits are sorted as by a stable sort") {
    drive<Sorts<std::uint8_t, ragged::Order::ascending>>(2 * kinds);
}
TEST_CASE("integers of 16 bits are sorted as by a stable sort") {
    drive<Sorts<std::int16_t, ragged::Order::descending>>(2 * kinds);
}
TEST_CASE("integers of 32 bits are sorted as by a stable sort") {
    drive<Sorts<std::int32_t, ragged::Order::ascending>>(2 * kinds);
}
TEST_CASE("integers of 64 bits are sorted as by a stable sort") {
    drive<Sorts<std::int64_t, ragged::Order::ascending>>(2 * kinds);
}

TEST_CASE("a single row, and a single value, are sorted as well") {
    const BasicStream<B> stream;
    for (const RaggedCapacity small : {RaggedCapacity{1, 3}, RaggedCapacity{1, 1}, RaggedCapacity{2, 1}}) {
        CAPTURE(small.rows);
        CAPTURE(small.values);
        Operand<float> in(stream, small);
        Result<float> sorted(stream, small.values);
        Result<std::int64_t> positions(stream, small.values);
        RaggedWorkspace<B> workspace(small, stream);
        std::vector<float> row{3, 1, 2}, expected{1, 2, 3};
        std::vector<std::int64_t> places{1, 2, 0};
        if (small.values == 1) {
            row = expected = {3};
            places = {0};
        }
        in.load(stream, {row});
        sorted.poison(stream);
        positions.poison(stream);
        ragged::sort_with_positions(stream, sorted.memory, positions.memory, in.batch, workspace);
        CHECK(sorted.read(stream) == expected);
        CHECK(positions.read(stream) == places);
    }
}

TEST_CASE("NaN comes beyond infinity") {
    const BasicStream<B> stream;
    const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
    Operand<float> in(stream);
    Result<float> sorted(stream, room.values);
    RaggedWorkspace<B> workspace(room, stream);
    for (const std::size_t length : {4u, 20u, 200u, 1000u, 3000u, 10000u}) {
        CAPTURE(length);
        std::vector<float> row(length, 1.0f);
        row[0] = nan;
        row[1] = inf;
        row[2] = -inf;
        in.load(stream, {row});
        ragged::sort(stream, sorted.memory, in.batch, workspace);
        const auto up = sorted.read(stream);
        CHECK((up[0] == -inf && up[length - 2] == inf && std::isnan(up[length - 1])));
        ragged::sort(stream, sorted.memory, in.batch, workspace, ragged::Order::descending);
        const auto down = sorted.read(stream);
        CHECK((std::isnan(down[0]) && down[1] == inf && down[length - 1] == -inf));
    }
}

TEST_CASE("a workspace has room to sort the widest values, and one of two bytes a value less has not") {
    constexpr std::int64_t size = 1 << 20;
    const BasicStream<B> stream;
    const RaggedCapacity large{2, size};
    Operand<double> in(stream, large);
    Result<double> sorted(stream, size);
    Result<std::int64_t> positions(stream, size);
    RaggedWorkspace<B> workspace(large, stream), less(large, stream, 15);
    std::vector<double> row(size);
    for (std::int64_t i = 0; i < size; ++i) // each number once
        row[static_cast<std::size_t>(i)] = static_cast<double>(i * 480227 % size);
    in.load(stream, {{}, row});
    sorted.poison(stream);
    positions.poison(stream);
    CHECK(contains(text_of([&] {
                       ragged::sort_with_positions(stream, sorted.memory, positions.memory, in.batch, less);
                   }),
                   "too small"));
    ragged::sort_with_positions(stream, sorted.memory, positions.memory, in.batch, workspace);
    const auto got = sorted.read(stream);
    const auto places = positions.read(stream);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const auto place = static_cast<std::size_t>(places[i]);
        wrong += got[i] == static_cast<double>(i) && place < row.size() && row[place] == got[i] ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("sorting in place, or with too small a workspace, is refused") {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch(room, stream);
    DeviceBuffer<float, B> out(static_cast<std::size_t>(room.values), stream);
    RaggedWorkspace<B> workspace(room, stream), none({1, 1}, stream, 1);
    RaggedBatch<float, B> large({10, 1 << 20}, stream);
    DeviceBuffer<float, B> large_out(1 << 20, stream);
    RaggedBatch<float, B> single({1, 1}, stream), empty({2, 0}, stream);
    CHECK(contains(text_of([&] { ragged::sort(stream, batch, batch, workspace); }), "other memory"));
    CHECK(contains(text_of([&] { ragged::sort(stream, single, single, workspace); }), "other memory"));
    CHECK(
        text_of([&] { ragged::sort(stream, empty, empty, workspace); }).empty()); // no memory, so no same one
    CHECK(contains(text_of([&] { ragged::sort(stream, large_out, large, none); }), "too small"));
    RaggedBatch<std::int64_t, B> counts(room, stream), others(room, stream);
    const auto sorted_into = [&](auto&& values, auto&& positions) {
        return text_of([&] { ragged::sort_with_positions(stream, values, positions, counts, workspace); });
    };
    CHECK(sorted_into(others.values(), others.values()) ==
          "ragged::sort_with_positions: the result for positions and the result overlap, expected other "
          "memory for the result for positions");
    CHECK(contains(sorted_into(others.values(), counts.values()), "positions and the rows' values overlap"));
    CHECK(text_of([&] { ragged::sort(stream, out, batch, workspace, static_cast<ragged::Order>(2)); }) ==
          "ragged::sort: the order is 2, which has no name; expected ascending or descending");
}

} // namespace ragged_rows_sort
