// Bodies of allocations.hpp.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include <sluice/backend/detail/memory_blocks.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/memory/detail/allocations.hpp>

namespace sluice::detail {

SLUICE_BODY std::size_t checked_bytes(std::size_t count, std::size_t element) {
    if (count > ~std::size_t{0} / element) {
        throw Error("a buffer of " + detail::counted(count, "element") + " of " +
                    detail::counted(element, "byte") + " each is larger than any memory");
    }
    return count * element;
}

/// What is allocated now; pinned blocks are the special ones.
struct Allocations::Blocks {
    /// Where a thread counts a block.
    static std::size_t& counted(bool pinned) noexcept {
        MemoryBytes& bytes = of_thread();
        return pinned ? bytes.pinned : bytes.device;
    }

    std::uint64_t find(const void* pointer) {
        const std::lock_guard lock(mutex);
        const auto* const block = all.find(pointer);
        return block != nullptr ? block->number : 0;
    }

    std::mutex mutex;
    MemoryBlocks all;
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
    const std::lock_guard lock(blocks_.mutex);
    blocks_.all.add(memory, {.bytes = bytes, .number = ++blocks_.last, .is_special = pinned});
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
    const MemoryBlocks::Block block = blocks_.all.remove(memory);
    if (block.bytes == 0)
        return;
    Blocks::counted(block.is_special) -= block.bytes;
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
