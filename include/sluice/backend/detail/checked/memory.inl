// Bodies of interface.hpp: memory and work.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

inline List<List<Range>>*& listening() noexcept {
    thread_local List<List<Range>>* lists = nullptr;
    return lists;
}

SLUICE_BODY void allocated(const void* memory, std::size_t bytes, bool device, bool sees_writes, bool ordered,
                           Key on) {
    Locked checker;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    Block& block = checker->blocks.make(begin, begin + (bytes == 0 ? 1 : bytes));
    block.owned = true;
    block.device = device;
    if (device && sees_writes)
        block.unwritten.push_back({block.begin, block.end});
    block.opaque = checker->opaque;
    if (auto* const lists = listening(); lists != nullptr)
        lists->back().push_back({.begin = memory, .bytes = bytes, .writes = true, .owned = true});
    if (!ordered)
        return;
    Actor& stream = checker->enqueuing(on);
    block.of_graph = stream.capture != nullptr;
    if (block.of_graph) {
        stream.capture->model->memory.push_back(std::make_shared<const GraphMemory>(checker->blocks, block));
    } else {
        const Doer doer = checker->doer_of(Op::allocation, nullptr);
        block.records.push_back({block.begin, block.end, true, doer, checker->new_work(stream)});
    }
}

SLUICE_BODY bool freed(const void* memory, bool ordered, Key on) noexcept {
    Locked checker;
    Block* const block = checker->blocks.find(reinterpret_cast<std::uintptr_t>(memory));
    if (block == nullptr || !block->alive || block->of_graph)
        return false;
    const Doer doer = checker->doer_of(Op::free, nullptr);
    const Range range{memory, block->end - block->begin, true};
    Actor& by = ordered ? checker->enqueuing(on) : checker->doer();
    bool in_use = false;
    Stamp now;
    if (by.capture == nullptr && checker->doer_known()) {
        now = checker->new_work(by);
        // An owner that shares memory with a callable may be the last one after that.
        if (!ordered && checker->released.size() > 0)
            now = now.with(checker->released);
        for (const Record& record : block->records) {
            bool known = true;
            in_use = in_use || !(checker->before(record.stamp, now) ||
                                 checker->ordered_by_semaphore(record.stamp, now, known));
        }
    }
    // Where something has been thrown, all that it leaves behind is freed, and the cause is known.
    if (std::uncaught_exceptions() == 0) {
        checker->look_at_suspects(false);
        if (now.time > 0)
            checker->access(&range, 1, now, doer, false);
    }
    checker->clear(block->begin, block->end);
    block->freed = doer;
    checker->blocks.bury(*block);
    return in_use;
}

SLUICE_BODY void keep(void* memory, void (*give_back)(void*) noexcept) noexcept {
    constexpr std::size_t most = 512, most_bytes = std::size_t{64} << 20;
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::vector<KeptMemory> over;
    {
        Locked checker;
        std::size_t bytes = 0;
        if (Block* const block = checker->blocks.find(address); block != nullptr && !block->alive) {
            block->kept = true;
            bytes = block->end - block->begin;
        }
        auto& kept = checker->kept;
        kept.push_back({memory, bytes, give_back});
        checker->kept_bytes += bytes;
        while (kept.size() > 1 && (kept.size() > most || checker->kept_bytes > most_bytes)) {
            checker->blocks.forget_grave(reinterpret_cast<std::uintptr_t>(kept.front().memory));
            checker->kept_bytes -= kept.front().bytes;
            over.push_back(kept.front());
            kept.pop_front();
        }
    }
    for (const KeptMemory& gone : over)
        gone.give_back(gone.memory);
}

SLUICE_BODY void name_memory(const void* memory, std::size_t bytes, const char* name) {
    Locked checker;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    if (bytes > 0)
        checker->blocks.at(begin, begin + bytes).name = name;
}

SLUICE_BODY void accesses(Key on, const Range* ranges, std::size_t count, Op op, const char* what) {
    if (BlindScope::active())
        return;
    Locked checker;
    checker->look_at_suspects(false);
    checker->throw_pending();
    if (!checker->doer_known())
        return;
    Actor& stream = checker->enqueuing(on);
    Doer doer = checker->doer_of(op, what);
    if (const StageScope* const stage = StageScope::current(); stage != nullptr)
        doer.aside = stage->on != on;
    if (stream.capture == nullptr) {
        checker->access(ranges, count, checker->new_work(stream), doer);
        return;
    }
    NodeModel node;
    for (std::size_t i = 0; i < count; ++i)
        node.accesses.push_back({ranges[i], doer, 0});
    checker->append(stream, std::move(node));
}

inline std::atomic<std::uint64_t> tokens_begun{0}, tokens_ended{0};

SLUICE_BODY TokenScope::TokenScope(Token token) noexcept : CallerScope(token) { tokens_begun.fetch_add(1); }

SLUICE_BODY TokenScope::~TokenScope() { tokens_ended.fetch_add(1); }

SLUICE_BODY std::uint64_t TokenScope::begun() noexcept { return tokens_begun.load(); }

SLUICE_BODY std::uint64_t TokenScope::ended() noexcept { return tokens_ended.load(); }

SLUICE_BODY Token enqueued(Key on) {
    Locked checker;
    checker->look_at_suspects(true);
    checker->throw_pending();
    Actor& stream = checker->enqueuing(on);
    checker->note_call(stream);
    if (stream.capture != nullptr) {
        NodeModel node;
        node.opaque = node.unseen = true;
        node.caller = checker->doer_of(Op::host, nullptr);
        const Token call = node.call = captured_call();
        checker->append(stream, std::move(node));
        return call;
    }
    if (checker->stream(on).runs_on_caller || !checker->doer_known())
        return TokenScope::current();
    PendingCall call{.stamp = checker->new_work(stream)};
    if (const StageScope* const stage = StageScope::current(); stage != nullptr) {
        call.stage = stage->label;
        call.batch = stage->number;
    }
    const Time time = call.stamp.time;
    checker->calls.push_back(std::move(call));
    return (Token{stream.id} << token_bits) | time;
}

SLUICE_BODY Token captured_call() noexcept {
    static std::atomic<Token> latest{CallerScope::captured};
    return ++latest;
}

SLUICE_BODY Token call_begun(Token captured) noexcept {
    Locked checker;
    const auto call = std::find_if(checker->calls.begin(), checker->calls.end(),
                                   [&](const PendingCall& pending) { return pending.captured == captured; });
    if (call == checker->calls.end())
        return CallerScope::unknown;
    call->captured = 0;
    return (Token{call->stamp.actor} << token_bits) | call->stamp.time;
}

SLUICE_BODY void call_ended(Token token, bool owned) noexcept {
    Locked checker;
    const CallerScope scope(token);
    const Stamp call = checker->doer_stamp();
    if (owned)
        call.tell(checker->released);
    const PendingCall* const pending = checker->current_call();
    const PendingCall ended = pending == nullptr ? PendingCall{} : *pending;
    std::erase_if(checker->calls, [&](const PendingCall& other) {
        return other.stamp.actor == call.actor && other.stamp.time == call.time;
    });
    if (!ended.asides.empty())
        checker->take_asides(ended, checker->doer().seen);
}

SLUICE_BODY void Checker::host_access(const Range& range, const Doer& doer, bool may_throw) {
    if (doer_known())
        access(&range, 1, new_work(this->doer()), doer, may_throw);
}

SLUICE_BODY void host_accesses(const Range* ranges, std::size_t count, Op op, const char* what) {
    Locked checker;
    checker->look_at_suspects(false);
    checker->throw_pending();
    for (std::size_t i = 0; i < count; ++i)
        checker->host_access(ranges[i], checker->doer_of(op, what), true);
}

// Eight bytes at a time, in four rows.
struct HashOfBytes {
    std::uint64_t rows[4] = {0xcbf29ce484222325U, 0x9e3779b97f4a7c15U, 0xbf58476d1ce4e5b9U,
                             0x94d049bb133111ebU};

    void mix(std::uint64_t& row, std::uint64_t word) noexcept {
        row = (((row << 29) | (row >> 35)) ^ word) * 0x9fb21c651e98df25U;
    }
    void add(const unsigned char* place, std::size_t bytes) noexcept {
        std::uint64_t words[4];
        for (; bytes >= sizeof(words); place += sizeof(words), bytes -= sizeof(words)) {
            std::memcpy(words, place, sizeof(words));
            for (std::size_t i = 0; i < 4; ++i)
                mix(rows[i], words[i]);
        }
        for (; bytes > 0; ++place, --bytes)
            mix(rows[bytes % 4], *place);
    }
    std::uint64_t all() noexcept {
        for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{0}})
            mix(rows[0], rows[i]);
        return rows[0];
    }
};

// All of it, up to 1 MiB; of more so much at both ends, and in between lines that are as far from each other.
inline std::uint64_t hash_of(const Record& part) noexcept {
    constexpr std::size_t most = std::size_t{1} << 20, at_end = most / 4, line = 64, lines = most / 2 / line;
    const auto* const place = reinterpret_cast<const unsigned char*>(part.begin);
    const std::size_t bytes = part.end - part.begin;
    HashOfBytes hash;
    if (bytes <= most) {
        hash.add(place, bytes);
        return hash.all();
    }
    hash.add(place, at_end);
    const std::size_t step = (bytes - 2 * at_end) / lines;
    for (std::size_t i = 0; i < lines; ++i)
        hash.add(place + at_end + i * step, line);
    hash.add(place + bytes - at_end, at_end);
    return hash.all();
}

SLUICE_BODY void Checker::look_at_suspects(bool forget) {
    if (suspects.empty()) [[likely]]
        return;
    const Stamp now = doer_stamp();
    std::erase_if(suspects, [&](const Suspect& suspect) {
        const bool changed = hash_of(suspect.reader) != suspect.hash;
        // A callable may have done it.
        const bool unclear = suspect.calls && *suspect.calls != TokenScope::begun();
        if (changed && !unclear) {
            if (const Block* const block = blocks.find(suspect.touch.begin); block != nullptr)
                race(*block, suspect.reader, suspect.touch, false);
        }
        return forget || changed || unclear || before(suspect.reader.stamp, now);
    });
}

SLUICE_BODY bool Checker::may_write_beside(Actor& actor, Time last, const Record& access,
                                           const Stamp& now) const {
    const Time over = now.knows(actor.id);
    if (over >= last)
        return false;
    const bool may_be_earlier = access.stamp.knows(actor.id) > over;
    const bool may_be_later = actor.clock.of(access.stamp.actor) >= access.stamp.time;
    return may_be_earlier || may_be_later;
}

SLUICE_BODY const Record* Checker::suspect(Block& block, std::uintptr_t begin, std::uintptr_t end) {
    const Stamp now = new_work(doer());
    // Bytes that work may write by right now tell nothing.
    const auto is_being_written = [&](const Record& record) {
        return std::any_of(block.records.begin(), block.records.end(), [&](const Record& other) {
            return other.writes && other.begin < record.end && record.begin < other.end &&
                   !before(other.stamp, now);
        });
    };
    const Record* latest = nullptr;
    for (const Record& record : block.records) {
        bool known = true;
        if (record.end <= begin || record.begin >= end || before(record.stamp, now) ||
            ordered_by_semaphore(record.stamp, now, known) || !known || is_being_written(record))
            continue;
        // Who has said that it writes here has been told.
        const auto is_told = [&](const Record& other) {
            return other.writes && other.stamp.actor == now.actor && other.begin < record.end &&
                   record.begin < other.end && !before(record.stamp, other.stamp);
        };
        if (std::any_of(block.records.begin(), block.records.end(), is_told))
            continue;
        const auto is_of_record = [&](const Suspect& other) {
            return other.reader.begin == record.begin && other.reader.end == record.end &&
                   other.reader.stamp.actor == record.stamp.actor &&
                   other.reader.stamp.time == record.stamp.time;
        };
        if (std::any_of(suspects.begin(), suspects.end(), is_of_record)) {
            latest = &record;
            continue;
        }
        bool unseen = false, called = false;
        // A batch is not written; to other memory kernels may do anything, and so may callables, of which it is known when.
        for (auto stream = streams.begin(); record.doer.op != Op::batch && stream != streams.end();
             ++stream) {
            Actor& actor = actors_[stream->second];
            unseen = unseen || may_write_beside(actor, actor.last_opaque, record, now);
            called = called || may_write_beside(actor, actor.last_call, record, now);
        }
        const std::uint64_t over = TokenScope::ended();
        const std::uint64_t begun = TokenScope::begun();
        if (unseen || (called && over != begun))
            continue;
        Suspect made{hash_of(record),
                     record,
                     {record.begin, record.end, true, doer_of(Op::host, nullptr), now},
                     called ? std::optional<std::uint64_t>(begun) : std::nullopt};
        // Of one actor's reads the last one is over last: for who submits one batch again and again there is one to look at.
        const auto is_earlier = [&](const Suspect& other) {
            return other.reader.begin == record.begin && other.reader.end == record.end &&
                   other.reader.stamp.actor == record.stamp.actor && other.hash == made.hash &&
                   !other.calls && !made.calls;
        };
        const auto earlier = std::find_if(suspects.begin(), suspects.end(), is_earlier);
        constexpr std::size_t most = 1024; // Better to forget the oldest than to grow.
        if (earlier != suspects.end())
            suspects.erase(earlier);
        else if (suspects.size() >= most)
            suspects.erase(suspects.begin());
        suspects.push_back(std::move(made));
        latest = &record;
    }
    return latest;
}

SLUICE_BODY void host_touches(const void* begin, std::size_t bytes, bool reads, bool may_write) {
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
    Block* const block = checker.blocks.find(address);
    if (block == nullptr || !checker.doer_known())
        return;
    const Record touch{address, address + bytes, false, checker.doer_of(Op::host, nullptr),
                       checker.new_work(checker.doer())};
    bool read_in_flight = false;
    const std::size_t more = checker.in_call() ? block->passed.size() : 0;
    for (std::size_t i = 0; i < block->records.size() + more; ++i) {
        const bool is_passed = i >= block->records.size();
        const Record& record = is_passed ? block->passed[i - block->records.size()] : block->records[i];
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
    const std::uint64_t now = generation().load(std::memory_order_relaxed);
    if (read_in_flight && may_write) {
        if (const Record* const part = checker.suspect(*block, touch.begin, touch.end); part != nullptr)
            latest = {part->begin, part->end, now};
    } else if (!read_in_flight && reads) {
        latest = {block->begin, block->end, now};
    }
}

} // namespace sluice::detail::checked
