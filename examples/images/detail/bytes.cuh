// Bytes in registers: each is added to 2^23 as a float, where floats are the integers, by putting it into the last bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include <images/normalize.hpp>

namespace images::detail {

constexpr float raised = 8388608.0f; // 2^23

/// 2^23 + byte.
__device__ inline float raise(std::uint8_t byte) { return __uint_as_float(0x4B000000u | byte); }

/// 2^23 + byte `i` of a word.
template <unsigned i>
__device__ float raise(unsigned word) {
    return __uint_as_float(__byte_perm(word, 0x4B000000u, 0x7440u + i));
}

/// Numbers that fill the 16 bytes which a thread stores at once.
template <class Out>
constexpr int group_size = 16 / static_cast<int>(sizeof(Out));
/// As many of another type.
template <class Out, class T = float>
using Group = T[16 / sizeof(Out)];

/// Two numbers as halves, the first one in the lower half of the word.
__device__ inline unsigned halves(float first, float second) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
}

/// Stores a group of numbers that are 2^23 above what they stand for. `out` is aligned to 16 bytes.
__device__ inline void store_group(const float (&value)[16], const Normalize& /*of numbers*/,
                                   std::uint8_t* out) {
    unsigned word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned low =
            __byte_perm(__float_as_uint(value[4 * i]), __float_as_uint(value[4 * i + 1]), 0x0040);
        const unsigned high =
            __byte_perm(__float_as_uint(value[4 * i + 2]), __float_as_uint(value[4 * i + 3]), 0x0040);
        word[i] = __byte_perm(low, high, 0x5410);
    }
    *reinterpret_cast<uint4*>(out) = uint4{word[0], word[1], word[2], word[3]};
}

__device__ inline void store_group(const float (&value)[8], const Normalize& normalize, nn::Half* out) {
    unsigned word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        word[i] = halves(normalize(value[2 * i] - raised), normalize(value[2 * i + 1] - raised));
    *reinterpret_cast<uint4*>(out) = uint4{word[0], word[1], word[2], word[3]};
}

__device__ inline void store_group(const float (&value)[4], const Normalize& normalize, float* out) {
    *reinterpret_cast<float4*>(out) = float4{normalize(value[0] - raised), normalize(value[1] - raised),
                                             normalize(value[2] - raised), normalize(value[3] - raised)};
}

/// One number.
template <class Out>
__device__ Out converted(std::uint8_t byte, const Normalize& normalize) {
    if constexpr (std::is_same_v<Out, std::uint8_t>) {
        return byte;
    } else {
        return Out(normalize(static_cast<float>(byte)));
    }
}

/// Whether groups may be loaded and stored at once from `address` on.
inline bool aligned(const void* address, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

/// The blocks of a launch. Throws `sluice::Error` when there would be more than a launch may have.
inline unsigned block_count(std::size_t blocks) {
    if (blocks > 0x7FFFFFFFu)
        throw sluice::Error("a batch of images is too large for one launch: it would take " +
                            std::to_string(blocks) + " blocks of threads, of at most 2^31 - 1");
    return static_cast<unsigned>(blocks);
}

} // namespace images::detail
