/// \file
/// Blocks of memory, found by the addresses in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace sluice::detail {

/// Blocks that do not overlap. A call takes the time of a search, however many there are. Not synchronised.
class MemoryBlocks {
public:
    struct Block {
        std::size_t bytes = 0;
        std::uint64_t number = 0;
        bool is_special = false; // whatever that is to the owner
    };

    /// A block of no bytes counts as one.
    void add(const void* memory, const Block& block) {
        Block& added = blocks_[static_cast<const char*>(memory)];
        added = block;
        added.bytes += block.bytes == 0 ? 1 : 0;
    }
    /// The block that `pointer` points into; null where there is none.
    const Block* find(const void* pointer) const noexcept {
        const char* const place = static_cast<const char*>(pointer);
        auto block = blocks_.upper_bound(place);
        if (block == blocks_.begin())
            return nullptr;
        --block;
        return static_cast<std::size_t>(place - block->first) < block->second.bytes ? &block->second
                                                                                    : nullptr;
    }
    /// Forgets the block that begins at `memory`, and gives what it was; of no bytes where there is none.
    Block remove(const void* memory) noexcept {
        const auto found = blocks_.find(static_cast<const char*>(memory));
        if (found == blocks_.end())
            return {};
        const Block block = found->second;
        blocks_.erase(found);
        return block;
    }

private:
    std::map<const char*, Block> blocks_;
};

} // namespace sluice::detail
