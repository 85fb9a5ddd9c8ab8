// Kernel nodes.
#include <vector>

#include <sluice/graph/graph_builder.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_builder_gpu {

using namespace sluice;
using namespace sluice::test;

static_assert(KernelGraphBackend<Cuda> && !KernelGraphBackend<Host>);

namespace {

__global__ void fill_with_index(int* to) {
    to[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(threadIdx.x);
}

__global__ void scale(int* to, const int* from, int factor, float term) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] * factor + static_cast<int>(term);
}

__global__ void sum_through_shared(int* to, const int* from) {
    extern __shared__ int values[];
    values[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    int sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i)
        sum += values[i];
    *to = sum;
}

__global__ void note_dimensions(unsigned* to) {
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z != 0)
        return;
    const unsigned sizes[] = {gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z};
    for (int i = 0; i < 6; ++i)
        to[i] = sizes[i];
}

template <class T>
std::vector<T> values_of(const CudaStream& stream, const DeviceBuffer<T, Cuda>& buffer) {
    std::vector<T> values(buffer.size());
    copy_and_wait(stream, values, buffer);
    return values;
}

} // namespace

TEST_CASE("kernel nodes run in order, and take other arguments between launches") {
    const CudaStream stream;
    DeviceBuffer<int, Cuda> first(4), second(4), third(4), sum(1);
    CudaGraphBuilder builder;
    const auto filled = builder.kernel({.grid = 1, .block = 4}, fill_with_index, {}, first.data());
    const auto scaled = builder.kernel({1, 4}, scale, {filled}, second.data(), first.data(), 2, 1.0f);
    builder.kernel({.grid = 1, .block = 4, .shared = 4 * sizeof(int)}, sum_through_shared, {scaled},
                   sum.data(), second.data());
    auto executable = builder.instantiate();
    executable.launch(stream);
    CHECK(values_of(stream, second) == std::vector<int>{1, 3, 5, 7});
    CHECK(values_of(stream, sum) == std::vector<int>{16});

    executable.set(scaled, second.data(), first.data(), 10, 0.0f);
    executable.launch(stream);
    CHECK(values_of(stream, second) == std::vector<int>{0, 10, 20, 30});
    CHECK(values_of(stream, sum) == std::vector<int>{60});

    fill_bytes(stream, third, 0);
    executable.set(scaled, third.data(), first.data(), 1, 5.0f);
    executable.launch(stream);
    CHECK(values_of(stream, third) == std::vector<int>{5, 6, 7, 8});
    CHECK(values_of(stream, sum) == std::vector<int>{60}); // of what the former place holds

    executable.set_launch(scaled, {.grid = 1, .block = 2}, third.data(), first.data(), 1, 50.0f);
    executable.launch(stream);
    CHECK(values_of(stream, third) == std::vector<int>{50, 51, 7, 8});
}

TEST_CASE("a kernel node's grid has three axes") {
    const CudaStream stream;
    DeviceBuffer<unsigned, Cuda> sizes(6);
    CudaGraphBuilder builder;
    builder.kernel({.grid = {2, 3, 4}, .block = {5, 6, 7}}, note_dimensions, {}, sizes.data());
    auto executable = builder.instantiate();
    executable.launch(stream);
    CHECK(values_of(stream, sizes) == std::vector<unsigned>{2, 3, 4, 5, 6, 7});
}

TEST_CASE("kernel nodes mix with copies and fills, and a change while a launch is in flight waits its turn") {
    const CudaStream stream;
    DeviceBuffer<int, Cuda> from(4), to(4);
    PinnedBuffer<int, Cuda> in(4), out(4);
    for (int i = 0; i < 4; ++i)
        in[static_cast<std::size_t>(i)] = i + 1;
    std::vector<PinnedBuffer<int, Cuda>> outs;
    for (int i = 0; i < 10; ++i)
        outs.emplace_back(4);
    CudaGraphBuilder builder;
    const auto uploaded = builder.copy(from, in);
    const auto cleared = builder.fill(to, 0);
    const auto scaled = builder.kernel({1, 4}, scale, {uploaded, cleared}, to.data(), from.data(), 0, 0.0f);
    const auto downloaded = builder.copy(out, to, {scaled});
    auto executable = builder.instantiate();
    for (int i = 0; i < 10; ++i) {
        executable.set(scaled, to.data(), from.data(), i, 0.0f);
        executable.set(downloaded, outs[static_cast<std::size_t>(i)], to);
        executable.launch(stream);
    }
    stream.sync();
    for (int i = 0; i < 10; ++i) {
        const auto& seen = outs[static_cast<std::size_t>(i)];
        CHECK(std::vector<int>(seen.begin(), seen.end()) == std::vector<int>{i, 2 * i, 3 * i, 4 * i});
    }
}

TEST_CASE("a kernel node that the device refuses throws where it is added, and is forgotten") {
    DeviceBuffer<int, Cuda> numbers(4);
    CudaGraphBuilder builder, other;
    const auto theirs = other.kernel({1, 4}, fill_with_index, {}, numbers.data());
    CHECK(contains(text_of([&] {
                       builder.kernel({1, 4}, fill_with_index, {theirs}, numbers.data());
                   }),
                   "belongs to another builder"));
    const auto mine = builder.kernel({1, 4}, fill_with_index, {}, numbers.data());
    auto executable = builder.instantiate();
    CHECK(contains(text_of([&] { executable.set(theirs, numbers.data()); }), "another builder"));
    CHECK_FALSE(text_of([&] {
                    executable.set_launch(mine, {.grid = 1, .block = 1u << 16}, numbers.data());
                }).empty());
    Cuda::check_launches();
}

} // namespace graph_builder_gpu
