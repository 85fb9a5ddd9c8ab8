// Each collective against plain sums in float64.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/ranks.hpp"
#include "support/doctest.hpp"
#include "support/random_values.hpp"

namespace sluice::test {

// What rank `rank` brings to round `round`: element `i`. Sums of them are exact in float32, but for the last bits where
// `rough`.
inline double value(int rank, std::size_t i, std::size_t round, bool rough) {
    const double whole =
        static_cast<double>((i * 7 + round * 13 + static_cast<std::size_t>(rank) * 101) % 61) - 20;
    return rough ? whole / 7 : whole;
}

template <class T>
std::vector<T> values(int rank, std::size_t count, std::size_t round, bool rough) {
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i)
        result[i] = static_cast<T>(value(rank, i, round, rough));
    return result;
}

inline double expected(int ranks, std::size_t i, std::size_t round, bool rough, Reduction reduction) {
    double result = value(0, i, round, rough);
    for (int rank = 1; rank < ranks; ++rank) {
        const double next = value(rank, i, round, rough);
        if (reduction == Reduction::minimum)
            result = std::fmin(result, next);
        else if (reduction == Reduction::maximum)
            result = std::fmax(result, next);
        else
            result += next;
    }
    return reduction == Reduction::average ? result / ranks : result;
}

template <class T>
std::vector<T> to_vector(const BasicStream<TestBackend>& stream, DeviceSpan<const T, TestBackend> from) {
    std::vector<T> result(from.size());
    copy_and_wait(stream, result, from);
    return result;
}

// The largest distance between `found` and what is expected of elements from `offset` on.
template <class T>
inline double error_of(const std::vector<T>& found, std::size_t offset, int ranks, std::size_t round,
                       Reduction reduction) {
    constexpr bool rough = std::is_floating_point_v<T>;
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double error =
            std::fabs(static_cast<double>(found[i]) - expected(ranks, offset + i, round, rough, reduction));
        worst = error > worst ? error : worst;
    }
    return worst;
}

// All collectives once, of `count` elements, or that many for each rank.
template <class T>
void check_all(const Comm& rank, std::size_t count, std::size_t round, double tolerance) {
    constexpr bool rough = std::is_floating_point_v<T>;
    const auto ranks = static_cast<std::size_t>(rank.ranks());
    const BasicStream<TestBackend> stream;
    const std::vector<T> mine = values<T>(rank.rank(), count * ranks, round, rough);
    DeviceBuffer<T, TestBackend> in(count * ranks);
    DeviceBuffer<T, TestBackend> out(count * ranks);
    copy_and_wait(stream, in, mine);

    const Reduction reductions[] = {Reduction::sum, Reduction::minimum, Reduction::maximum,
                                    Reduction::average};
    const Reduction reduction = reductions[round % (rough ? 4 : 3)];
    all_reduce(stream, rank, in, out, reduction);
    CHECK(error_of<T>(to_vector<T>(stream, out), 0, rank.ranks(), round, reduction) <= tolerance);
    CHECK(same_bytes(to_vector<T>(stream, in), mine));

    const std::size_t part = count * static_cast<std::size_t>(rank.rank());
    reduce_scatter(stream, rank, in, out.span().first(count), reduction);
    CHECK(error_of<T>(to_vector<T>(stream, out.span().first(count)), part, rank.ranks(), round, reduction) <=
          tolerance);

    all_gather(stream, rank, in.span().first(count), out);
    std::vector<T> all;
    for (int from = 0; from < rank.ranks(); ++from) {
        const std::vector<T> theirs = values<T>(from, count, round, rough);
        all.insert(all.end(), theirs.begin(), theirs.end());
    }
    CHECK(same_bytes(to_vector<T>(stream, out), all));

    const int root = static_cast<int>(round % ranks);
    broadcast(stream, rank, out.span().first(count), root);
    broadcast(stream, rank, in, root);
    CHECK(same_bytes(to_vector<T>(stream, in), values<T>(root, count * ranks, round, rough)));

    // In place.
    copy_and_wait(stream, in, mine);
    all_reduce(stream, rank, in, reduction);
    CHECK(error_of<T>(to_vector<T>(stream, in), 0, rank.ranks(), round, reduction) <= tolerance);
    copy_and_wait(stream, in, mine);
    reduce_scatter(stream, rank, in, in.span().subspan(part, count), reduction);
    CHECK(error_of<T>(to_vector<T>(stream, in.span().subspan(part, count)), part, rank.ranks(), round,
                      reduction) <= tolerance);
    const std::vector<T> now = to_vector<T>(stream, in); // the other parts are as they were
    CHECK(same_bytes(std::vector<T>(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(part)),
                     std::vector<T>(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(part))));
    CHECK(same_bytes(std::vector<T>(now.begin() + static_cast<std::ptrdiff_t>(part + count), now.end()),
                     std::vector<T>(mine.begin() + static_cast<std::ptrdiff_t>(part + count), mine.end())));
    copy_and_wait(stream, out.span().subspan(part, count), values<T>(rank.rank(), count, round, rough));
    all_gather(stream, rank, out.span().subspan(part, count), out);
    CHECK(same_bytes(to_vector<T>(stream, out), all));
}

} // namespace sluice::test
