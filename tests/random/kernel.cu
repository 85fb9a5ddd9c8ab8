// A kernel draws the same numbers as the host, bit by bit.
#include <cstdint>
#include <cstring>
#include <vector>

#include <sluice/memory/copy.hpp>
#include <sluice/random/philox.hpp>

#include "support/doctest.hpp"

using namespace sluice;

namespace {

constexpr int samples = 1000;
constexpr int draws = 13;                           // not a multiple of four
constexpr std::uint64_t first_sample = 0xFFFFFFF0u; // passes 2^32 on the way

struct Drawn {
    std::uint32_t word;
    std::uint32_t uniform_bits;
    std::uint32_t below;
};

__host__ __device__ std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(value);
#else
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
#endif
}

__host__ __device__ void draw(int index, Drawn* drawn) {
    CountedRandom random(RandomKey{0x123456789ABCDEF0u, 3, first_sample + static_cast<std::uint64_t>(index),
                                   static_cast<std::uint16_t>(65000 + index % 7)});
    for (int i = 0; i < draws; ++i) {
        Drawn& out = drawn[index * draws + i];
        out.word = random.next_u32();
        out.uniform_bits = bits_of(random.uniform());
        out.below = random.below(1000003u);
    }
}

__global__ void draw_all(Drawn* drawn) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < samples)
        draw(index, drawn);
}

} // namespace

TEST_CASE("a kernel draws what the host draws") {
    std::vector<Drawn> expected(samples * draws);
    for (int index = 0; index < samples; ++index)
        draw(index, expected.data());

    const CudaStream stream;
    DeviceBuffer<Drawn, Cuda> device(expected.size());
    fill_bytes(stream, device, 0xFF);
    draw_all<<<(samples + 127) / 128, 128, 0, stream.get()>>>(device.data());
    Cuda::check_launches();
    std::vector<Drawn> seen(expected.size());
    copy_and_wait(stream, seen, device);
    CHECK(std::memcmp(seen.data(), expected.data(), expected.size() * sizeof(Drawn)) == 0);
}

TEST_CASE("what a kernel's code draws on the host is what other host code draws") {
    std::vector<Drawn> drawn(samples * draws);
    draw(5, drawn.data());
    CountedRandom random(RandomKey{0x123456789ABCDEF0u, 3, first_sample + 5, 65005});
    CHECK(drawn[5 * draws].word == random.next_u32());
}
