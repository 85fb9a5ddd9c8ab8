// How rows are sorted by a key on CUDA devices.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <cub/device/device_radix_sort.cuh>

#include <sluice/ragged/detail/reshape.cuh>
#include <sluice/ragged/order.hpp>

namespace sluice::ragged::detail {

/// What the sort takes.
template <class Keys>
struct WriteKey {
    Keys keys;
    std::uint64_t* key;
    std::int64_t* row;

    __device__ void operator()(std::int64_t i) const {
        const bool there = i < keys.rows();
        key[i] = static_cast<std::uint64_t>(there ? keys.key(i) : keys.limit()); // to the end
        row[i] = there ? i : -1;
    }
};

/// Where the rows of each key begin.
struct FindStart {
    const std::uint64_t* sorted;
    std::int64_t size;
    std::int64_t* starts;

    __device__ void operator()(std::int64_t key) const {
        std::int64_t first = 0;
        std::int64_t last = size;
        while (first < last) {
            const std::int64_t middle = first + (last - first) / 2;
            if (sorted[middle] < static_cast<std::uint64_t>(key)) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        starts[key] = first;
    }
};

/// On CUDA devices; see the one for host tasks.
template <Backend B>
requires std::same_as<typename B::NativeStream, cudaStream_t>
struct RowSorter<B> {
    template <class Keys>
    static void sort(BasicStreamRef<B> stream, std::int64_t* order, std::int64_t most, const Keys& keys,
                     std::int64_t* starts, RaggedScratch<B>& scratch) {
        const auto [unsorted, sorted, rows] = OrderMemory::take(scratch, most);
        if (most > 0) {
            // The return type of bit_width differs between standard libraries.
            const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(keys.limit())));
            std::size_t bytes = 0;
            SLUICE_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, unsorted, sorted, rows, order,
                                                              most, 0, bits, stream.get()));
            void* const memory = scratch.template take<std::byte>(bytes);
            Engine<B>::for_each(stream, most, WriteKey<Keys>{keys, unsorted, rows});
            SLUICE_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory, bytes, unsorted, sorted, rows, order,
                                                              most, 0, bits, stream.get()));
        }
        if (starts != nullptr)
            Engine<B>::for_each(stream, keys.limit() + 1, FindStart{sorted, most, starts});
    }
};

} // namespace sluice::ragged::detail
