// The kernels behind stream_ops.hpp.
#include "support/stream_ops.hpp"

namespace sluice::test::ops {

namespace {

constexpr unsigned threads = 128;

unsigned blocks_for(std::size_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void step_kernel(Word* out, const Word* in, Word* memory, std::size_t count) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const Word word = in[i];
    out[i] = next_word(memory[i], word);
    memory[i] = next_memory(memory[i], word);
}

__global__ void spin_kernel(unsigned microseconds) {
    const unsigned long long end = nanoseconds() + 1000ull * microseconds;
    while (nanoseconds() < end)
        __nanosleep(200);
}

__global__ void hold_kernel(const volatile Word* gate) {
    const unsigned long long end = nanoseconds() + 1000000ull * hold_limit_milliseconds;
    while (*gate == 0 && nanoseconds() < end)
        __nanosleep(1000);
}

__global__ void add_kernel(volatile Word* to, const volatile Word* from, Word value, std::size_t count) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = from[i] + value;
}

__global__ void write_kernel(Word* to) { *to = 1; }

} // namespace

// Launches are left unchecked: the caller checks them, as a pipeline does for its stages.

void step(cudaStream_t stream, Word* out, const Word* in, Word* memory, std::size_t count) {
    step_kernel<<<blocks_for(count), threads, 0, stream>>>(out, in, memory, count);
}

void spin(cudaStream_t stream, unsigned microseconds) { spin_kernel<<<1, 1, 0, stream>>>(microseconds); }

void hold(cudaStream_t stream, Word* gate) { hold_kernel<<<1, 1, 0, stream>>>(gate); }

namespace {
__global__ void add_words_kernel(Word* to, const Word* from, std::size_t count) {
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x)
        to[i] += from[i];
}
} // namespace
void add_words(cudaStream_t stream, Word* to, const Word* from, std::size_t count) {
    add_words_kernel<<<1, 32, 0, stream>>>(to, from, count);
}

void add_racing(cudaStream_t stream, Word* to, Word* from, Word value, std::size_t count) {
    add_kernel<<<blocks_for(count), threads, 0, stream>>>(to, from, value, count);
}

void load_kernels(cudaStream_t) {
    cudaFuncAttributes attributes{};
    const void* kernels[] = {
        reinterpret_cast<const void*>(step_kernel), reinterpret_cast<const void*>(spin_kernel),
        reinterpret_cast<const void*>(hold_kernel), reinterpret_cast<const void*>(add_kernel),
        reinterpret_cast<const void*>(add_words_kernel)};
    for (const void* kernel : kernels)
        SLUICE_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

void launch_refused(cudaStream_t stream) { spin_kernel<<<1, 1u << 16, 0, stream>>>(0); }

void write_illegal_address(cudaStream_t stream) {
    write_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<Word*>(std::size_t{16}));
}

} // namespace sluice::test::ops
