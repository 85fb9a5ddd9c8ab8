// Blocks of memory, found by the addresses in them. What a std::map would be, which is a hundred functions to a compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/owned.hpp>

namespace sluice::detail {

/// Blocks that do not overlap, as a treap: a tree in the order of their addresses, with numbers that look random from the root
/// down. A call takes the time of a search, however many there are. Not synchronised, and never destroyed.
class MemoryBlocks {
public:
    struct Block {
        std::size_t bytes = 0;
        std::uint64_t number = 0;
        bool is_special = false; // whatever that is to the owner
    };

    /// A block of no bytes counts as one.
    void add(const void* memory, Block block) {
        block.bytes += block.bytes == 0 ? 1 : 0;
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const std::uint64_t mixed = (address ^ (address >> 29)) * 0xbf58476d1ce4e5b9U;
        Node* const node = new Node{address, mixed ^ (mixed >> 32), block};
        Node *before = nullptr, *behind = nullptr;
        split(root_, address, before, behind);
        root_ = merged(merged(before, node), behind);
    }
    /// The block that `pointer` points into; null where there is none.
    Block* find(const void* pointer) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(pointer);
        Node* last = nullptr; // that begins there or before
        for (Node* node = root_; node != nullptr;) {
            const bool begins = node->address <= address;
            last = begins ? node : last;
            node = begins ? node->behind : node->before;
        }
        return last != nullptr && address - last->address < last->block.bytes ? &last->block : nullptr;
    }
    /// Forgets the block that begins at `memory`, and gives what it was; of no bytes where there is none.
    Block remove(const void* memory) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        Node** place = &root_;
        while (*place != nullptr && (*place)->address != address)
            place = address < (*place)->address ? &(*place)->before : &(*place)->behind;
        if (*place == nullptr)
            return {};
        const Owned<Node> node(*place);
        *place = merged(node->before, node->behind);
        return node->block;
    }

private:
    struct Node {
        std::uintptr_t address;
        std::uint64_t rank; // no node below has a higher one
        Block block;
        Node *before = nullptr, *behind = nullptr;
    };

    static void split(Node* node, std::uintptr_t address, Node*& before, Node*& behind) noexcept {
        if (node == nullptr) {
            before = behind = nullptr;
        } else if (node->address < address) {
            before = node;
            split(node->behind, address, node->behind, behind);
        } else {
            behind = node;
            split(node->before, address, before, node->before);
        }
    }
    static Node* merged(Node* before, Node* behind) noexcept {
        if (before == nullptr || behind == nullptr)
            return before == nullptr ? behind : before;
        if (before->rank > behind->rank) {
            before->behind = merged(before->behind, behind);
            return before;
        }
        behind->before = merged(before, behind->before);
        return behind;
    }

    Node* root_ = nullptr;
};

} // namespace sluice::detail
