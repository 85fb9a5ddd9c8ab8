// Operations on rows right behind a kernel that lets the next one begin at once and writes the rows late: they come after it, and
// each of their kernels after those before it. The same bytes as where the rows were there all along.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/backend/launch.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/ragged/packer.hpp>
#include <sluice/ragged/reshape.cuh>
#include <sluice/ragged/rows.cuh>

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"

namespace ragged_behind_late_kernel {

using namespace sluice;
using namespace sluice::test;

namespace {

using Bytes = DeviceSpan<std::byte, Cuda>;
using Batch = RaggedBatch<float, Cuda>;

// More rows than one block scans, and rows that are cut into parts.
constexpr RaggedCapacity room{20000, 250000};

__global__ void write_late(std::byte* to, const std::byte* from, std::size_t bytes, unsigned nanoseconds) {
    let_next_kernel_begin();
    unsigned long long now, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    end += nanoseconds;
    do {
        __nanosleep(500);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now < end);
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes;
         i += std::size_t{gridDim.x} * blockDim.x)
        to[i] = from[i];
}

Lists<float> some_rows() {
    CountedRandom random(RandomKey{.seed = 21});
    Lists<float> rows;
    const auto add = [&](std::size_t length) {
        std::vector<float> row(length);
        for (float& value : row)
            value = static_cast<float>(random.below(1000)) / 64.0f;
        rows.push_back(std::move(row));
    };
    for (int i = 0; i < 18000; ++i)
        add(i == 700 ? 70000 : i == 9000 ? 20000 : i == 12000 ? 3000 : random.below(12));
    return rows;
}

struct Case {
    CudaStream stream;
    Batch rows{room};
    DeviceBuffer<std::byte, Cuda> kept{rows.block().size()};
    RaggedWorkspace<Cuda> workspace{{2 * room.rows, 2 * room.values}};
    Batch out{{2 * room.rows, 2 * room.values}};
    DeviceBuffer<float, Cuda> values{static_cast<std::size_t>(room.values)};
    DeviceBuffer<std::int64_t, Cuda> numbers{static_cast<std::size_t>(room.values)};
    DeviceBuffer<std::uint8_t, Cuda> flags{static_cast<std::size_t>(room.values)};
    std::vector<Bytes> outputs{out.block(), bytes_of(values), bytes_of(numbers)};

    Case() {
        RaggedPacker<float, Cuda> packer(room);
        packer.pack(some_rows());
        packer.copy_to(stream, rows);
        copy(stream, kept, rows.block());
        std::vector<std::uint8_t> every_third(flags.size());
        for (std::size_t i = 0; i < flags.size(); ++i)
            every_third[i] = i % 3 == 0;
        copy_and_wait(stream, flags, every_third);
    }
    template <class T>
    static Bytes bytes_of(DeviceBuffer<T, Cuda>& buffer) {
        return {reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(T)};
    }

    /// No rows are there until the late kernel has written them.
    void write(CudaStreamRef s, bool late) {
        for (const Bytes& output : outputs)
            fill_bytes(s, output, 0xee);
        fill_bytes(s, rows.block(), 0);
        write_late<<<64, 256, 0, s.get()>>>(rows.block().data(), kept.data(), kept.size(),
                                            late ? 200'000 : 0);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
    std::vector<std::byte> read() {
        std::vector<std::byte> all;
        for (const Bytes& output : outputs) {
            std::vector<std::byte> bytes(output.size());
            copy_and_wait(stream, bytes, output);
            all.insert(all.end(), bytes.begin(), bytes.end());
        }
        return all;
    }

    template <class Operation>
    void check(const char* name, Operation operation) {
        CAPTURE(name);
        write(stream, false);
        stream.sync();
        operation(stream.ref());
        const std::vector<std::byte> expected = read();
        const auto behind = [&](CudaStreamRef s) {
            write(s, true);
            operation(s);
        };
        for (int run = 0; run < 3; ++run) {
            behind(stream);
            CHECK(read() == expected);
        }
        const CudaGraphExec executable(capture(stream, behind));
        for (int run = 0; run < 3; ++run) {
            executable.launch(stream);
            CHECK(read() == expected);
        }
    }
};

struct Twice {
    __device__ float operator()(float value) const { return 2.0f * value; }
};
struct Place {
    __device__ float operator()(std::int64_t row, std::int64_t place, std::int64_t) const {
        return static_cast<float>(row - place);
    }
};

} // namespace

TEST_CASE("operations on rows come after the kernel before them, whatever it lets begin") {
    Case one;
    RaggedWorkspace<Cuda>& workspace = one.workspace;
    const auto view = std::as_const(one.rows).view();
    one.check("sum", [&](CudaStreamRef s) { ragged::sum(s, one.values, one.rows); });
    one.check("sum in parts", [&](CudaStreamRef s) { ragged::sum(s, one.values, one.rows, &workspace); });
    one.check("argmax", [&](CudaStreamRef s) { ragged::argmax(s, one.numbers, one.rows, &workspace); });
    one.check("softmax", [&](CudaStreamRef s) { ragged::softmax(s, one.values, one.rows); });
    one.check("softmax in parts",
              [&](CudaStreamRef s) { ragged::softmax(s, one.values, one.rows, &workspace); });
    one.check("exclusive_sum",
              [&](CudaStreamRef s) { ragged::exclusive_sum(s, one.values, one.rows, &workspace); });
    one.check("sort", [&](CudaStreamRef s) { ragged::sort(s, one.values, one.rows, workspace); });
    one.check("sort_with_positions", [&](CudaStreamRef s) {
        ragged::sort_with_positions(s, one.values, one.numbers, one.rows, workspace);
    });
    one.check("apply", [&](CudaStreamRef s) { ragged::apply(s, Twice{}, one.values, one.rows); });
    one.check("generate", [&](CudaStreamRef s) { ragged::generate(s, Place{}, one.values, one.rows); });
    one.check("row_ids", [&](CudaStreamRef s) { ragged::row_ids(s, one.numbers.span(), view); });
    one.check("lengths", [&](CudaStreamRef s) { ragged::lengths(s, one.numbers.span(), view); });
    one.check("slice_within",
              [&](CudaStreamRef s) { ragged::slice_within(s, one.out, view, 1, 40000, workspace); });
    one.check("slice", [&](CudaStreamRef s) { ragged::slice(s, one.out, view, 600, 9500, workspace); });
    one.check("mask", [&](CudaStreamRef s) { ragged::mask(s, one.out, view, one.flags.span(), workspace); });
    one.check("mask_rows",
              [&](CudaStreamRef s) { ragged::mask_rows(s, one.out, view, one.flags.span(), workspace); });
    one.check("remove_empty", [&](CudaStreamRef s) { ragged::remove_empty(s, one.out, view, workspace); });
    one.check("repeat", [&](CudaStreamRef s) { ragged::repeat(s, one.out, view, 2, workspace); });
    one.check("concatenate_within", [&](CudaStreamRef s) {
        ragged::concatenate_within(s, one.out, {view, view}, workspace);
    });
    one.check("order_by_length", [&](CudaStreamRef s) {
        ragged::order_by_length(s, one.numbers.span(), view, ragged::LengthOrder::longest_first, workspace);
    });
}

TEST_CASE("operations on rows, each on what the one before it made") {
    Case one;
    DeviceBuffer<std::int64_t, Cuda> order(static_cast<std::size_t>(2 * room.rows));
    Batch sorted({2 * room.rows, 2 * room.values});
    one.outputs.push_back(sorted.block());
    one.outputs.push_back(Case::bytes_of(order));
    const auto view = std::as_const(one.rows).view();
    const auto made = std::as_const(one.out).view();
    one.check("chain", [&](CudaStreamRef s) {
        ragged::repeat(s, one.out, view, 2, one.workspace);
        ragged::order_by_length(s, order.span(), made, ragged::LengthOrder::shortest_first, one.workspace);
        ragged::reorder(s, sorted, made, order.span(), one.workspace);
        ragged::apply(s, Twice{}, sorted.values(), sorted);
        ragged::sum(s, one.values, sorted, &one.workspace);
        ragged::exclusive_sum(s, sorted.values(), sorted, &one.workspace);
    });
}

} // namespace ragged_behind_late_kernel
