// Bodies of interface.hpp: streams, events, semaphores and threads.
#pragma once

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

SLUICE_BODY void stream_made(Key key, bool blocking, bool runs_on_caller) {
    Locked checker;
    if (const auto old = checker->streams.find(key); old != checker->streams.end()) {
        checker->drop_actor(checker->actor(old->second)); // one that was given up has gone
        checker->streams.erase(old);
    }
    Actor& stream = checker->stream(key);
    stream.blocking = blocking;
    stream.runs_on_caller = runs_on_caller;
}

SLUICE_BODY bool knows_stream(Key key) {
    Locked checker;
    return checker->streams.contains(key);
}

SLUICE_BODY void stream_found(Key key, bool blocking, bool is_default_stream) {
    Locked checker;
    Actor& stream = checker->stream(key);
    stream.default_stream = is_default_stream;
    stream.blocking = blocking && !is_default_stream;
    if (is_default_stream)
        checker->default_stream = stream.id;
}

SLUICE_BODY void stream_destroyed(Key key) noexcept {
    Locked checker;
    const auto found = checker->streams.find(key);
    if (found == checker->streams.end())
        return;
    checker->drop_actor(checker->actor(found->second));
    checker->streams.erase(found);
}

SLUICE_BODY void name_stream(Key key, const char* stage, int lane, bool thread) {
    Locked checker;
    Actor& stream = checker->stream(key);
    stream.cpu_stage = thread;
    stream.lane = lane >= 0;
    if (!stream.name.empty())
        return;
    stream.name = thread ? "the thread of " : "the stream of ";
    if (lane >= 0)
        stream.name += "lane " + std::to_string(lane) + " of ";
    stream.name += "stage '" + std::string(stage) + "'";
}

SLUICE_BODY void event_destroyed(Key key) noexcept {
    Locked checker;
    checker->events.erase(key);
}

SLUICE_BODY void recorded(Key key, Key on) {
    Locked checker;
    Actor& stream = checker->enqueuing(on);
    EventState& event = checker->events[key];
    event.recorded = true;
    event.capture = stream.capture;
    if (stream.capture != nullptr) {
        event.nodes = stream.last;
        event.model = stream.capture->model;
        return;
    }
    event.stamp = checker->stream(on).runs_on_caller ? checker->doer_stamp() : stream.stamp();
    stream.tick(); // What comes later is not meant.
}

SLUICE_BODY void waited(Key on, Key key) {
    Locked checker;
    Actor& stream = checker->enqueuing(on);
    const auto found = checker->events.find(key);
    if (found == checker->events.end()) {
        return;
    }
    EventState& event = found->second;
    if (event.capture != nullptr) {
        // It joins the capture, if that is still under way.
        if (stream.capture == nullptr) {
            for (const auto& [origin, capture] : checker->captures) {
                if (capture.get() == event.capture && event.model.lock() == capture->model) {
                    stream.capture = capture.get();
                    stream.last.clear();
                }
            }
        }
        if (stream.capture != event.capture)
            return;
        for (const std::size_t node : event.nodes) {
            add_once(stream.last, node);
        }
        return;
    }
    if (stream.capture != nullptr)
        return;
    const bool again = event.waiter == stream.id && event.waiter_of == event.stamp.time;
    event.waiter = stream.id;
    event.waiter_of = event.stamp.time;
    checker->count_wait(event.stamp, stream, again ? 1 : 0, stream.learn(event.stamp));
}

SLUICE_BODY Snapshot snapshot_of_event(Key key) {
    Locked checker;
    const auto found = checker->events.find(key);
    if (found == checker->events.end() || found->second.capture != nullptr)
        return {};
    Stamp stamp = found->second.stamp;
    return {stamp.actor, stamp.time, stamp.release()};
}

SLUICE_BODY Snapshot snapshot_of_stream(Key key) {
    Locked checker;
    Actor& stream = checker->stream(key);
    if (stream.default_stream) {
        for (const auto& [other, id] : checker->streams) {
            if (checker->actor(id).blocking)
                (void)stream.learn(checker->actor(id).stamp());
        }
    }
    Stamp stamp = stream.stamp();
    stream.tick();
    return {stamp.actor, stamp.time, stamp.release()};
}

SLUICE_BODY void host_saw(const Snapshot& snapshot, bool seen) noexcept {
    if (snapshot.time == 0)
        return;
    Locked checker;
    const Stamp stamp = Stamp::adopt(snapshot.actor, snapshot.time, static_cast<Known*>(snapshot.known));
    if (!seen || !checker->doer_known())
        return;
    // What has changed by now, changed too early; from now on it may.
    checker->look_at_suspects(false);
    checker->doer_learns(stamp);
    checker->look_at_suspects(false);
}

SLUICE_BODY bool Checker::waits_unsignalled(const Stamp& stamp) const {
    for (const auto& [key, semaphore] : semaphores) {
        const Time asked = semaphore.gate ? stamp.knows(*semaphore.gate) : 0;
        if (asked > semaphore.gate_begin &&
            (semaphore.count == 0 ||
             semaphore.signals[semaphore.count - 1].value < asked - semaphore.gate_begin))
            return true;
    }
    return false;
}

SLUICE_BODY void Checker::keep_undecided(const Block& block, const Record& first, const Record& second,
                                         bool reads_all) {
    constexpr std::size_t most = 256; // Better to miss a mistake than to grow.
    if (undecided.size() < most)
        undecided.push_back({block.number, first, second, reads_all});
}

SLUICE_BODY void Checker::decide() {
    if (undecided.empty()) [[likely]]
        return;
    std::vector<Undecided> due;
    std::erase_if(undecided, [&](const Undecided& one) {
        if (waits_unsignalled(one.first.stamp) || waits_unsignalled(one.second.stamp) ||
            may_be_awaited(one.first.stamp, one.second.stamp) ||
            may_be_awaited(one.second.stamp, one.first.stamp))
            return false;
        due.push_back(one);
        return true;
    });
    for (const Undecided& one : due) {
        Block* const block = blocks.find(one.second.begin);
        if (block == nullptr || block->number != one.block || !block->alive)
            continue;
        if (one.first.begin == one.first.end)
            look_for_undefined(*block, one.second, one.reads_all, false);
        else if (bool known = true; !before(one.first.stamp, one.second.stamp) &&
                                    !before(one.second.stamp, one.first.stamp) &&
                                    !ordered_by_semaphore(one.first.stamp, one.second.stamp, known) &&
                                    !ordered_by_semaphore(one.second.stamp, one.first.stamp, known))
            race(*block, one.first, one.second, false);
    }
}

SLUICE_BODY void Checker::forget_gate(SemaphoreState& of) {
    if (!of.gate)
        return;
    std::erase_if(undecided, [&](const Undecided& one) {
        return one.first.stamp.knows(*of.gate) > of.gate_begin ||
               one.second.stamp.knows(*of.gate) > of.gate_begin;
    });
    drop_actor(actor(*of.gate));
    of.gate.reset();
}

SLUICE_BODY void semaphore_destroyed(Key key) noexcept {
    Locked checker;
    const auto found = checker->semaphores.find(key);
    if (found == checker->semaphores.end())
        return;
    checker->forget_gate(found->second);
    checker->semaphores.erase(found);
}

inline void signal(Checker& checker, Key key, std::uint32_t value, Actor& by, const Stamp& stamp) {
    SemaphoreState& semaphore = checker.semaphores[key];
    auto& signals = semaphore.signals;
    by.tick();
    for (std::size_t i = 0; i < semaphore.count; ++i) {
        // Told before, by who enqueued the thread that now does it.
        if (signals[i].value >= value) {
            if (signals[i].value == value && stamp.known() != nullptr)
                signals[i].clock.join(*stamp.known());
            return;
        }
    }
    if (semaphore.count == signals.size()) {
        signals[1].clock.join(signals[0].clock);
        SemaphoreState::Signal oldest = std::move(signals[0]);
        for (std::size_t i = 1; i < signals.size(); ++i)
            signals[i - 1] = std::move(signals[i]);
        signals.back() = std::move(oldest);
        signals.back().clock.clear();
    } else {
        signals[semaphore.count++].clock.clear();
    }
    SemaphoreState::Signal& last = signals[semaphore.count - 1];
    last.value = value;
    stamp.tell(last.clock);
    if (!semaphore.gate)
        return;
    for (const auto& [stream, id] : checker.streams) {
        Actor& waits = checker.actor(id);
        const Time asked = waits.clock.of(*semaphore.gate);
        if (asked > semaphore.gate_begin && asked <= semaphore.gate_begin + value)
            (void)waits.learn(last.clock);
    }
    checker.decide();
}

SLUICE_BODY void semaphore_signalled(Key key, std::uint32_t value, Key on) {
    Locked checker;
    Actor& stream = checker->enqueuing(on);
    signal(*checker, key, value, stream, stream.stamp());
}

SLUICE_BODY void semaphore_signalled_by_host(Key key, std::uint32_t value) {
    Locked checker;
    signal(*checker, key, value, checker->doer(), checker->doer_stamp());
}

SLUICE_BODY void semaphore_waited(Key key, std::uint32_t value, Key on) {
    Locked checker;
    Actor& stream = checker->enqueuing(on);
    SemaphoreState& semaphore = checker->semaphores[key];
    for (std::size_t i = 0; i < semaphore.count; ++i) {
        (void)stream.learn(semaphore.signals[i].clock);
        if (semaphore.signals[i].value >= value)
            return;
    }
    if (!semaphore.gate) {
        Actor& gate = checker->make_actor(); // Actors stay where they are.
        semaphore.gate = gate.id;
        semaphore.gate_begin = gate.time();
    }
    stream.clock.raise(*semaphore.gate, semaphore.gate_begin + value);
    checker->actor(*semaphore.gate).clock.raise(*semaphore.gate, semaphore.gate_begin + value);
    stream.changed();
}

/// What the calling thread learns of a semaphore's signals by a look at it: null where it learns nothing.
SLUICE_BODY const SemaphoreState* seen_semaphore(Checker& checker, Key key) {
    const auto found = checker.semaphores.find(key);
    return found == checker.semaphores.end() || !checker.doer_known() ? nullptr : &found->second;
}

SLUICE_BODY void semaphore_seen(Key key, std::uint32_t value) {
    Locked checker;
    const SemaphoreState* const semaphore = seen_semaphore(*checker, key);
    for (std::size_t i = 0;
         semaphore != nullptr && i < semaphore->count && semaphore->signals[i].value <= value; ++i)
        checker->doer_learns(semaphore->signals[i].clock);
}

SLUICE_BODY void semaphore_reached(Key key, std::uint32_t value) {
    Locked checker;
    const SemaphoreState* const semaphore = seen_semaphore(*checker, key);
    for (std::size_t i = 0; semaphore != nullptr && i < semaphore->count; ++i) {
        checker->doer_learns(semaphore->signals[i].clock);
        if (semaphore->signals[i].value >= value)
            return;
    }
}

SLUICE_BODY void semaphore_reset(Key key) {
    Locked checker;
    const auto found = checker->semaphores.find(key);
    if (found == checker->semaphores.end())
        return;
    checker->forget_gate(found->second);
    found->second.count = 0;
}

SLUICE_BODY WorkerScope::WorkerScope() {
    Locked checker;
    const Stamp parent = checker->doer_stamp();
    Actor& worker = checker->make_actor();
    (void)worker.learn(parent);
    worker.name = "a worker thread";
    worker_of_thread() = worker.id;
    checker->workers.push_back(worker.id);
}

SLUICE_BODY WorkerScope::~WorkerScope() {
    Locked checker;
    const ActorId id = *worker_of_thread();
    worker_of_thread().reset();
    std::erase(checker->workers, id);
    checker->drop_actor(checker->actor(id));
}

SLUICE_BODY void handed_over(Key place) noexcept {
    Locked checker;
    checker->doer_stamp().tell(checker->handovers[place]);
    checker->doer().tick();
}

SLUICE_BODY void taken_over(Key place) noexcept {
    Locked checker;
    const auto found = checker->handovers.find(place);
    if (found != checker->handovers.end())
        checker->doer_learns(found->second);
}

SLUICE_BODY void handover_gone(Key place) noexcept {
    Locked checker;
    checker->handovers.erase(place);
}

} // namespace sluice::detail::checked
