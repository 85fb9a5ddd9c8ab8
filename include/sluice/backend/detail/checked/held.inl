// Bodies of interface.hpp: batches that pipelines hold back.
#pragma once

#include <map>

#include <sluice/backend/detail/checked/memory.inl>
#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

// In messages: these stay.
inline const char* held_words(std::size_t steps) {
    static auto& all = *new std::map<std::size_t, std::string>;
    std::string& words = all[steps];
    if (words.empty())
        words =
            steps > 1 ? "held for a graph of " + std::to_string(steps) + " steps" : "held for the next step";
    return words.c_str();
}
inline bool is_held(const Doer& doer) noexcept { return doer.op == Op::batch && doer.what != nullptr; }

// Where a batch's bytes are known to be; null where they are the device's or have been freed.
inline Block* block_of(Checker& checker, const BatchRange& range) {
    if (range.bytes == 0)
        return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    if (range.ordinary)
        return &checker.blocks.at(begin, begin + range.bytes);
    Block* const block = checker.blocks.find(begin);
    return block == nullptr || !block->alive || block->device ? nullptr : block;
}

inline std::uint64_t hash_of(const Range& range) noexcept {
    Record record;
    record.begin = reinterpret_cast<std::uintptr_t>(range.begin);
    record.end = record.begin + range.bytes;
    return hash_of(record);
}

SLUICE_BODY void NamedWrites::add(const Range& range) {
    {
        Locked checker;
        const Block* const block = checker->blocks.find(reinterpret_cast<std::uintptr_t>(range.begin));
        if (range.bytes == 0 || (!range.on_host && (block == nullptr || !block->alive || block->device)))
            return;
    }
    all_.push_back({range, hash_of(range)});
    all_.back().range.writes = true;
}

SLUICE_BODY NamedWrites::~NamedWrites() {
    List<const Named*> written;
    for (const Named& named : all_) {
        if (hash_of(named.range) != named.hash)
            written.push_back(&named);
    }
    if (written.empty())
        return;
    Locked checker;
    for (const Named* const named : written)
        checker->access(&named->range, 1, checker->new_work(checker->doer()),
                        checker->doer_of(Op::fill_batch, nullptr), false);
}

SLUICE_BODY void watch(const BatchRange* ranges, std::size_t count) {
    Locked checker;
    if (!checker->doer_known())
        return;
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<std::uintptr_t>(ranges[i].begin);
        if (Block* const block = block_of(*checker, ranges[i]); block != nullptr && ranges[i].constant)
            (void)checker->suspect(*block, begin, begin + ranges[i].bytes);
    }
}

SLUICE_BODY void HeldReads::hold(const BatchRange* ranges, std::size_t count, std::uint32_t stage,
                                 std::uint64_t batch, std::size_t steps, Key after) {
    Locked checker;
    if (!checker->doer_known())
        return;
    // No clock is ever joined with it, so that any write to the memory meanwhile is a race.
    if (actor_ == Checker::host)
        actor_ = checker->make_actor().id;
    Actor& held = checker->actor(actor_);
    (void)held.learn(checker->doer_stamp());
    (void)held.learn(checker->stream(after).stamp());
    const Stamp stamp = checker->new_work(held);
    const Doer doer{.stage = stage, .batch = batch, .op = Op::batch, .what = held_words(steps)};
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<std::uintptr_t>(ranges[i].begin);
        Block* const block = block_of(*checker, ranges[i]);
        if (block == nullptr)
            continue;
        const std::uintptr_t wanted = begin + ranges[i].bytes;
        const std::uintptr_t end = wanted < block->end ? wanted : block->end;
        block->records.push_back({begin, end, false, doer, stamp});
        block->records.back().doer.output = ranges[i].output;
        places_.push_back(begin);
        if (ranges[i].constant)
            (void)checker->suspect(*block, begin, end);
    }
}

SLUICE_BODY void HeldReads::let_go(bool may_throw) {
    if (places_.empty())
        return;
    Locked checker;
    checker->look_at_suspects(false);
    const auto is_own = [&](const Record& record) { return record.stamp.actor == actor_; };
    std::erase_if(checker->suspects, [&](const Suspect& suspect) { return is_own(suspect.reader); });
    for (const std::uintptr_t place : places_) {
        if (Block* const block = checker->blocks.find(place))
            std::erase_if(block->records, is_own);
    }
    places_.clear();
    if (may_throw)
        checker->throw_pending();
}

SLUICE_BODY HeldReads::~HeldReads() {
    if (actor_ == Checker::host)
        return;
    let_go(false);
    Locked checker;
    checker->drop_actor(checker->actor(actor_));
}

} // namespace sluice::detail::checked
