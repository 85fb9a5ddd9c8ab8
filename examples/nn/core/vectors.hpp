/// \file
/// Several neighbouring elements loaded and stored at once, as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/config.hpp>
#include <sluice/backend/stream.hpp>

namespace nn::detail {

/// Elements that are moved together; the address is a multiple of their size, or of 16.
template <class T, std::size_t Width>
struct alignas(sizeof(T) * Width < 16 ? sizeof(T) * Width : 16) Vector {
    T values[Width];
};

template <std::size_t Width, class T>
SLUICE_HOST_DEVICE inline Vector<T, Width> load_vector(const T* from) {
    return *reinterpret_cast<const Vector<T, Width>*>(from);
}
template <std::size_t Width, class T>
SLUICE_HOST_DEVICE inline void to_floats(const Vector<T, Width>& from, float (&to)[Width]) {
    for (std::size_t i = 0; i < Width; ++i)
        to[i] = static_cast<float>(from.values[i]);
}
template <std::size_t Width, class T>
SLUICE_HOST_DEVICE inline void load(const T* from, float (&to)[Width]) {
    to_floats(load_vector<Width>(from), to);
}

/// Rounds to `T`, and returns what was stored: on a device, in global memory.
template <std::size_t Width, class T>
SLUICE_HOST_DEVICE inline Vector<T, Width> store(T* to, const float (&from)[Width]) {
    Vector<T, Width> stored;
    for (std::size_t i = 0; i < Width; ++i)
        stored.values[i] = static_cast<T>(from[i]);
#if defined(__CUDA_ARCH__)
    // 16 bytes in one instruction each, which nvcc would cut to single elements in most kernels.
    if constexpr (Width * sizeof(T) % 16 == 0) {
        const auto word = [&](std::size_t i) {
            if constexpr (sizeof(T) == 4)
                return __float_as_uint(stored.values[i]);
            else
                return stored.values[2 * i].bits() | unsigned{stored.values[2 * i + 1].bits()} << 16;
        };
        for (std::size_t i = 0; i < Width * sizeof(T) / 4; i += 4)
            __stwb(reinterpret_cast<uint4*>(to) + i / 4,
                   make_uint4(word(i), word(i + 1), word(i + 2), word(i + 3)));
        return stored;
    }
#endif
    *reinterpret_cast<Vector<T, Width>*>(to) = stored;
    return stored;
}

/// Calls `work(std::integral_constant<std::size_t, Width>)` with the elements of `T` that a thread takes at once: 16 bytes on a
/// device, if rows of `columns` elements from addresses that are multiples of 16 bytes are whole multiples of that; one
/// otherwise, and on the CPU, whose compiler makes vectors of its own.
template <class B, class T, class Work>
void with_vector_width(std::size_t columns, const Work& work) {
    if constexpr (!std::is_same_v<B, sluice::Host>) {
        constexpr std::size_t width = 16 / sizeof(T);
        if (columns % width == 0) {
            work(std::integral_constant<std::size_t, width>{});
            return;
        }
    }
    work(std::integral_constant<std::size_t, 1>{});
}

} // namespace nn::detail
