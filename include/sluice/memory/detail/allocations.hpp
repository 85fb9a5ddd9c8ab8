/// \file
/// Which memory of sluice's lives, told apart from what lay at the same addresses before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// The device and pinned memory that is allocated now, with a number each that no other ever gets. A graph holds on to the
/// allocation that its copies were captured with, so that another one at the same address is not the same to it.
///
/// Any thread may use it. Memory that is allocated in stream order is not in it. A template over nothing, so that a program
/// compiles it only where it allocates.
template <class Lazy>
class BasicAllocations {
public:
    /// The program's. Never destroyed: buffers of static storage may go after anything else.
    static BasicAllocations& instance() {
        static BasicAllocations& all = *new BasicAllocations;
        return all;
    }

    void add(const void* memory, std::size_t bytes) {
        const char* const begin = static_cast<const char*>(memory);
        const std::lock_guard lock(mutex_);
        blocks_.insert(after(begin), Block{begin, begin + (bytes == 0 ? 1 : bytes), ++last_});
        changes_.fetch_add(1, std::memory_order_release);
    }
    void remove(const void* memory) noexcept {
        const std::lock_guard lock(mutex_);
        const auto next = after(static_cast<const char*>(memory));
        if (next == blocks_.begin() || (next - 1)->begin != memory)
            return;
        blocks_.erase(next - 1);
        freed_.fetch_add(1, std::memory_order_release);
        changes_.fetch_add(1, std::memory_order_release);
    }

    /// The number of the allocation that `pointer` points into; 0: it is none of sluice's.
    std::uint64_t number_of(const void* pointer) {
        // Nothing is freed in a program's steady state, so that one look at a number finds most.
        struct Known {
            std::uint64_t freed = ~std::uint64_t{0};
            std::array<const void*, 64> pointers{};
            std::array<std::uint64_t, 64> numbers{};
        };
        thread_local Known known;
        const std::uint64_t freed = this->freed();
        if (known.freed != freed) {
            known.pointers.fill(nullptr);
            known.freed = freed;
        }
        const std::size_t place = (reinterpret_cast<std::uintptr_t>(pointer) >> 8) % known.pointers.size();
        if (known.pointers[place] != pointer) {
            const std::uint64_t number = find(pointer);
            // Memory that is not there yet may come; what is there stays until something is freed.
            if (number == 0)
                return 0;
            known.numbers[place] = number;
            known.pointers[place] = pointer;
        }
        return known.numbers[place];
    }

    /// How many have been freed so far.
    std::uint64_t freed() const noexcept { return freed_.load(std::memory_order_acquire); }
    /// How many have been allocated or freed so far: while it stays the same, so do all numbers.
    std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }

private:
    struct Block {
        const char* begin;
        const char* end;
        std::uint64_t number;
    };

    /// The first block that begins behind `place`.
    typename std::vector<Block>::iterator after(const char* place) {
        auto first = blocks_.begin();
        for (auto count = blocks_.end() - first; count > 0;) {
            const auto half = count / 2;
            if (place < first[half].begin) {
                count = half;
            } else {
                first += half + 1;
                count -= half + 1;
            }
        }
        return first;
    }
    std::uint64_t find(const void* pointer) {
        const char* const place = static_cast<const char*>(pointer);
        const std::lock_guard lock(mutex_);
        const auto next = after(place);
        if (next == blocks_.begin() || place >= (next - 1)->end)
            return 0;
        return (next - 1)->number;
    }

    std::mutex mutex_;
    std::vector<Block> blocks_; // in the order of their addresses
    std::uint64_t last_ = 0;
    std::atomic<std::uint64_t> freed_{0};
    std::atomic<std::uint64_t> changes_{0};
};

using Allocations = BasicAllocations<void>;

} // namespace sluice::detail
