// Bodies of state.hpp: actors and accesses.
#pragma once

#include <algorithm>

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

SLUICE_BODY Actor& Checker::make_actor() {
    // Not at once: the work of a stream that was destroyed may still be under way.
    constexpr std::size_t rest = 64;
    if (free_actors_.size() > rest) {
        Actor& again = actors_[free_actors_.front()];
        free_actors_.pop_front();
        const ActorId id = again.id;
        const Time time = again.time();
        again.clock.clear();
        again.clock.raise(id, time + 1);
        again.changed();
        again.name.clear();
        again.blocking = again.default_stream = again.runs_on_caller = again.lane = again.cpu_stage = false;
        again.capture = nullptr;
        again.last_opaque = again.last_call = 0;
        again.last.clear();
        again.launcher.reset();
        again.branches.clear();
        again.seen.clear();
        again.number = 0;
        return again;
    }
    Actor& made = actors_.emplace_back();
    made.id = static_cast<ActorId>(actors_.size() - 1);
    made.clock.reserve(64);
    made.clock.raise(made.id, 1);
    return made;
}

SLUICE_BODY void Checker::drop_actor(Actor& gone) {
    for (const ActorId branch : gone.branches)
        free_actors_.push_back(branch);
    gone.branches.clear();
    gone.capture = nullptr;
    free_actors_.push_back(gone.id);
}

SLUICE_BODY Actor& Checker::stream(Key key) {
    const auto found = streams.find(key);
    if (found != streams.end())
        return actors_[found->second];
    Actor& made = make_actor();
    made.number = ++last_stream_;
    streams.emplace(key, made.id);
    return made;
}

SLUICE_BODY Actor& Checker::doer() {
    if (in_call())
        return actors_[static_cast<ActorId>(TokenScope::current() >> token_bits)];
    return actors_[worker_of_thread().value_or(host)];
}

SLUICE_BODY PendingCall* Checker::current_call() {
    if (!in_call())
        return nullptr;
    const Token token = TokenScope::current();
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const PendingCall& call) {
        return call.stamp.actor == token >> token_bits && call.stamp.time == (token & token_time);
    });
    return found == calls.end() ? nullptr : &*found;
}

// Of a callable: what its stream was handed later is not over, and what that waits for is not known.
SLUICE_BODY Stamp Checker::doer_stamp() {
    Actor& by = doer();
    if (!in_call())
        return by.stamp();
    const PendingCall* const call = current_call();
    Stamp then = call == nullptr ? by.stamp().at(TokenScope::current() & token_time) : call->stamp;
    return by.seen.size() == 0 ? then : then.with(by.seen);
}

SLUICE_BODY void Checker::doer_learns(const Stamp& stamp) {
    Actor& learner = doer();
    (void)learner.learn(stamp);
    if (in_call())
        stamp.tell(learner.seen);
}

SLUICE_BODY void Checker::doer_learns(const Clock& clock) {
    Actor& learner = doer();
    (void)learner.learn(clock);
    if (in_call())
        learner.seen.join(clock);
}

SLUICE_BODY Actor& Checker::enqueuing(Key key) {
    Actor& on = stream(key);
    if (on.runs_on_caller)
        return doer();
    if (on.default_stream) [[unlikely]] {
        const StageScope* const stage = StageScope::current();
        if (stage != nullptr && stage->on != key) {
            const Record record{0, 0, false, doer_of(Op::declared, "work"), on.stamp()};
            note({.mistake = sluice::checked::Mistake::default_stream, .second = access_of(record)}, true);
        }
    }
    if (doer_known())
        (void)on.learn(doer_stamp());
    if (default_stream) [[unlikely]] {
        if (on.default_stream) {
            for (Actor& other : actors_) {
                if (other.blocking && &other != &on)
                    (void)on.learn(other.stamp());
            }
        } else if (on.blocking) {
            (void)on.learn(actors_[*default_stream].stamp());
        }
    }
    return on;
}

SLUICE_BODY bool Checker::ordered_by_semaphore(const Stamp& a, const Stamp& b, bool& known) {
    for (const auto& [key, semaphore] : semaphores) {
        if (!semaphore.gate)
            continue;
        const Time asked = b.knows(*semaphore.gate);
        if (asked <= semaphore.gate_begin)
            continue;
        const Time value = asked - semaphore.gate_begin;
        bool signalled = false;
        for (std::size_t i = 0; i < semaphore.count && !signalled; ++i) {
            if (semaphore.signals[i].value < value)
                continue;
            signalled = true;
            if (semaphore.signals[i].clock.of(a.actor) >= a.time)
                return true;
        }
        known = known && signalled;
    }
    return false;
}

SLUICE_BODY bool Checker::before(const Stamp& a, const Stamp& b) { return b.knows(a.actor) >= a.time; }

SLUICE_BODY Doer Checker::doer_of(Op op, const char* what) {
    Doer doer{.op = op, .what = what};
    if (const StageScope* const stage = StageScope::current(); stage != nullptr) {
        doer.stage = stage->label;
        doer.batch = stage->number;
    } else if (const PendingCall* const call = current_call(); call != nullptr) {
        doer.stage = call->stage;
        doer.batch = call->batch;
    }
    return doer;
}

SLUICE_BODY Stamp Checker::new_work(Actor& on) {
    if (in_call() && on.id == static_cast<ActorId>(TokenScope::current() >> token_bits))
        return doer_stamp();
    on.tick(); // Who knows what came before does not know this.
    return on.stamp();
}

SLUICE_BODY void Checker::throw_pending() {
    if (!pending || QuietScope::active()) [[likely]]
        return;
    const Error error = *pending;
    pending.reset();
    throw error;
}

// Whether a callable that has not ended may race with `old` and, where that is there, not with `instead`.
SLUICE_BODY bool Checker::may_meet_call(const Record& old, const Record* instead) {
    return std::any_of(calls.begin(), calls.end(), [&](const PendingCall& call) {
        return !before(call.stamp, old.stamp) && !before(old.stamp, call.stamp) &&
               (instead == nullptr || before(call.stamp, instead->stamp));
    });
}

// A later access that comes after this one comes after those that it takes the place of.
SLUICE_BODY void Checker::insert(Block& block, const Record& access) {
    auto& records = block.records;
    if (!block.passed.empty()) [[unlikely]]
        std::erase_if(block.passed, [&](const Record& old) { return !may_meet_call(old, nullptr); });
    for (std::size_t i = 0; i < records.size();) {
        Record& old = records[i];
        const bool overlaps = old.begin < access.end && access.begin < old.end;
        const bool replaced = overlaps && (access.writes || !old.writes) &&
                              access.stamp.knows(old.stamp.actor) >= old.stamp.time;
        if (replaced && !calls.empty() && may_meet_call(old, &access)) [[unlikely]]
            block.passed.push_back(old);
        if (!replaced) {
            ++i;
        } else if (access.begin <= old.begin && old.end <= access.end) {
            if (i + 1 < records.size())
                old = std::move(records.back());
            records.pop_back();
        } else {
            if (access.begin <= old.begin)
                old.begin = access.end;
            else if (old.end <= access.end)
                old.end = access.begin;
            ++i;
        }
    }
    records.push_back(access);
}

// What all threads know to be over, nothing can come before.
SLUICE_BODY void Checker::forget_old(Block& block) {
    const auto known_by_all = [&](const Record& record) {
        bool known = actors_[host].clock.of(record.stamp.actor) >= record.stamp.time;
        for (const ActorId worker : workers)
            known = known && actors_[worker].clock.of(record.stamp.actor) >= record.stamp.time;
        return known;
    };
    std::erase_if(block.records, known_by_all);
    // Slivers of accesses of many sizes: better to miss a race than to grow.
    if (block.records.size() > 192)
        block.records.erase(block.records.begin(), block.records.begin() + 96);
}

// Whether one is a call's slot or batch, and the other what the same call has said itself: of a side stream, which a later
// stage may yet join.
inline bool of_one_call(const Doer& a, const Doer& b) noexcept {
    const auto is_handed = [](const Doer& doer) { return doer.op == Op::slot || doer.op == Op::batch; };
    return a.stage != 0 && a.stage == b.stage && a.batch == b.batch && (is_handed(a) || is_handed(b));
}

// Whether a stage writes what a batch may name so that it does: that another one, which takes the batch, reads it is not said.
inline bool is_output(const Record& read, const Record& write) noexcept {
    return read.doer.op == Op::batch && read.doer.output && write.doer.stage != 0;
}

SLUICE_BODY void Checker::look_at(Block& block, const Record& access, bool may_throw) {
    std::vector<Record> met; // `race` may throw, and the block change.
    const auto meet = [&](const Record& old) {
        if (!(old.begin < access.end && access.begin < old.end) || !(old.writes || access.writes))
            return;
        if (before(old.stamp, access.stamp) || before(access.stamp, old.stamp) ||
            of_one_call(old.doer, access.doer) || is_output(old, access) || is_output(access, old))
            return;
        bool known = !may_be_awaited(old.stamp, access.stamp) && !may_be_awaited(access.stamp, old.stamp);
        if (ordered_by_semaphore(old.stamp, access.stamp, known) ||
            ordered_by_semaphore(access.stamp, old.stamp, known))
            return;
        if (known)
            met.push_back(old);
        else
            keep_undecided(block, old, access, false);
    };
    for (const Record& old : block.records)
        meet(old);
    for (std::size_t i = 0; in_call() && i < block.passed.size(); ++i)
        meet(block.passed[i]);
    for (std::size_t i = 0; i < met.size(); ++i) {
        // An edge from the last of them orders those before it as well; one from those would not be enough. Of those of
        // one piece of work the first stands for all.
        bool is_last = true;
        for (std::size_t j = 0; j < met.size(); ++j) {
            if (j != i && before(met[i].stamp, met[j].stamp))
                is_last = is_last && i < j && before(met[j].stamp, met[i].stamp);
        }
        if (is_last)
            race(block, met[i], access, may_throw);
    }
}

SLUICE_BODY void Checker::look_for_undefined(Block& block, const Record& access, bool reads_all,
                                             bool may_throw) {
    if (!block.owned || block.opaque != opaque || !block.is_undefined(access.begin, access.end, reads_all))
        return;
    if (waits_unsignalled(access.stamp))
        return keep_undecided(block, {}, access, reads_all);
    note(finding_of(sluice::checked::Mistake::uninitialized_read, block, access), may_throw);
}

SLUICE_BODY void Checker::access(const Range* ranges, std::size_t count, const Stamp& stamp, const Doer& doer,
                                 bool may_throw) {
    using sluice::checked::Mistake;
    if (in_call())
        note_aside(stamp);
    // First all of them are looked at: what is thrown is not done.
    for (const bool insert_now : {false, true}) {
        for (std::size_t i = 0; i < count; ++i) {
            auto begin = reinterpret_cast<std::uintptr_t>(ranges[i].begin);
            const std::uintptr_t end = begin + ranges[i].bytes;
            while (begin < end) {
                // What is freed the host's own allocator may use again.
                if (ranges[i].on_host)
                    blocks.forget_reused(begin);
                Block& block = blocks.at(begin, end);
                const Record record{begin, end < block.end ? end : block.end, ranges[i].writes, doer, stamp};
                begin = record.end;
                if (!insert_now) {
                    if (!block.alive) {
                        Record gone{block.begin, block.end, true, block.freed, Stamp{}};
                        sluice::checked::Finding finding = finding_of(Mistake::use_after_free, block, record);
                        finding.first = access_of(gone);
                        note(std::move(finding), may_throw);
                        continue;
                    }
                    look_at(block, record, may_throw);
                    // Slots and batches need not be read as a whole, and of rows there may be none.
                    const bool reads_all =
                        doer.op == Op::copy || (doer.op == Op::declared && !ranges[i].partly);
                    if (!record.writes && doer.op != Op::rows && !block.unwritten.empty())
                        look_for_undefined(block, record, reads_all, may_throw);
                } else if (block.alive) {
                    if (record.writes && doer.op != Op::allocation && !block.unwritten.empty())
                        block.write(record.begin, record.end);
                    if (record.writes && !suspects.empty()) [[unlikely]]
                        clear(record.begin, record.end);
                    insert(block, record);
                    if (block.records.size() > 64) [[unlikely]]
                        forget_old(block);
                }
            }
        }
    }
    if (blocks.wants_pruning()) [[unlikely]] {
        blocks.prune([&](const Record& record) {
            return actors_[host].clock.of(record.stamp.actor) >= record.stamp.time;
        });
    }
}

SLUICE_BODY void Checker::access(const NodeAccess* accesses, std::size_t count, const Stamp& stamp,
                                 std::uint64_t batch_offset) {
    for (std::size_t i = 0; i < count; ++i) {
        Doer doer = accesses[i].doer;
        doer.batch += batch_offset;
        if (const StageScope* const stage = StageScope::current(); stage != nullptr) {
            doer.stage = stage->label;
            doer.batch = stage->number;
        }
        Range range = accesses[i].range;
        if (accesses[i].block != 0) {
            const Block* const block = blocks.find(reinterpret_cast<std::uintptr_t>(range.begin));
            if (block == nullptr || block->number != accesses[i].block) {
                Block gone;
                gone.begin = reinterpret_cast<std::uintptr_t>(range.begin);
                gone.end = gone.begin + range.bytes;
                const Record record{gone.begin, gone.end, range.writes, doer, stamp};
                note(finding_of(sluice::checked::Mistake::use_after_free, gone, record), true);
                continue;
            }
        }
        access(&range, 1, stamp, doer);
    }
}

} // namespace sluice::detail::checked
