/// \file
/// PTX instructions as functions, for the kernels that use the Tensor Cores directly.
/// Instructions and fragments: PTX ISA, "Matrix Instructions" and "Asynchronous Copy".
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace nn::detail {

/// The address that instructions on shared memory take.
__device__ inline std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four 8×8 matrices of 16-bit elements: lane 8 i + r gives the address of row r of matrix i, and gets the two
/// elements of row lane / 4, columns 2 (lane % 4) and the next, of each.
__device__ inline void load_matrices(std::uint32_t (&fragments)[4], std::uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                 : "r"(address)
                 : "memory");
}

/// The same matrices with rows and columns exchanged: a lane gets rows 2 (lane % 4) and the next, column lane / 4.
__device__ inline void load_matrices_transposed(std::uint32_t (&fragments)[4], std::uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                 : "r"(address)
                 : "memory");
}

/// The inverse of `load_matrices`.
__device__ inline void store_matrices(std::uint32_t address, const std::uint32_t (&fragments)[4]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(address), "r"(fragments[0]), "r"(fragments[1]), "r"(fragments[2]), "r"(fragments[3])
                 : "memory");
#else
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t row = __shfl_sync(0xFFFFFFFFu, address, 8 * i + lane / 4);
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(row + lane % 4 * 4), "r"(fragments[i]) : "memory");
    }
#endif
}

/// `sums [16, 8] += a [16, 16] * b [16, 8]` of a warp, in bfloat16 with float32 sums.
__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The same in float16.
__device__ inline void multiply_add_f16(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The nearest TF32 number (10 bits of mantissa), as a float32's bits.
__device__ inline std::uint32_t to_tf32(float value) {
    std::uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

/// `sums [16, 8] += a [16, 8] * b [8, 8]` of a warp, in TF32 with float32 sums. `load_matrices` loads `a`, of which
/// a row of eight 16-bit elements is four numbers, if its matrices are rows 0 … 7 and 8 … 15 of columns 0 … 3, then the
/// same of columns 4 … 7.
__device__ inline void multiply_add_tf32(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Begins to copy 16 bytes to shared memory; zeros, and nothing is read, unless `inside`.
__device__ inline void copy_16_bytes(std::uint32_t to, const void* from, bool inside) {
    const std::uint32_t bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}

/// The same for what is certainly there.
__device__ inline void copy_16_bytes(std::uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from))
                 : "memory");
}

/// Ends a group of this thread's copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `pending` of this thread's groups are not done.
template <int pending>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}

/// The greater one; NaN where there is one, so that a network that diverges shows it.
__device__ inline float greater_of(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

/// Two numbers as float16 in one word, `low` first in memory: the nearest ones; infinite beyond 65,504.
__device__ inline std::uint32_t two_float16(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

/// The same, with 0 for what is negative; NaN stays.
__device__ inline std::uint32_t two_float16_relu(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

/// All bits of each of two float16 numbers that is greater than 0; no bits of others.
__device__ inline std::uint32_t positive_float16(std::uint32_t two) {
    __half2 numbers;
    memcpy(&numbers, &two, sizeof(numbers));
    return __hgt2_mask(numbers, __half2(0.0f, 0.0f));
}

/// Two numbers as bfloat16 in one word, `low` first in memory.
__device__ inline std::uint32_t two_bfloat16(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    std::uint32_t word;
    memcpy(&word, &both, sizeof(word));
    return word;
}

} // namespace nn::detail
