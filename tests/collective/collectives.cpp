// Each collective against plain sums in float64, with any number of ranks and elements.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "collective/checks.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace collective_collectives {
struct MyHalf {
    std::uint16_t bits;
};
struct MyBfloat {
    std::uint16_t bits;
};
} // namespace collective_collectives
template <>
inline constexpr sluice::Float16Format sluice::float16_format<collective_collectives::MyHalf> =
    sluice::Float16Format::float16;
template <>
inline constexpr sluice::Float16Format sluice::float16_format<collective_collectives::MyBfloat> =
    sluice::Float16Format::bfloat16;

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
            check_all<std::int8_t>(rank, 1, 1, 0); // a single byte
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

#if !defined(SLUICE_TEST_CUDA) // NCCL rounds as it likes
TEST_CASE("all numbers of 16 bits come through float, and sums of them are rounded once") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        detail::Float16Bits there{half};
        const float value = detail::wide(there);
        // By hand: sign, exponent of bias 15, fraction.
        const int exponent = static_cast<int>(bits >> 10 & 31);
        const double fraction = static_cast<double>(bits & 1023) / 1024;
        double magnitude =
            exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
        if (exponent == 31)
            magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
        if (std::isnan(magnitude))
            REQUIRE(std::isnan(value));
        else
            REQUIRE(static_cast<double>(value) == (bits >= 0x8000 ? -magnitude : magnitude));
        detail::Float16Bits back{};
        detail::narrow(value, back);
        if (!std::isnan(value))
            REQUIRE(back.bits == half);
        // Halfway to the next one, ties go to the even one.
        if (exponent < 31 && bits + 1 != 0x8000 && bits < 0x7bff) {
            const float next = detail::wide(detail::Float16Bits{static_cast<std::uint16_t>(bits + 1)});
            detail::narrow((value + next) / 2, back);
            REQUIRE(back.bits == (bits % 2 == 0 ? bits : bits + 1));
            detail::narrow(std::nextafter((value + next) / 2, next), back);
            REQUIRE(back.bits == bits + 1);
        }
        detail::Bfloat16Bits upper{};
        detail::narrow(detail::wide(detail::Bfloat16Bits{half}), upper);
        if (!std::isnan(detail::wide(detail::Bfloat16Bits{half})))
            REQUIRE(upper.bits == half);
    }
    // NaN stays NaN, and keeps its sign, also where the bits that make it one are cut off or rounded up.
    for (const std::uint32_t nan : {0x7f800001U, 0x7f80ffffU, 0x7fffffffU, 0x7fc00000U}) {
        CAPTURE(nan);
        for (const std::uint32_t sign : {0U, 0x80000000U}) {
            const float value = std::bit_cast<float>(sign | nan);
            detail::Bfloat16Bits short_one{};
            detail::narrow(value, short_one);
            CHECK(std::isnan(detail::wide(short_one)));
            CHECK((short_one.bits >> 15 != 0) == (sign != 0));
            detail::Float16Bits half{};
            detail::narrow(value, half);
            CHECK(std::isnan(detail::wide(half)));
            CHECK((half.bits >> 15 != 0) == (sign != 0));
        }
    }
    // And infinity is none.
    detail::Bfloat16Bits infinite{};
    detail::narrow(std::numeric_limits<float>::infinity(), infinite);
    CHECK(infinite.bits == 0x7f80);
    detail::Float16Bits large{};
    detail::narrow(65519.0F, large);
    CHECK(large.bits == 0x7bff);
    detail::narrow(65520.0F, large);
    CHECK(large.bits == 0x7c00);
    detail::Bfloat16Bits upper{};
    detail::narrow(1.0F + 0x1p-8F, upper);
    CHECK(upper.bits == 0x3f80);
    detail::narrow(1.0F + 0x3p-8F, upper);
    CHECK(upper.bits == 0x3f82);
}

TEST_CASE("extremes leave NaN out and zeros have their order, whichever rank has them") {
    if (!enough_devices(2))
        return;
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> some{nan, 1, nan, 0.0f, -0.0f, 2}, others{1, nan, nan, -0.0f, 0.0f, -3};
    const std::vector<MyHalf> half_some{{0x7e00}, {0x3c00}, {0x0000}},
        half_others{{0x3c00}, {0x7e00}, {0x8000}};
    const std::vector<std::string> thrown = on_ranks(communicators(2), [&](Comm rank) {
        const BasicStream<B> stream;
        DeviceBuffer<float, B> memory(some.size());
        DeviceBuffer<MyHalf, B> halves(half_some.size());
        for (const bool first : {true, false}) {
            for (const Reduction reduction : {Reduction::minimum, Reduction::maximum}) {
                const bool least = reduction == Reduction::minimum;
                copy_and_wait(stream, memory, (rank.rank() == 0) == first ? some : others);
                copy_and_wait(stream, halves, (rank.rank() == 0) == first ? half_some : half_others);
                all_reduce(stream, rank, memory, reduction);
                all_reduce(stream, rank, halves, reduction);
                std::vector<float> found(some.size());
                std::vector<MyHalf> halves_found(half_some.size());
                copy_and_wait(stream, found, memory);
                copy_and_wait(stream, halves_found, halves);
                CHECK(found[0] == 1);
                CHECK(found[1] == 1);
                CHECK(std::isnan(found[2]));
                CHECK(same_bytes(std::vector<float>(found.begin() + 3, found.end()),
                                 least ? std::vector<float>{-0.0f, -0.0f, -3} : std::vector<float>{0, 0, 2}));
                CHECK(same_bytes(halves_found, std::vector<MyHalf>{
                                                   {0x3c00}, {0x3c00}, {std::uint16_t(least ? 0x8000 : 0)}}));
            }
        }
    });
    for (const std::string& text : thrown)
        CHECK(text == "");
}

TEST_CASE("float16 and bfloat16 are reduced") {
    if (!enough_devices(2))
        return;
    const std::vector<std::string> thrown = on_ranks(communicators(2), [](Comm rank) {
        const BasicStream<B> stream;
        DeviceBuffer<MyHalf, B> halves(3);
        DeviceBuffer<MyBfloat, B> others(3);
        // 1, 2 and 3 of rank 0; 2, 4 and 6 of rank 1.
        copy_and_wait(stream, halves,
                      rank.rank() == 0 ? std::vector<MyHalf>{{0x3c00}, {0x4000}, {0x4200}}
                                       : std::vector<MyHalf>{{0x4000}, {0x4400}, {0x4600}});
        copy_and_wait(stream, others,
                      rank.rank() == 0 ? std::vector<MyBfloat>{{0x3f80}, {0x4000}, {0x4040}}
                                       : std::vector<MyBfloat>{{0x4000}, {0x4080}, {0x40c0}});
        all_reduce(stream, rank, halves, Reduction::average);
        all_reduce(stream, rank, others);
        std::vector<MyHalf> found(3);
        std::vector<MyBfloat> others_found(3);
        copy_and_wait(stream, found, halves);
        copy_and_wait(stream, others_found, others);
        CHECK(same_bytes(found, std::vector<MyHalf>{{0x3e00}, {0x4200}, {0x4480}}));
        CHECK(same_bytes(others_found, std::vector<MyBfloat>{{0x4040}, {0x40c0}, {0x4110}}));
    });
    for (const std::string& text : thrown)
        CHECK(text == "");
}
#endif

TEST_CASE("sides of a collective that overlap are refused, unless it is in place") {
    if (!enough_devices(2))
        return;
    const auto thrown = on_ranks(communicators(2), [](const Comm& rank) {
        const BasicStream<B> stream;
        DeviceBuffer<float, B> memory(8);
        fill_bytes(stream, memory, 0);
        const auto all = memory.span();
        const auto mine = static_cast<std::size_t>(4 * rank.rank());
        const std::string place = ": the input and the output overlap; expected them apart, or in place: the "
                                  "same memory, or the shorter one as the part of rank " +
                                  std::to_string(rank.rank()) + " in the longer";
        const auto wrong = all.subspan(4 - mine, 4);
        CHECK(text_of([&] { all_gather(stream, rank, wrong, all); }) == "all_gather" + place);
        CHECK(text_of([&] { reduce_scatter(stream, rank, all, wrong); }) == "reduce_scatter" + place);
        CHECK(text_of([&] { all_reduce(stream, rank, all.first(5), all.last(5)); }) == "all_reduce" + place);
        CHECK(text_of([&] { all_reduce(stream, rank, all.last(5), all.first(5)); }) == "all_reduce" + place);
        all_gather(stream, rank, all.subspan(mine, 4), all);
        reduce_scatter(stream, rank, all, all.subspan(mine, 4));
        all_reduce(stream, rank, all, all);
        all_reduce(stream, rank, all.first(4), all.last(4));
        all_reduce(stream, rank, all.last(4), all.first(4));
        all_reduce(stream, rank, all.subspan(3, 0), all.subspan(5, 0));
        stream.sync();
    });
    for (const std::string& text : thrown)
        CHECK(text == "");
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
    const DeviceSpan<float, B> no_memory(nullptr, 3);
    CHECK_THROWS_WITH_AS(
        all_reduce(stream, rank, no_memory, three),
        "all_reduce: for the input a null pointer to 3 elements was given; expected memory that "
        "holds as many",
        Error);
    CHECK_THROWS_WITH_AS(
        all_gather(stream, rank, three, no_memory),
        "all_gather: for the output a null pointer to 3 elements was given; expected memory that "
        "holds as many",
        Error);
    CHECK_THROWS_WITH_AS(broadcast(stream, rank, three, 1),
                         "broadcast: the root is to be rank 1 of 1; expected one of them, from 0", Error);
    CHECK_THROWS_WITH_AS(
        all_reduce(stream, rank, whole, Reduction::average),
        "all_reduce: the average of int32 elements was asked for; expected floating-point ones", Error);
    CHECK_THROWS_WITH_AS(
        (BucketedReduction<std::int32_t, B>(rank, {3}, {.reduction = Reduction::average})),
        "bucketed reduction: the average of int32 elements was asked for; expected floating-point ones",
        Error);
    const auto unnamed = static_cast<Reduction>(77);
    const char* const no_reduction =
        "the Reduction is 77, which has no name; expected sum, average, minimum or maximum";
    CHECK_THROWS_WITH_AS(all_reduce(stream, rank, three, unnamed), no_reduction, Error);
    CHECK_THROWS_WITH_AS(reduce_scatter(stream, rank, three, three, unnamed), no_reduction, Error);
    CHECK_THROWS_WITH_AS((BucketedReduction<float, B>(rank, {3}, {.reduction = unnamed})), no_reduction,
                         Error);
    for (const std::chrono::milliseconds timeout :
         {std::chrono::milliseconds(-1), std::chrono::milliseconds::max()}) {
        CHECK_THROWS_WITH_AS(communicators(1, timeout),
                             ("CommunicatorOptions::timeout is " + std::to_string(timeout.count()) +
                              " ms; expected 0 (none) to 31536000000, a year")
                                 .c_str(),
                             Error);
    }
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
    for (const auto& [wrong, ranks] :
         {std::pair{0, 0}, std::pair{-1, 2}, std::pair{0, -1}, std::pair{1, 1}}) {
        CHECK_THROWS_WITH_AS(Comm::for_process({}, wrong, ranks),
                             ("communicator: rank " + std::to_string(wrong) + " of " + std::to_string(ranks) +
                              "; expected a rank from 0 to one less than the ranks")
                                 .c_str(),
                             Error);
    }
#if !defined(SLUICE_TEST_CUDA)
    for (const int right : {0, 1})
        CHECK_THROWS_WITH_AS(
            Comm::for_process({}, right, 1 + right),
            "communicator: processes on the Host backend meet over MPI; use mpi_communicator", Error);
#endif
    if (!enough_devices(2))
        return;
    std::vector<Comm> two = communicators(2);
    CHECK_THROWS_WITH_AS(all_reduce(stream, two[1], three),
                         "all_reduce: the stream belongs to device 0, the communicator's rank to device 1; "
                         "both must be the same "
                         "device's",
                         Error);
}

} // namespace collective_collectives
