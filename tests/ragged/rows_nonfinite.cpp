// Infinities and NaN in rows: each operation gives what float64 gives by its definition, which is what PyTorch gives, and rows beside
// them, and empty ones, are as ever.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ragged/rows_case.hpp"

namespace ragged_rows_nonfinite {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What stands at the first, the middle and the last place of a row; 0: the value that is there.
struct Marks {
    double first, middle, last;
};
constexpr Marks all_marks[] = {
    {0, 0, 0},      {inf, 0, 0},   {0, inf, 0},   {0, 0, inf},    {-inf, 0, 0},     {0, -inf, 0},
    {0, 0, -inf},   {nan, 0, 0},   {0, nan, 0},   {0, 0, nan},    {inf, 0, inf},    {inf, 0, -inf},
    {-inf, inf, 0}, {inf, nan, 0}, {nan, 0, inf}, {-inf, 0, nan}, {nan, -inf, inf}, {-inf, -inf, -inf}};

template <class T>
Lists<T> marked_rows(std::size_t length) {
    Lists<T> rows;
    const auto add = [&](auto at) {
        rows.emplace_back();
        for (std::size_t i = 0; i < length; ++i)
            rows.back().push_back(static_cast<T>(at(i)));
    };
    const auto plain = [](std::size_t i) { return static_cast<double>(i % 7) - 3.0; };
    for (const Marks& marks : all_marks) {
        add([&](std::size_t i) {
            const double mark = i == 0            ? marks.first
                                : i == length / 2 ? marks.middle
                                : i + 1 == length ? marks.last
                                                  : 0;
            return mark != 0 ? mark : plain(i); // NaN is not 0
        });
        if (rows.size() % 3 == 0)
            rows.emplace_back(); // an empty one between
    }
    for (const double everywhere : {inf, -inf, nan})
        add([&](std::size_t) { return everywhere; });
    rows.emplace_back();
    add(plain);
    return rows;
}

// By the definitions, in float64.
struct Expected {
    double sum = 0, mean = nan, max = -inf, min = inf, logsumexp = -inf;
    std::int64_t argmax = -1;
    std::vector<double> softmax, before;
};
template <class T>
Expected expected_of(const std::vector<T>& row) {
    Expected of;
    bool any_nan = false;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double value = static_cast<double>(row[i]);
        of.before.push_back(of.sum);
        of.sum += value;
        if (std::isnan(value) && !any_nan) {
            any_nan = true;
            of.argmax = static_cast<std::int64_t>(i);
            of.max = of.min = nan;
        }
        if (any_nan)
            continue;
        if (of.argmax < 0 || value > of.max)
            of.argmax = static_cast<std::int64_t>(i);
        of.max = std::max(of.max, value);
        of.min = std::min(of.min, value);
    }
    if (!row.empty())
        of.mean = of.sum / static_cast<double>(row.size());
    double total = 0;
    for (const T value : row)
        total += std::exp(static_cast<double>(value) - of.max);
    for (const T value : row)
        of.softmax.push_back(std::exp(static_cast<double>(value) - of.max) / total);
    // exp(inf - inf) is no number, and the limit is infinity.
    of.logsumexp = std::isinf(of.max) ? of.max : of.max + std::log(total);
    return of;
}

template <class T>
void check_rows(std::size_t length, bool shared) {
    CAPTURE(length);
    CAPTURE(shared);
    const BasicStream<B> stream;
    const Lists<T> rows = marked_rows<T>(length);
    const RaggedCapacity capacity{static_cast<std::int64_t>(rows.size()),
                                  static_cast<std::int64_t>(rows.size() * length)};
    Operand<T> in(stream, capacity);
    Result<T> sums(stream, capacity.rows), means(stream, capacity.rows), maxima(stream, capacity.rows),
        minima(stream, capacity.rows), logs(stream, capacity.rows), softmax(stream, capacity.values),
        before(stream, capacity.values);
    Result<std::int64_t> places(stream, capacity.rows);
    RaggedWorkspace<B> room_for_parts(capacity, stream);
    RaggedWorkspace<B>* const workspace = shared ? &room_for_parts : nullptr;
    in.load(stream, rows);
    ragged::sum(stream, sums.memory, in.batch, workspace);
    ragged::mean(stream, means.memory, in.batch, workspace);
    ragged::max(stream, maxima.memory, in.batch, workspace);
    ragged::min(stream, minima.memory, in.batch, workspace);
    ragged::argmax(stream, places.memory, in.batch, workspace);
    ragged::logsumexp(stream, logs.memory, in.batch, workspace);
    ragged::softmax(stream, softmax.memory, in.batch, workspace);
    ragged::exclusive_sum(stream, before.memory, in.batch, workspace);
    const auto sum = sums.read(stream), mean = means.read(stream), max = maxima.read(stream),
               min = minima.read(stream), log = logs.read(stream), soft = softmax.read(stream),
               sum_before = before.read(stream);
    const auto place = places.read(stream);
    std::size_t at = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        CAPTURE(r);
        const Expected expected = expected_of(rows[r]);
        const double terms = 4.0 * static_cast<double>(rows[r].size());
        CHECK(close(static_cast<double>(sum[r]), expected.sum, terms));
        CHECK(close(static_cast<double>(mean[r]), expected.mean, 4.0));
        CHECK(close(static_cast<double>(max[r]), expected.max, 0));
        CHECK(close(static_cast<double>(min[r]), expected.min, 0));
        CHECK(place[r] == expected.argmax);
        CHECK(close(static_cast<double>(log[r]), expected.logsumexp, 20.0, 1e-4));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < rows[r].size(); ++i, ++at) {
            wrong += close(static_cast<double>(soft[at]), expected.softmax[i], 1.0, 1e-4) ? 0u : 1u;
            wrong += close(static_cast<double>(sum_before[at]), expected.before[i], terms) ? 0u : 1u;
        }
        CHECK(wrong == 0);
    }
}

} // namespace

TEST_CASE("rows with infinities and NaN give what float64 gives, and leave the rows beside them alone") {
    // As a thread, a group of lanes, a warp and a block is given them, and cut into parts that all blocks share.
    for (const std::size_t length : {1u, 2u, 5u, 24u, 25u, 256u, 257u, 1024u, 1025u, 9000u}) {
        check_rows<float>(length, false);
        check_rows<double>(length, false);
    }
    if (!sanitized) {
        check_rows<float>(40000, true);
        check_rows<double>(40000, true);
    }
}

} // namespace ragged_rows_nonfinite
