// Each collective against plain sums in float64, with any number of ranks and elements.
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "collective/checks.hpp"

namespace collective_collectives {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

} // namespace

TEST_CASE("collectives give what float64 sums give, with 1 to 4 ranks and any number of elements") {
    for (int ranks = 1; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        if (!enough_devices(ranks))
            return;
        const std::vector<std::string> thrown = on_ranks(communicators(ranks), [](Comm rank) {
            std::size_t round = 0;
            for (const std::size_t count : std::vector<std::size_t>{0, 1, 2, 3, 5, 511, 512, 1025, 4099}) {
                check_all<float>(rank, count, round, 1e-5);
                check_all<std::int32_t>(rank, count, round, 0);
                ++round;
            }
            check_all<double>(rank, 77, 1, 1e-13);
            check_all<std::int8_t>(rank, 77, 1, 0);
            check_all<std::int64_t>(rank, 77, 2, 0);
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
