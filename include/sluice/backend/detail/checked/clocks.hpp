// Vector clocks: what is known to be over where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice::detail::checked {

using ActorId = std::uint32_t;
using Time = std::uint64_t;

/// A time for each actor; 0 for those that are not in it.
class Clock {
public:
    Time of(ActorId actor) const noexcept { return actor < times_.size() ? times_[actor] : 0; }
    void raise(ActorId actor, Time time) {
        if (actor >= times_.size())
            times_.resize(actor + 1);
        if (times_[actor] < time)
            times_[actor] = time;
    }
    /// The later of both times of each actor. Whether anything has changed.
    bool join(const Clock& other) {
        if (times_.size() < other.times_.size())
            times_.resize(other.times_.size());
        bool changed = false;
        for (std::size_t i = 0; i < other.times_.size(); ++i) {
            if (times_[i] < other.times_[i]) {
                times_[i] = other.times_[i];
                changed = true;
            }
        }
        return changed;
    }
    void clear() noexcept { times_.clear(); }
    void reserve(std::size_t actors) { times_.reserve(actors); }
    std::size_t size() const noexcept { return times_.size(); }

private:
    std::vector<Time> times_;
};

/// A clock that does not change any longer, shared by all that was done while it was an actor's. Kept in a pool: the
/// steady state allocates nothing.
struct Known {
    Clock clock;
    std::size_t references = 0;
};
class KnownPool {
public:
    Known* take() {
        if (free_.empty()) {
            // Many at once, with room for the clocks of most programs.
            constexpr std::size_t more = 256;
            free_.reserve(all_.size() + more);
            for (std::size_t i = 0; i < more; ++i) {
                all_.emplace_back().clock.reserve(64);
                free_.push_back(&all_.back());
            }
        }
        Known* const known = free_.back();
        free_.pop_back();
        known->references = 1;
        return known;
    }
    void drop(Known* known) noexcept {
        if (known != nullptr && --known->references == 0)
            free_.push_back(known);
    }

private:
    std::deque<Known> all_;
    std::vector<Known*> free_;
};
inline KnownPool& known_pool() {
    static KnownPool& pool = *new KnownPool;
    return pool;
}

/// When something was done, and all that was known to be over then. Beside the actor's own time, `known` holds it.
class Stamp {
public:
    Stamp() = default;
    Stamp(ActorId of, Time at, Known* known) noexcept : actor(of), time(at), known_(known) { hold(); }
    Stamp(const Stamp& other) noexcept : actor(other.actor), time(other.time), known_(other.known_) {
        hold();
    }
    Stamp(Stamp&& other) noexcept
        : actor(other.actor), time(other.time), known_(std::exchange(other.known_, nullptr)) {}
    Stamp& operator=(Stamp other) noexcept {
        actor = other.actor;
        time = other.time;
        std::swap(known_, other.known_);
        return *this;
    }
    ~Stamp() { known_pool().drop(known_); }

    Time knows(ActorId other) const noexcept {
        const Time own = other == actor ? time : 0;
        const Time told = known_ == nullptr ? 0 : known_->clock.of(other);
        return own < told ? told : own;
    }
    const Clock* known() const noexcept { return known_ == nullptr ? nullptr : &known_->clock; }
    /// Has `clock` know this, and what was known to be over then.
    void tell(Clock& clock) const {
        if (known_ != nullptr)
            clock.join(known_->clock);
        clock.raise(actor, time);
    }
    /// The same, knowing more.
    Stamp with(const Clock& more) const {
        Known* const all = known_pool().take();
        all->clock.clear();
        if (known_ != nullptr)
            all->clock.join(known_->clock);
        all->clock.join(more);
        return adopt(actor, time, all);
    }
    /// The same at a later time, without having learned anything.
    Stamp at(Time later) const noexcept {
        Stamp stamp = *this;
        stamp.time = later;
        return stamp;
    }
    /// For a pointer's journey through plain types.
    Known* release() noexcept { return std::exchange(known_, nullptr); }
    static Stamp adopt(ActorId of, Time at, Known* known) noexcept {
        Stamp stamp;
        stamp.actor = of;
        stamp.time = at;
        stamp.known_ = known;
        return stamp;
    }

    ActorId actor = 0;
    Time time = 0;

private:
    void hold() const noexcept {
        if (known_ != nullptr)
            ++known_->references;
    }
    Known* known_ = nullptr;
};

struct Capturing;

/// Whose work is done in an order of its own: a stream, the program's threads together, a thread of sluice's, a branch of
/// a graph that a stream runs, or all waits for a semaphore that is not signalled yet.
struct Actor {
    ActorId id = 0;
    std::uint64_t number = 0; ///< In messages.
    std::string name;         ///< In messages, where it has one.
    bool blocking = false;
    bool default_stream = false;
    bool runs_on_caller = false;
    bool lane = false;      ///< One of several of a stage.
    bool cpu_stage = false; ///< A thread that calls a stage, for which no event can be waited for.
    Clock clock;            ///< Its own time included.
    Time last_opaque = 0;   ///< When it was last handed work whose accesses are unknown,
    Time last_call = 0;     ///< and a callable, of which the checker sees at least when it runs.
    Capturing* capture = nullptr;
    std::vector<std::size_t> last;   ///< In a capture: the nodes that its next one comes after.
    std::vector<ActorId> branches;   ///< Of the graphs that it runs.
    std::optional<ActorId> launcher; ///< Of a branch: the stream that runs the graph.
    Clock seen;                      ///< By callables that it has run.

    Time time() const noexcept { return clock.of(id); }
    void tick() { clock.raise(id, time() + 1); }

    Stamp stamp() {
        if (shared_ == nullptr) {
            shared_ = known_pool().take();
            shared_->clock = clock;
        }
        return Stamp(id, time(), shared_);
    }
    /// Whether that was news.
    bool learn(const Stamp& stamp) {
        // Who knows a time of an actor knows what the actor knew then.
        if (stamp.actor == id || clock.of(stamp.actor) >= stamp.time)
            return false;
        stamp.tell(clock);
        changed();
        return true;
    }
    bool learn(const Clock& other) {
        if (!clock.join(other))
            return false;
        changed();
        return true;
    }
    void changed() {
        tick();
        known_pool().drop(std::exchange(shared_, nullptr));
    }

private:
    Known* shared_ = nullptr;
};

} // namespace sluice::detail::checked
