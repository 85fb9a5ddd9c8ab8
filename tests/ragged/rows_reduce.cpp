// Reductions of rows of every length and type.
#include <algorithm>

#include "ragged/rows_case.hpp"

namespace ragged_rows_reduce {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// With a workspace, or without, which decides who adds up long rows.
template <bool Shared>
struct Reductions {
    explicit Reductions(Ref stream)
        : in(stream), memory(room, stream), workspace(Shared ? &memory : nullptr), sums(stream, room.rows),
          wide_sums(stream, room.rows), means(stream, room.rows), maxima(stream, room.rows),
          minima(stream, room.rows), places(stream, room.rows), logs(stream, room.rows) {}

    void load(Ref stream, std::uint64_t sample) {
        rows = mixed_rows(sample, some_float);
        in.load(stream, rows);
    }
    void poison(Ref stream) {
        for (Result<float>* result : {&sums, &means, &maxima, &minima, &logs})
            result->poison(stream);
        wide_sums.poison(stream);
        places.poison(stream);
    }
    void enqueue(Ref stream) {
        ragged::sum(stream, sums.memory, in.batch, workspace);
        ragged::sum(stream, wide_sums.memory, in.batch.view(), workspace);
        ragged::mean(stream, means.memory, in.batch, workspace);
        ragged::max(stream, maxima.memory, in.batch, workspace);
        ragged::min(stream, minima.memory.span(), in.batch, workspace);
        ragged::argmax(stream, places.memory, in.batch, workspace);
        ragged::logsumexp(stream, logs.memory, in.batch, workspace);
    }
    void check(Ref stream) {
        const auto sum = sums.read(stream), mean = means.read(stream), max = maxima.read(stream);
        const auto min = minima.read(stream), log = logs.read(stream);
        const auto wide = wide_sums.read(stream);
        const auto place = places.read(stream);
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const std::vector<float>& row = rows[r];
            double total = 0, terms = 0, exponentials = 0, greatest = -infinity, least = infinity;
            for (const float value : row) {
                total += value;
                terms += std::abs(value);
                greatest = std::max<double>(greatest, value);
                least = std::min<double>(least, value);
            }
            for (const float value : row)
                exponentials += std::exp(value - greatest);
            const auto count = static_cast<double>(row.size());
            const bool empty = row.empty();
            const std::int64_t first = empty ? -1 : std::max_element(row.begin(), row.end()) - row.begin();
            // The Host backend adds one value after the other, so its float sums are the less exact.
            const double loose = 1e-7 * (20 + count / 8);
            const bool right =
                close(sum[r], total, terms, loose) && close(wide[r], total, terms, 1e-12) &&
                close(mean[r], empty ? std::nan("") : total / count, empty ? 0 : terms / count, loose) &&
                max[r] == static_cast<float>(greatest) && min[r] == static_cast<float>(least) &&
                place[r] == first &&
                close(log[r], empty ? -infinity : greatest + std::log(exponentials), std::abs(greatest) + 10,
                      1e-4);
            wrong += right ? 0u : 1u;
        }
        CHECK(wrong == 0);
        CHECK(untouched(sum, rows.size()));
        CHECK(untouched(mean, rows.size()));
        CHECK(untouched(max, rows.size()));
        CHECK(untouched(min, rows.size()));
        CHECK(untouched(log, rows.size()));
        CHECK(untouched(wide, rows.size()));
        CHECK(untouched(place, rows.size()));
    }

    Operand<float> in;
    RaggedWorkspace<B> memory;
    RaggedWorkspace<B>* workspace;
    Result<float> sums;
    Result<double> wide_sums;
    Result<float> means, maxima, minima;
    Result<std::int64_t> places;
    Result<float> logs;
    Lists<float> rows;
};

/// Integers, of one byte and of eight, which add up exactly.
struct Integers {
    explicit Integers(Ref stream)
        : bytes(stream), longs(stream), byte_sums(stream, room.rows), byte_minima(stream, room.rows),
          long_sums(stream, room.rows), long_maxima(stream, room.rows), places(stream, room.rows) {}

    void load(Ref stream, std::uint64_t sample) {
        byte_rows = mixed_rows(
            sample, [](CountedRandom& random) { return static_cast<std::uint8_t>(random.below(256)); });
        long_rows = mixed_rows(sample + 1, [](CountedRandom& random) {
            return (static_cast<std::int64_t>(random.next_u32()) << 20) - (std::int64_t{1} << 51);
        });
        bytes.load(stream, byte_rows);
        longs.load(stream, long_rows);
    }
    void poison(Ref stream) {
        byte_sums.poison(stream);
        byte_minima.poison(stream);
        long_sums.poison(stream);
        long_maxima.poison(stream);
        places.poison(stream);
    }
    void enqueue(Ref stream) {
        ragged::sum(stream, byte_sums.memory, bytes.batch);
        ragged::min(stream, byte_minima.memory, bytes.batch);
        ragged::sum(stream, long_sums.memory, longs.batch);
        ragged::max(stream, long_maxima.memory, longs.batch);
        ragged::argmax(stream, places.memory, bytes.batch);
    }
    void check(Ref stream) {
        const auto byte_sum = byte_sums.read(stream), long_sum = long_sums.read(stream);
        const auto byte_min = byte_minima.read(stream);
        const auto long_max = long_maxima.read(stream), place = places.read(stream);
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < byte_rows.size(); ++r) {
            const std::vector<std::uint8_t>& row = byte_rows[r];
            std::int64_t total = 0;
            std::uint8_t least = 255;
            for (const std::uint8_t value : row) {
                total += value;
                least = std::min(least, value);
            }
            const std::int64_t first =
                row.empty() ? -1 : std::max_element(row.begin(), row.end()) - row.begin();
            wrong += byte_sum[r] == total && byte_min[r] == least && place[r] == first ? 0u : 1u;
        }
        for (std::size_t r = 0; r < long_rows.size(); ++r) {
            std::int64_t total = 0;
            std::int64_t greatest = std::numeric_limits<std::int64_t>::lowest();
            for (const std::int64_t value : long_rows[r]) {
                total += value;
                greatest = std::max(greatest, value);
            }
            wrong += long_sum[r] == total && long_max[r] == greatest ? 0u : 1u;
        }
        CHECK(wrong == 0);
        CHECK(untouched(byte_sum, byte_rows.size()));
        CHECK(untouched(long_max, long_rows.size()));
    }

    Operand<std::uint8_t> bytes;
    Operand<std::int64_t> longs;
    Result<std::int64_t> byte_sums;
    Result<std::uint8_t> byte_minima;
    Result<std::int64_t> long_sums, long_maxima, places;
    Lists<std::uint8_t> byte_rows;
    Lists<std::int64_t> long_rows;
};

} // namespace

TEST_CASE("reductions of floating-point rows are those of plain loops") {
    drive<Reductions<false>>(3 * kinds);
}

TEST_CASE("reductions that share long rows are those of plain loops") { drive<Reductions<true>>(3 * kinds); }

TEST_CASE("reductions of integer rows are those of plain loops") { drive<Integers>(3 * kinds); }

} // namespace ragged_rows_reduce
