// What is known of memory: allocations, and the accesses that later ones must come after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/clocks.hpp>

namespace sluice::detail::checked {

/// Who makes an access, in messages.
struct Doer {
    std::uint32_t stage = 0; ///< A label; 0: none.
    std::uint64_t batch = 0;
    Op op = Op::copy;
    const char* what = nullptr; ///< A name of the operation, that stays.
    bool aside = false;     ///< Whether the stage did it on another stream than the one that it was handed.
    bool output = false;    ///< Of a batch: see `Range`.
    std::uint32_t node = 0; ///< Of a graph that was built: which node, or within which one; counted from 1.
};

/// An access.
struct Record {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool writes = false;
    Doer doer;
    Stamp stamp;
};

/// A part of a block.
struct Bytes {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

/// A slot or a batch that owns or names memory, in messages.
struct Holder {
    Bytes bytes;
    const void* object = nullptr;
    std::string of;
    int slot = 0;
};

/// Memory that was allocated through sluice, or that accesses named.
struct Block {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t number = 0; ///< No other block ever has it.
    bool owned = false;       ///< Whether sluice has allocated it.
    bool device = false;
    bool alive = true;
    bool kept = false;            ///< Freed, and still there: its place is not reused.
    std::vector<Bytes> unwritten; ///< Of device memory: in order.
    bool of_graph = false;        ///< Allocated in a capture: it goes with the graph.
    std::uint64_t opaque = 0;
    std::string name;
    std::string owner; ///< Whose slot it belongs to, which others have been handed.
    std::vector<Holder> holders;
    Doer freed;
    std::vector<Record> records;
    std::vector<Record>
        passed; ///< No longer among them, but a callable that is still to run may race with them.

    /// Whether of [from, to) something (`any`) or everything is undefined.
    bool is_undefined(std::uintptr_t from, std::uintptr_t to, bool any) const noexcept {
        for (const Bytes& part : unwritten) {
            if (any ? part.begin < to && from < part.end : part.begin <= from && to <= part.end)
                return true;
        }
        return false;
    }
    void write(std::uintptr_t from, std::uintptr_t to) {
        for (std::size_t i = 0; i < unwritten.size();) {
            Bytes& part = unwritten[i];
            if (to <= part.begin || part.end <= from) {
                ++i;
            } else if (part.begin < from && to < part.end) {
                const Bytes rest{to, part.end};
                part.end = from;
                unwritten.insert(unwritten.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
                return;
            } else if (part.begin < from) {
                part.end = from;
                ++i;
            } else if (to < part.end) {
                part.begin = to;
                return;
            } else {
                unwritten.erase(unwritten.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        // Every other element: better to miss a read than to grow.
        if (unwritten.size() > 64)
            unwritten.clear();
    }
};

/// All blocks, by address.
class Blocks {
public:
    /// The block that holds `begin`; null where there is none.
    Block* find(std::uintptr_t begin) {
        if (latest_ != nullptr && begin >= latest_->begin && begin < latest_->end)
            return latest_;
        auto next = blocks_.upper_bound(begin);
        if (next == blocks_.begin())
            return nullptr;
        Block& block = std::prev(next)->second;
        if (begin >= block.end)
            return nullptr;
        return latest_ = &block;
    }
    /// A new one in the place of all that overlap with it.
    Block& make(std::uintptr_t begin, std::uintptr_t end) {
        erase(begin, end);
        Block& block = blocks_[begin];
        block.begin = begin;
        block.end = end;
        block.number = ++last_number_;
        block.records.reserve(8);
        return block;
    }
    /// The part of [begin, end) that one block holds; a new block without an owner where there is none.
    Block& at(std::uintptr_t begin, std::uintptr_t end) {
        if (Block* const found = find(begin))
            return *found;
        const auto next = blocks_.lower_bound(begin);
        const std::uintptr_t until = next == blocks_.end() || next->first > end ? end : next->first;
        Block& block = blocks_[begin];
        block.begin = begin;
        block.end = until;
        block.number = ++last_number_;
        block.records.reserve(8);
        if (++foreign_ > most_foreign)
            prune_ = true;
        return block;
    }
    bool wants_pruning() const noexcept { return prune_; }
    /// Drops blocks without an owner for which `forgettable(record)` holds of all records.
    template <class Forgettable>
    void prune(Forgettable&& forgettable) {
        latest_ = nullptr;
        foreign_ = 0;
        for (auto place = blocks_.begin(); place != blocks_.end();) {
            Block& block = place->second;
            bool drop = !block.owned;
            for (const Record& record : block.records)
                drop = drop && forgettable(record);
            if (drop) {
                place = blocks_.erase(place);
            } else {
                foreign_ += block.owned ? 0 : 1;
                ++place;
            }
        }
        prune_ = false;
        most_foreign = foreign_ < 512 ? 1024 : 2 * foreign_;
    }
    /// The block is freed, and remembered for a while.
    void bury(Block& block) {
        block.alive = false;
        block.records.clear();
        block.records.shrink_to_fit();
        block.passed = {};
        graves_.emplace_back(block.begin, block.number);
        if (graves_.size() <= most_graves)
            return;
        const auto [begin, number] = graves_.front();
        graves_.pop_front();
        forget(begin, number);
    }
    /// Drops the block of that number, if it is still there.
    void forget(std::uintptr_t begin, std::uint64_t number) {
        const auto place = blocks_.find(begin);
        if (place != blocks_.end() && place->second.number == number) {
            latest_ = nullptr;
            blocks_.erase(place);
        }
    }
    /// Drops what was freed there.
    void forget_grave(std::uintptr_t place) {
        const Block* const block = find(place);
        if (block != nullptr && !block->alive)
            erase(block->begin, block->end);
    }
    /// The same where the place may have been reused.
    void forget_reused(std::uintptr_t place) {
        const Block* const block = find(place);
        if (block != nullptr && !block->alive && !block->kept)
            erase(block->begin, block->end);
    }
    template <class Visit>
    void for_each(Visit&& visit) {
        for (auto& [begin, block] : blocks_)
            visit(block);
    }

private:
    void erase(std::uintptr_t begin, std::uintptr_t end) {
        latest_ = nullptr;
        auto place = blocks_.lower_bound(begin);
        if (place != blocks_.begin() && std::prev(place)->second.end > begin)
            --place;
        while (place != blocks_.end() && place->first < end)
            place = blocks_.erase(place);
    }

    static constexpr std::size_t most_graves = 1024;
    std::size_t most_foreign = 1024;
    std::map<std::uintptr_t, Block> blocks_;
    Block* latest_ = nullptr;
    std::uint64_t last_number_ = 0;
    std::size_t foreign_ = 0;
    bool prune_ = false;
    std::deque<std::pair<std::uintptr_t, std::uint64_t>> graves_;
};

} // namespace sluice::detail::checked
