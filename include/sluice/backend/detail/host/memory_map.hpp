// What device memory the host has given out.
#pragma once

#include <cstddef>
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

    /// Forgets the block that begins at `memory`.
    void remove(const void* memory) noexcept {
        const std::lock_guard lock(mutex_);
        bytes_ -= blocks_.remove(memory).bytes;
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
    std::mutex mutex_;
    detail::MemoryBlocks blocks_;
    std::size_t bytes_ = 0;
};

} // namespace sluice::host
