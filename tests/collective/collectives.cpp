// Each collective against plain sums in float64, with any number of ranks and elements.
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "collective/ranks.hpp"
#include "support/random_values.hpp"

namespace collective_collectives {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

// What rank `rank` brings to round `round`: element `i`. Sums of them are exact in float32, but for the last bits where
// `rough`.
double value(int rank, std::size_t i, std::size_t round, bool rough) {
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

double expected(int ranks, std::size_t i, std::size_t round, bool rough, Reduction reduction) {
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
std::vector<T> to_vector(const BasicStream<B>& stream, DeviceSpan<const T, B> from) {
    std::vector<T> result(from.size());
    copy_and_wait(stream, result, from);
    return result;
}

// The largest distance between `found` and what is expected of elements from `offset` on.
template <class T>
double error_of(const std::vector<T>& found, std::size_t offset, int ranks, std::size_t round,
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

template <class T>
void run_all(const Comm& rank, std::size_t count, std::size_t round, double tolerance) {
    constexpr bool rough = std::is_floating_point_v<T>;
    const auto ranks = static_cast<std::size_t>(rank.ranks());
    const BasicStream<B> stream;
    const std::vector<T> mine = values<T>(rank.rank(), count * ranks, round, rough);
    DeviceBuffer<T, B> in(count * ranks);
    DeviceBuffer<T, B> out(count * ranks);
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
    copy_and_wait(stream, out.span().subspan(part, count), values<T>(rank.rank(), count, round, rough));
    all_gather(stream, rank, out.span().subspan(part, count), out);
    CHECK(same_bytes(to_vector<T>(stream, out), all));
}

} // namespace

TEST_CASE("collectives give what float64 sums give, with 1 to 4 ranks and any number of elements") {
    for (int ranks = 1; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        if (!enough_devices(ranks))
            return;
        const std::vector<std::string> thrown = on_ranks(communicators(ranks), [](Comm rank) {
            std::size_t round = 0;
            for (const std::size_t count : std::vector<std::size_t>{0, 1, 2, 3, 5, 511, 512, 1025, 4099}) {
                run_all<float>(rank, count, round, 1e-5);
                run_all<std::int32_t>(rank, count, round, 0);
                ++round;
            }
            run_all<double>(rank, 77, 1, 1e-13);
            run_all<std::int8_t>(rank, 77, 1, 0);
            run_all<std::int64_t>(rank, 77, 2, 0);
        });
        for (const std::string& text : thrown)
            CHECK(text == "");
    }
}

TEST_CASE("all ranks get the same bits, in each of many runs") {
    if (!enough_devices(2))
        return;
    const int ranks = B::device_count() < 4 ? 2 : 4;
    std::vector<std::vector<float>> found(static_cast<std::size_t>(ranks));
    for (int run = 0; run < 3; ++run) {
        const std::vector<std::string> thrown = on_ranks(communicators(ranks), [&](Comm rank) {
            const BasicStream<B> stream;
            // Values of many magnitudes, whose sum depends on the order.
            std::vector<float> mine(3001);
            for (std::size_t i = 0; i < mine.size(); ++i)
                mine[i] = std::ldexp(1.0f + static_cast<float>(value(rank.rank(), i, 3, true)),
                                     static_cast<int>((i + static_cast<std::size_t>(rank.rank()) * 5) % 23));
            DeviceBuffer<float, B> memory(mine.size());
            copy_and_wait(stream, memory, mine);
            for (int step = 0; step < 200; ++step)
                all_reduce(stream, rank, memory.span().first(1 + static_cast<std::size_t>(step) * 7 % 3001),
                           Reduction::average);
            std::vector<float>& mine_now = found[static_cast<std::size_t>(rank.rank())];
            const std::vector<float> former = mine_now;
            mine_now.assign(mine.size(), 0);
            copy_and_wait(stream, mine_now, memory);
            if (!former.empty())
                CHECK(same_bytes(former, mine_now));
        });
        for (const std::string& text : thrown)
            CHECK(text == "");
    }
    const std::size_t reduced = 1 + 199 * 7 % 3001;
    for (const std::vector<float>& others : found) {
        for (std::size_t i = 0; i < reduced; ++i)
            REQUIRE(others[i] == found[0][i]);
    }
}

TEST_CASE("wrong arguments of a collective get one sentence each") {
    if (!enough_devices(1))
        return;
    const std::vector<Comm> ends = communicators(1);
    const Comm& rank = ends[0];
    const BasicStream<B> stream;
    DeviceBuffer<float, B> three(3);
    DeviceBuffer<float, B> four(4);
    DeviceBuffer<std::int32_t, B> whole(3);
    CHECK_THROWS_WITH_AS(
        all_reduce(stream, rank, three, four),
        "all_reduce: the input holds 3 elements and the output 4; an output of 3 was expected", Error);
    CHECK_THROWS_WITH_AS(
        reduce_scatter(stream, rank, three, four),
        "reduce_scatter: the input holds 3 elements and the output 4; an output of 3 was expected", Error);
    CHECK_THROWS_WITH_AS(
        all_gather(stream, rank, four, three),
        "all_gather: the input holds 4 elements and the output 3; an output of 4 was expected", Error);
    CHECK_THROWS_WITH_AS(broadcast(stream, rank, three, 1),
                         "broadcast: the root is to be rank 1 of 1; expected one of them, from 0", Error);
    CHECK_THROWS_WITH_AS(all_reduce(stream, rank, whole, Reduction::average),
                         "all_reduce: the average of int32 elements was asked for; expected float or double",
                         Error);
    CHECK_THROWS_WITH_AS(Comm::for_devices({0, 0}),
                         "communicator: ranks 0 and 1 are both on device 0; expected a device for each rank",
                         Error);
    CHECK_THROWS_WITH_AS(Comm::for_devices(std::vector<int>{}),
                         "communicator: expected at least one device, and none was named", Error);
    CHECK_THROWS_AS(Comm::for_devices({-1}), Error);
    CHECK_THROWS_AS(Comm::for_devices({B::device_count()}), Error);
    CHECK_THROWS_WITH_AS(Comm::for_process({}, 2, 2),
                         "communicator: rank 2 of 2; expected a rank from 0 to one less than the ranks",
                         Error);
    if (!enough_devices(2))
        return;
    std::vector<Comm> two = communicators(2);
    CHECK_THROWS_WITH_AS(
        all_reduce(stream, two[1], three),
        "all_reduce: the stream belongs to device 0 and the communicator's rank 1 to device 1", Error);
}

} // namespace collective_collectives
