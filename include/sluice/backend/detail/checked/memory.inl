// Bodies of interface.hpp: memory and work.
#pragma once

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

inline std::vector<std::vector<Range>>*& listening() noexcept {
    thread_local std::vector<std::vector<Range>>* lists = nullptr;
    return lists;
}

SLUICE_CHECKED_FUNCTION void allocated(const void* memory, std::size_t bytes, bool device, bool sees_writes,
                                       bool ordered, Key on) {
    Locked checker;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    Block& block = checker->blocks.make(begin, begin + (bytes == 0 ? 1 : bytes));
    block.owned = true;
    block.device = device;
    if (device && sees_writes)
        block.unwritten.push_back({block.begin, block.end});
    block.opaque = checker->opaque;
    if (auto* const lists = listening(); lists != nullptr)
        lists->back().push_back({memory, bytes, true});
    if (!ordered)
        return;
    Actor& stream = checker->enqueuing(on);
    block.of_graph = stream.capture != nullptr;
    if (!block.of_graph) {
        const Doer doer = checker->doer_of(Op::allocation, nullptr);
        block.records.push_back({block.begin, block.end, true, doer, checker->new_work(stream)});
    }
}

SLUICE_CHECKED_FUNCTION void freed(const void* memory, bool ordered, Key on) noexcept {
    Locked checker;
    Block* const block = checker->blocks.find(reinterpret_cast<std::uintptr_t>(memory));
    if (block == nullptr || !block->alive || block->of_graph)
        return;
    const Doer doer = checker->doer_of(Op::free, nullptr);
    const Range range{memory, block->end - block->begin, true};
    // Where something has been thrown, all that it leaves behind is freed, and the cause is known.
    if (std::uncaught_exceptions() == 0) {
        checker->look_at_suspects(false);
        if (ordered) {
            Actor& stream = checker->enqueuing(on);
            if (stream.capture == nullptr)
                checker->access(&range, 1, checker->new_work(stream), doer, false);
        } else {
            checker->host_access(range, doer, false);
        }
    }
    std::erase_if(checker->suspects, [&](const Suspect& suspect) {
        const auto begin = reinterpret_cast<std::uintptr_t>(suspect.begin);
        return begin >= block->begin && begin < block->end;
    });
    block->freed = doer;
    checker->blocks.bury(*block);
}

SLUICE_CHECKED_FUNCTION void name_memory(const void* memory, std::size_t bytes, const char* name) {
    Locked checker;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    if (bytes > 0)
        checker->blocks.at(begin, begin + bytes).name = name;
}

SLUICE_CHECKED_FUNCTION void accesses(Key on, const Range* ranges, std::size_t count, Op op,
                                      const char* what) {
    if (BlindScope::active())
        return;
    Locked checker;
    checker->look_at_suspects(false);
    checker->throw_pending();
    if (!checker->doer_known())
        return;
    Actor& stream = checker->enqueuing(on);
    const Doer doer = checker->doer_of(op, what);
    if (stream.capture == nullptr) {
        checker->access(ranges, count, checker->new_work(stream), doer);
        return;
    }
    NodeModel node;
    for (std::size_t i = 0; i < count; ++i)
        node.accesses.push_back({ranges[i], doer, 0});
    checker->append(stream, std::move(node));
}

SLUICE_CHECKED_FUNCTION Token enqueued(Key on) {
    Locked checker;
    checker->look_at_suspects(true);
    checker->throw_pending();
    Actor& stream = checker->enqueuing(on);
    checker->note_opaque(stream);
    if (stream.capture != nullptr) {
        NodeModel node;
        node.opaque = true;
        checker->append(stream, std::move(node));
        return TokenScope::unknown;
    }
    if (checker->stream(on).runs_on_caller || !checker->doer_known())
        return TokenScope::current();
    const Stamp stamp = checker->new_work(stream);
    stream.hand_over(stamp);
    return (Token{stream.id} << 44) | stamp.time;
}

SLUICE_CHECKED_FUNCTION void Checker::host_access(const Range& range, const Doer& doer, bool may_throw) {
    if (doer_known())
        access(&range, 1, new_work(this->doer()), doer, may_throw);
}

SLUICE_CHECKED_FUNCTION void host_accesses(const Range* ranges, std::size_t count, Op op, const char* what) {
    Locked checker;
    checker->look_at_suspects(false);
    checker->throw_pending();
    for (std::size_t i = 0; i < count; ++i)
        checker->host_access(ranges[i], checker->doer_of(op, what), true);
}

inline std::uint64_t hash_of(const void* begin, std::size_t bytes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
    const auto* const place = static_cast<const unsigned char*>(begin);
    // Of much memory so much at both ends.
    constexpr std::size_t end = 4096;
    for (std::size_t i = 0; i < bytes; ++i) {
        if (i == end && bytes > 2 * end)
            i = bytes - end;
        hash = (hash ^ place[i]) * 0x100000001b3U;
    }
    return hash;
}

SLUICE_CHECKED_FUNCTION void Checker::look_at_suspects(bool forget) {
    if (suspects.empty()) [[likely]]
        return;
    for (const Suspect& suspect : suspects) {
        if (hash_of(suspect.begin, suspect.bytes) == suspect.hash)
            continue;
        if (const Block* const block = blocks.find(suspect.touch.begin); block != nullptr)
            race(*block, suspect.reader, suspect.touch, false);
    }
    const Stamp now = doer_stamp();
    std::erase_if(suspects, [&](const Suspect& suspect) {
        return forget || hash_of(suspect.begin, suspect.bytes) != suspect.hash ||
               before(suspect.reader.stamp, now);
    });
}

SLUICE_CHECKED_FUNCTION void Checker::suspect(const void* begin, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    Block* const block = blocks.find(address);
    if (block == nullptr || suspects.size() >= 64 || !doer_known())
        return;
    const Stamp now = new_work(doer());
    // What work may write by right now tells nothing.
    for (const Record& record : block->records) {
        if (record.writes && !before(record.stamp, now))
            return;
    }
    bool opaque_work = false;
    for (const auto& [key, id] : streams)
        opaque_work = opaque_work || now.knows(id) < actors_[id].last_opaque;
    for (const Record& record : block->records) {
        bool known = true;
        if (record.end <= address || record.begin >= address + bytes || before(record.stamp, now) ||
            ordered_by_semaphore(record.stamp, now, known) || !known)
            continue;
        // A batch nobody writes; of other memory nobody knows what callables do.
        if (opaque_work && record.doer.op != Op::batch)
            continue;
        for (const Suspect& other : suspects) {
            if (other.begin == begin && other.bytes == bytes)
                return;
        }
        const Record touch{address, address + bytes, true, doer_of(Op::host, nullptr), now};
        suspects.push_back({begin, bytes, hash_of(begin, bytes), record, touch});
        return;
    }
}

SLUICE_CHECKED_FUNCTION void host_touches(const void* begin, std::size_t bytes, bool reads, bool may_write) {
    // A loop over the elements asks once, as long as nothing else happens.
    struct Latest {
        std::uintptr_t begin = 0, end = 0;
        std::uint64_t generation = 0;
    };
    thread_local Latest latest;
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    if (latest.generation == generation().load(std::memory_order_relaxed) && latest.begin <= address &&
        address + bytes <= latest.end)
        return;
    Checker& checker = Checker::instance();
    const std::lock_guard lock(checker.mutex);
    const Block* const block = checker.blocks.find(address);
    if (block == nullptr || !checker.doer_known())
        return;
    const Record touch{address, address + bytes, false, checker.doer_of(Op::host, nullptr),
                       checker.new_work(checker.doer())};
    bool read_in_flight = false;
    for (const Record& record : block->records) {
        bool known = true;
        if (checker.before(record.stamp, touch.stamp) || checker.before(touch.stamp, record.stamp) ||
            checker.ordered_by_semaphore(record.stamp, touch.stamp, known) ||
            checker.ordered_by_semaphore(touch.stamp, record.stamp, known) || !known)
            continue;
        if (!record.writes) {
            read_in_flight = true;
        } else if (reads && record.begin < touch.end && touch.begin < record.end) {
            checker.race(*block, Record(record), touch, true);
            return;
        }
    }
    if (read_in_flight && may_write)
        checker.suspect(begin, bytes);
    else if (!read_in_flight && reads)
        latest = {block->begin, block->end, generation().load(std::memory_order_relaxed)};
}

} // namespace sluice::detail::checked
