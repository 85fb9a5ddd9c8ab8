// What blocks make of parts of a row, merged: the same as of the whole row. The Host backend takes rows whole.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <sluice/ragged/detail/row_functors.hpp>
#include <sluice/ragged/sort.hpp>

#include "support/doctest.hpp"

namespace ragged_row_functors {

using namespace sluice::ragged::detail;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) < 1e-4F; }
bool same(std::int64_t a, std::int64_t b) { return a == b; }

/// Of each row in parts that end at any two places.
template <class Op>
void check_parts(const std::vector<std::vector<float>>& rows) {
    const Op op;
    for (const std::vector<float>& row : rows) {
        CAPTURE(row.size());
        const auto length = static_cast<std::int64_t>(row.size());
        const auto part = [&](std::int64_t begin, std::int64_t end) {
            auto accumulator = op.init();
            for (std::int64_t i = begin; i < end; ++i)
                accumulator = op.take(accumulator, row[static_cast<std::size_t>(i)], i);
            return accumulator;
        };
        const auto whole = op.finish(reduce_all(op, row.data(), length), length);
        for (std::int64_t first = 0; first <= length; ++first) {
            for (std::int64_t second = first; second <= length; ++second) {
                CAPTURE(first);
                CAPTURE(second);
                const auto left =
                    op.merge(op.merge(part(0, first), part(first, second)), part(second, length));
                const auto right =
                    op.merge(part(0, first), op.merge(part(first, second), part(second, length)));
                CHECK(same(op.finish(left, length), whole));
                CHECK(same(op.finish(right, length), whole));
            }
        }
    }
}

const std::vector<std::vector<float>> finite{
    {}, {3}, {-1, -1}, {1, 2, 3, 4, 5}, {5, 4, 3, 2, 1}, {2, 7, 1, 7, 2, 7}, {-3, -2, -9, -2}, {0, 0, 0, 0}};

} // namespace

TEST_CASE("parts of a row, merged, are the whole row's sum, mean, extremes and exponentials") {
    std::vector<std::vector<float>> all = finite;
    all.insert(all.end(),
               {{1, nan, 2}, {nan, nan}, {1, infinity, 2, infinity}, {-infinity, 3}, {-infinity, -infinity}});
    check_parts<SumOf<float, float>>(finite);
    check_parts<MeanOf<float, float>>(finite);
    check_parts<ExtremeOf<float, true>>(all);
    check_parts<ExtremeOf<float, false>>(all);
    check_parts<LogSumExpOf<float>>(finite);
    check_parts<LogSumExpOf<float>>(
        {{1, infinity, 2}, {infinity, infinity}, {-infinity, 3}, {3, -infinity, 4}});
}

// The compiler refuses what is undefined.
static_assert(plus((std::numeric_limits<int>::max)(), 1) == (std::numeric_limits<int>::min)());
static_assert(plus((std::numeric_limits<std::int64_t>::min)(), std::int64_t{-1}) ==
              (std::numeric_limits<std::int64_t>::max)());
static_assert(plus(std::int8_t{100}, std::int8_t{100}) == -56);
static_assert(plus(true, true));

TEST_CASE("parts of a row, merged in either order, have the first of the greatest values") {
    std::vector<std::vector<float>> all = finite;
    all.insert(all.end(), {{1, nan, 2, nan}, {infinity, 1, infinity}, {-infinity, -infinity}});
    check_parts<ArgmaxOf<float>>(all);
    const ArgmaxOf<float> op;
    using Found = IndexedValue<float>;
    CHECK(op.merge(Found{7, 4}, Found{7, 2}).position == 2);
    CHECK(op.merge(Found{7, 2}, Found{7, 4}).position == 2);
    CHECK(op.merge(Found{7, 0}, Found{8, 4}).position == 4);
    CHECK(op.merge(Found{8, 0}, Found{7, 4}).position == 0);
    CHECK(op.merge(op.init(), Found{7, 0}).position == 0);
    CHECK(op.merge(Found{7, 0}, op.init()).position == 0);
}

namespace {

/// Values in their order, of which those that are equal stand beside each other.
template <class T>
void check_keys(const std::vector<T>& ascending) {
    for (const bool descending : {false, true}) {
        CAPTURE(descending);
        const SortKey<T> key{descending};
        for (std::size_t i = 0; i < ascending.size(); ++i) {
            CAPTURE(i);
            CHECK(key(ascending[i]) <= key(key.last()));
            for (std::size_t j = 0; j < i; ++j) {
                if (ascending[j] == ascending[i])
                    CHECK(key(ascending[j]) == key(ascending[i]));
                else
                    CHECK((key(ascending[j]) < key(ascending[i])) != descending);
            }
        }
    }
}

} // namespace

TEST_CASE("quotients are exact on both sides of 2^32") {
    for (const std::int64_t a : {std::int64_t{0}, std::int64_t{7}, (std::int64_t{1} << 32) - 1,
                                 std::int64_t{1} << 32, (std::int64_t{1} << 33) + 5, std::int64_t{1} << 62}) {
        for (const std::int64_t b : {std::int64_t{1}, std::int64_t{3}, (std::int64_t{1} << 32) + 1}) {
            CAPTURE(a);
            CAPTURE(b);
            CHECK(quotient(a, b) == a / b);
        }
    }
}

TEST_CASE("keys of values compare as they are to be sorted, and none comes behind the last") {
    check_keys<float>({-infinity, -3e38F, -1, -1e-40F, -0.0F, 0.0F, 1e-40F, 1, 3e38F, infinity, nan});
    check_keys<double>({-1e300, -1, 0, 1, 1e300, std::numeric_limits<double>::infinity()});
    check_keys<std::int8_t>({-128, -1, 0, 1, 127});
    check_keys<std::int64_t>(
        {std::numeric_limits<std::int64_t>::min(), -1, 0, 1, std::numeric_limits<std::int64_t>::max()});
    check_keys<std::uint16_t>({0, 1, 32767, 32768, 65535});
}

} // namespace ragged_row_functors
