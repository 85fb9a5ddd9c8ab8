// Bodies of allocations.hpp.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/memory/detail/allocations.hpp>

namespace sluice::detail {

SLUICE_BODY std::size_t checked_bytes(std::size_t count, std::size_t element) {
    if (count > ~std::size_t{0} / element) {
        throw Error("a buffer of " + std::to_string(count) + " elements of " + std::to_string(element) +
                    " bytes each is larger than any memory");
    }
    return count * element;
}

/// What is allocated now, in the order of the addresses.
struct Allocations::Blocks {
    struct Block {
        const char* begin;
        const char* end;
        std::uint64_t number;
        bool pinned;
    };
    /// Where a thread counts a block.
    static std::size_t& counted(bool pinned) noexcept {
        MemoryBytes& bytes = of_thread();
        return pinned ? bytes.pinned : bytes.device;
    }

    /// The first block that begins behind `place`.
    Block* after(const char* place) {
        auto first = all.begin();
        for (auto count = all.end() - first; count > 0;) {
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
        const std::lock_guard lock(mutex);
        const auto next = after(place);
        if (next == all.begin() || place >= (next - 1)->end)
            return 0;
        return (next - 1)->number;
    }

    std::mutex mutex;
    List<Block> all;
    std::uint64_t last = 0;
    std::atomic<std::uint64_t> freed{0};
    std::atomic<std::uint64_t> changes{0};
};

SLUICE_BODY Allocations::Allocations() : blocks_(*new Blocks) {}

SLUICE_BODY Allocations& Allocations::instance() {
    static Allocations& all = *new Allocations;
    return all;
}

SLUICE_BODY std::uint64_t Allocations::changes() const noexcept {
    return blocks_.changes.load(std::memory_order_acquire);
}

SLUICE_BODY MemoryBytes& Allocations::of_thread() noexcept {
    thread_local MemoryBytes bytes;
    return bytes;
}

SLUICE_BODY void Allocations::add(const void* memory, std::size_t bytes, bool pinned) {
    using Block = Blocks::Block;
    const char* const begin = static_cast<const char*>(memory);
    const std::lock_guard lock(blocks_.mutex);
    blocks_.all.insert(blocks_.after(begin),
                       Block{begin, begin + (bytes == 0 ? 1 : bytes), ++blocks_.last, pinned});
    Blocks::counted(pinned) += bytes;
    blocks_.changes.fetch_add(1, std::memory_order_release);
}

SLUICE_BODY void* Allocations::added(void* memory, std::size_t bytes, void (*free)(void*) noexcept,
                                     bool pinned) {
    try {
        add(memory, bytes, pinned);
    } catch (...) {
        free(memory);
        throw;
    }
    return memory;
}

SLUICE_BODY void Allocations::remove(const void* memory) noexcept {
    const std::lock_guard lock(blocks_.mutex);
    const auto next = blocks_.after(static_cast<const char*>(memory));
    if (next == blocks_.all.begin() || (next - 1)->begin != memory)
        return;
    Blocks::counted((next - 1)->pinned) -= static_cast<std::size_t>((next - 1)->end - (next - 1)->begin);
    blocks_.all.erase(next - 1);
    blocks_.freed.fetch_add(1, std::memory_order_release);
    blocks_.changes.fetch_add(1, std::memory_order_release);
}

SLUICE_BODY std::uint64_t Allocations::number_of(const void* pointer) {
    if (pointer == nullptr)
        return 0; // which stands for an empty place below
    // Nothing is freed in a program's steady state, so that one look at a number finds most.
    struct Known {
        std::uint64_t freed = ~std::uint64_t{0};
        std::array<const void*, 64> pointers{};
        std::array<std::uint64_t, 64> numbers{};
    };
    thread_local Known known;
    const std::uint64_t freed = blocks_.freed.load(std::memory_order_acquire);
    if (known.freed != freed) {
        known.pointers.fill(nullptr);
        known.freed = freed;
    }
    const std::size_t place = (reinterpret_cast<std::uintptr_t>(pointer) >> 8) % known.pointers.size();
    if (known.pointers[place] != pointer) {
        const std::uint64_t number = blocks_.find(pointer);
        // Memory that is not there yet may come; what is there stays until something is freed.
        if (number == 0)
            return 0;
        known.numbers[place] = number;
        known.pointers[place] = pointer;
    }
    return known.numbers[place];
}

} // namespace sluice::detail
