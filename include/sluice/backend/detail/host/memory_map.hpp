/// \file
/// What device memory the host has given out.
#pragma once

#include <cstddef>
#include <mutex>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/list.hpp>

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
        const char* const begin = static_cast<const char*>(memory);
        const std::lock_guard lock(mutex_);
        blocks_.insert(after(begin), Block{begin, begin + (bytes == 0 ? 1 : bytes), owner});
        bytes_ += bytes == 0 ? 1 : bytes;
    }

    /// Forgets the block that begins at `memory`.
    void remove(const void* memory) noexcept {
        const std::lock_guard lock(mutex_);
        if (const auto block = find(memory); block != blocks_.end()) {
            bytes_ -= static_cast<std::size_t>(block->end - block->begin);
            blocks_.erase(block);
        }
    }

    /// How many bytes live now; a block of no bytes counts as one.
    std::size_t bytes() noexcept {
        const std::lock_guard lock(mutex_);
        return bytes_;
    }

    /// Whether `pointer` points into a block.
    bool contains(const void* pointer) {
        const std::lock_guard lock(mutex_);
        return find(pointer) != blocks_.end();
    }

    /// Whether `pointer` points into a block that a graph owns.
    bool graph_owns(const void* pointer) {
        const std::lock_guard lock(mutex_);
        const auto block = find(pointer);
        return block != blocks_.end() && block->owner == Owner::graph;
    }

private:
    struct Block {
        const char* begin;
        const char* end;
        Owner owner;
    };
    using Blocks = detail::List<Block>;

    // The first block that begins behind `begin`.
    Block* after(const char* begin) {
        auto first = blocks_.begin();
        for (auto count = blocks_.end() - first; count > 0;) {
            const auto half = count / 2;
            if ((first + half)->begin <= begin) {
                first += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        return first;
    }
    Block* find(const void* pointer) {
        const char* const place = static_cast<const char*>(pointer);
        const auto next = after(place);
        if (next == blocks_.begin())
            return blocks_.end();
        const auto block = next - 1;
        return place < block->end ? block : blocks_.end();
    }

    std::mutex mutex_;
    Blocks blocks_; // in the order of their addresses
    std::size_t bytes_ = 0;
};

} // namespace sluice::host
