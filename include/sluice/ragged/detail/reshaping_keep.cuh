/// \file
/// Keeps some of many values: 32 at a time have their place in common, so that 8 bytes of temporary memory
/// serve for 32 values.
#pragma once

#include <cstdint>

#include <sluice/ragged/detail/load_balancing_search.cuh>
#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged::detail {

/// Which values are kept, 32 to a group.
template <class Shape>
struct KeptGroups {
    Shape shape;
    const std::uint8_t* keep;
    std::int64_t number; // of groups that there is room for
    bool aligned;        // `keep`, to 16 bytes

    /// For the scan over groups.
    __device__ std::int64_t rows() const { return number; }
    __device__ std::int64_t length(std::int64_t group) const { return __popc(bits(group)); }

    /// Bit b says whether value 32 * group + b is kept.
    __device__ unsigned bits(std::int64_t group) const {
        const std::int64_t begin = group * warp_size;
        const std::int64_t left = shape.size() - begin;
        unsigned result = 0;
        if (aligned && left >= warp_size) {
            const auto* const quads = reinterpret_cast<const uint4*>(keep + begin);
            const uint4 low = quads[0];
            const uint4 high = quads[1];
            result = bits_of(low.x) | bits_of(low.y) << 4 | bits_of(low.z) << 8 | bits_of(low.w) << 12 |
                     bits_of(high.x) << 16 | bits_of(high.y) << 20 | bits_of(high.z) << 24 |
                     bits_of(high.w) << 28;
        } else {
            for (int b = 0; b < warp_size && b < left; ++b)
                result |= (keep[begin + b] != 0 ? 1u : 0u) << b;
        }
        return result;
    }

private:
    /// Of four bytes, which are not 0.
    __device__ static unsigned bits_of(unsigned bytes) {
        // The product brings bits 0, 8, 16 and 24 to 24 … 27; its other terms all meet different places
        // below.
        return (__vcmpne4(bytes, 0) & 0x01010101u) * 0x01020408u >> 24 & 0xfu;
    }
};

/// How many values each row keeps: the difference of two places.
template <class Shape>
struct KeptRows {
    KeptGroups<Shape> groups;
    const std::int64_t* starts; // of groups

    SLUICE_HOST_DEVICE std::int64_t limit() const { return unlimited; }
    SLUICE_HOST_DEVICE std::int64_t rows() const { return groups.shape.rows(); }
    SLUICE_HOST_DEVICE Refused refused() const { return groups.shape.refused(); }
    __device__ std::int64_t length(std::int64_t row) const {
        return place(groups.shape.offset(row + 1)) - place(groups.shape.offset(row));
    }

private:
    /// How many of the values before value i are kept; i may be the end.
    __device__ std::int64_t place(std::int64_t i) const {
        const std::int64_t group = i / warp_size;
        const int within = static_cast<int>(i % warp_size);
        if (within == 0)
            return starts[group];
        return starts[group] + __popc(groups.bits(group) & ((1u << within) - 1));
    }
};

/// Moves the values that are kept to their places.
template <bool Wide, class T, class Shape>
__global__ void __launch_bounds__(walk_threads)
    fill_kept_kernel(RaggedTarget<T> out, const T* values, Shape shape, const std::uint8_t* keep,
                     const std::int64_t* starts) {
    if (out.counts->refused != 0)
        return;
    const Share share = share_of_warp(shape.size());
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    for (std::int64_t first = share.first; first < share.last; first += warp_size * walk_groups) {
        std::int64_t to[walk_groups];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            const std::int64_t i = first + group * warp_size + lane;
            const bool kept = i < share.last && keep[i] != 0;
            const unsigned bits = __ballot_sync(whole_warp, kept);
            to[group] = -1;
            if (kept)
                to[group] = starts[i / warp_size] + __popc(bits & ((1u << lane) - 1));
        }
        alignas(Wide ? sizeof(T) : alignof(T)) unsigned char moved[walk_groups][sizeof(T)];
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (to[group] >= 0)
                move_value<Wide>(reinterpret_cast<T*>(moved[group]),
                                 values + first + group * warp_size + lane);
        }
#pragma unroll
        for (int group = 0; group < walk_groups; ++group) {
            if (to[group] >= 0)
                move_value<Wide>(out.values + to[group], reinterpret_cast<const T*>(moved[group]));
        }
    }
}

} // namespace sluice::ragged::detail
