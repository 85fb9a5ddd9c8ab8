// Ranks in processes that mpirun has started: each runs all of this.
#include <string>

#include <sluice/collective/mpi.hpp>

#include "collective/checks.hpp"
#include "support/doctest.hpp"

namespace collective_mpi {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

MpiProcess& process() {
    static MpiProcess one;
    return one;
}

} // namespace

TEST_CASE("collectives over MPI give what float64 sums give") {
    (void)process();
    const Comm rank = mpi_communicator<B>(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(60)});
    CHECK(rank.rank() == process().rank());
    CHECK(rank.ranks() == process().ranks());
    CHECK(process().local_rank() == process().rank());
    std::size_t round = 0;
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{513}, std::size_t{4099}}) {
        check_all<float>(rank, count, round, 1e-5);
        check_all<std::int32_t>(rank, count, round, 0);
        ++round;
    }
    check_all<double>(rank, 77, 1, 1e-13);
    check_all<std::int8_t>(rank, 77, 1, 0);
}

TEST_CASE("an all-reduce over MPI has the bits of one within a process") {
    (void)process();
    const Comm rank = mpi_communicator<B>(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(60)});
    constexpr std::size_t count = 1001;
    const auto values_of = [&](int from) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i)
            values[i] = std::ldexp(1.0f + static_cast<float>(i),
                                   static_cast<int>((i + static_cast<std::size_t>(from) * 5) % 23));
        return values;
    };
    std::vector<float> expected = values_of(0);
    for (int from = 1; from < rank.ranks(); ++from) {
        const std::vector<float> theirs = values_of(from);
        for (std::size_t i = 0; i < count; ++i)
            expected[i] += theirs[i];
    }
    const BasicStream<B> stream;
    DeviceBuffer<float, B> memory(count);
    copy_and_wait(stream, memory, values_of(rank.rank()));
    all_reduce(stream, rank, memory);
    std::vector<float> found(count);
    copy_and_wait(stream, found, memory);
    CHECK(same_bytes(found, expected));
}

TEST_CASE("a collective that is too long for MPI is refused in one sentence, and the next one works") {
    (void)process();
    const Comm rank = mpi_communicator<B>(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(60)});
    DeviceBuffer<std::uint8_t, B> memory(1);
    std::uint8_t* const data = memory.span().data();
    constexpr std::size_t length = std::size_t{1} << 31; // never touched
    std::string text;
    try {
        const BasicStream<B> stream;
        broadcast(stream, rank, DeviceSpan<std::uint8_t, B>(data, length), 0);
        stream.sync();
    } catch (const Error& error) {
        text = error.what();
    }
    CHECK(text.find("2147483648 bytes were given; over MPI at most 2,147,483,647 are expected") !=
          std::string::npos);
    const BasicStream<B> stream;
    std::vector<std::uint8_t> found(1);
    copy_and_wait(stream, memory, std::vector<std::uint8_t>{7});
    broadcast(stream, rank, memory, 0);
    copy_and_wait(stream, found, memory);
    CHECK(found[0] == 7);
}

// The last one: MPI is not finalised after it.
TEST_CASE("a process that does not come fails the others within the timeout") {
    if (process().ranks() < 2)
        return;
    const Comm rank = mpi_communicator<B>(MPI_COMM_WORLD, {.timeout = std::chrono::milliseconds(200)});
    const BasicStream<B> stream;
    DeviceBuffer<float, B> memory(3);
    fill_bytes(stream, memory, 0);
    if (rank.rank() != 1) {
        broadcast(stream, rank, memory, 1);
        std::string text;
        try {
            stream.sync();
        } catch (const Error& error) {
            text = error.what();
        }
        CAPTURE(text);
        CHECK(text.find("did not come to the broadcast of 3 float32 from rank 1 within 200 ms") !=
              std::string::npos);
        CHECK_THROWS_AS(rank.require_alive(), Error);
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank.rank() == 1) {
        broadcast(stream, rank, memory, 1);
        stream.sync();
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    // What the process's end would do is done.
    detail::mpi_group_failure().store(true);
}

} // namespace collective_mpi
