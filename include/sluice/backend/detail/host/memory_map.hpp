// What device memory the host has given out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/memory_blocks.hpp>

namespace sluice::host {

/// The device memory that lives now. Any thread may use it. Nothing in the steady state of a program asks it.
class MemoryMap {
public:
    /// The program's. Never destroyed: buffers of static storage may go after anything else.
    static MemoryMap& instance() {
        static MemoryMap& map = *new MemoryMap;
        return map;
    }

    /// Whether a graph owns a block, or its user.
    enum class Owner { user, graph };

    void add(const void* memory, std::size_t bytes, Owner owner) {
        const std::lock_guard lock(mutex_);
        blocks_.add(memory, {.bytes = bytes, .is_special = owner == Owner::graph});
        bytes_ += bytes == 0 ? 1 : bytes;
    }

    /// The block's user frees it, or the last graph that has it goes. Says whether it is to be deleted, and has forgotten it then;
    /// otherwise the other one has it still, alone.
    bool let_go(const void* memory, Owner who) noexcept {
        const std::lock_guard lock(mutex_);
        if (auto* const block = blocks_.find(memory); block != nullptr) {
            if (who == Owner::user && block->is_special) {
                block->number = freed;
                return false;
            }
            if (who == Owner::graph && block->number != freed) {
                block->is_special = false;
                return false;
            }
        }
        bytes_ -= blocks_.remove(memory).bytes;
        return true;
    }

    /// How many bytes live now; a block of no bytes counts as one.
    std::size_t bytes() noexcept {
        const std::lock_guard lock(mutex_);
        return bytes_;
    }

    /// Whether `pointer` points into a block.
    bool contains(const void* pointer) {
        const std::lock_guard lock(mutex_);
        return blocks_.find(pointer) != nullptr;
    }

    /// Whether `pointer` points into a block that a graph owns.
    bool graph_owns(const void* pointer) {
        const std::lock_guard lock(mutex_);
        const auto* const block = blocks_.find(pointer);
        return block != nullptr && block->is_special;
    }

private:
    static constexpr std::uint64_t freed = 1; // the number of a graph's block whose user has freed it

    std::mutex mutex_;
    detail::MemoryBlocks blocks_;
    std::size_t bytes_ = 0;
};

} // namespace sluice::host
