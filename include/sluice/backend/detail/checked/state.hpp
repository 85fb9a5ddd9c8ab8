// All that the checker knows.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/backend/detail/checked/graph_model.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/findings.hpp>

namespace sluice::detail::checked {

/// All threads of the program's own, in messages.
inline constexpr const char* host_name = "the host";

/// What a semaphore's signals stand for.
struct SemaphoreState {
    struct Signal {
        std::uint32_t value = 0;
        Clock clock; ///< Of all signals up to this one.
    };
    std::array<Signal, 8> signals; ///< The first `count`, in their order.
    std::size_t count = 0;
    std::optional<ActorId>
        gate;            ///< Whose times are the values that streams wait for and that are not signalled yet,
    Time gate_begin = 0; ///< counted from this one.
};

struct EventState {
    Stamp stamp;
    bool recorded = false;
    const Capturing* capture = nullptr; ///< Of a record that was captured.
    std::vector<std::size_t> nodes;     ///< What it stands for there.
    std::weak_ptr<GraphModel> model;    ///< Lives as long as the capture, or its graph.
    ActorId waiter = 0;                 ///< Who waited last, and for which time of the record's.
    Time waiter_of = 0;
};

/// What a slot or a batch of a source owns.
struct ObjectState {
    struct Part {
        Range range;
        std::uint64_t block;
    };
    std::vector<Part> memory;
};

/// What work may still read of pinned memory that the host has got at: it must be the same at the next comparison.
struct Suspect {
    std::uint64_t hash = 0;
    Record reader;
    Record touch;
    /// Where callables may change it by right: how many had begun, all of which were over.
    std::optional<std::uint64_t> calls;
};

/// What a callable has handed to another stream, from the first on: over before the callable's end where it waits for it.
struct Aside {
    ActorId actor = 0;
    Time first = 0;
};

/// A callable that has been handed over and has not ended.
struct PendingCall {
    Stamp stamp;             ///< What it comes after.
    std::uint32_t stage = 0; ///< Of the stage that enqueued it: its label; 0: none.
    std::uint64_t batch = 0;
    Token captured = 0; ///< Of one that a graph runs and that has not begun: what its node names it.
    std::vector<Aside> asides = {};
};

/// Two accesses, or one of undefined memory, of which is not known yet whether something orders them: a stream waits for a semaphore
/// that is not signalled yet.
struct Undecided {
    std::uint64_t block = 0;
    Record first; ///< Without bytes: none.
    Record second;
    bool reads_all = false;
};

/// Memory that was freed and is still there.
struct KeptMemory {
    void* memory = nullptr;
    std::size_t bytes = 0;
    void (*give_back)(void*) noexcept = nullptr;
};

/// A wait, as far as it can be told from others, and how often it was of use.
struct WaitCount {
    std::uint32_t stage = 0;
    std::size_t place =
        0; ///< Which one of a stage's callable; elsewhere whether the same had been waited for before.
    ActorId from = 0, to = 0;
    std::size_t waits = 0;
    std::size_t useful = 0;
};

/// How many bits of a token are the time of its callable; those above are the stream's actor.
inline constexpr int token_bits = 44;
inline constexpr Token token_time = (Token{1} << token_bits) - 1;

/// One for the program. All functions expect the mutex to be held.
class Checker {
public:
    /// Never destroyed: buffers and streams of static storage may go after anything else.
    static Checker& instance() {
        static Checker& checker = *new Checker;
        return checker;
    }
    std::mutex mutex;

    // Actors
    Actor& actor(ActorId id) { return actors_[id]; }
    Actor& make_actor();
    void drop_actor(Actor& gone);
    /// That of a stream; made where it is not known.
    Actor& stream(Key key);
    /// The same, which knows now what the enqueuing thread does.
    Actor& enqueuing(Key key);
    /// The calling thread: the program's, a worker, or the stream whose callable runs.
    Actor& doer();
    Stamp doer_stamp();
    /// The callable that the calling thread runs, where that is known.
    PendingCall* current_call();
    /// The callable of this thread has handed work to another stream.
    void note_aside(const Stamp& stamp);
    /// Whether a callable that runs may yet wait for `a`, and `b` comes after that callable.
    bool may_be_awaited(const Stamp& a, const Stamp& b) const;
    /// What `ended` has handed to other streams and waited for was over at its end, as if it had done it itself.
    void take_asides(const PendingCall& ended, const Clock& seen);
    /// The calling thread has seen that this is over.
    void doer_learns(const Stamp& stamp);
    void doer_learns(const Clock& clock);
    bool doer_known() const noexcept { return TokenScope::current() != TokenScope::unknown; }
    /// Whether a stream's callable runs on this thread, of which it is known when it was handed over.
    bool in_call() const noexcept { return TokenScope::current() != 0 && doer_known(); }
    void learn(Actor& actor, const Stamp& stamp) { (void)actor.learn(stamp); }
    static constexpr ActorId host = 0; ///< All threads of the program's own.

    // Memory
    /// Whether `a` is over before `b` begins.
    bool before(const Stamp& a, const Stamp& b);
    /// The same by a semaphore that was signalled after `b` was enqueued; `known` becomes false where it may yet be.
    bool ordered_by_semaphore(const Stamp& a, const Stamp& b, bool& known);
    /// Whether what has this stamp comes after a signal that was not given yet.
    bool waits_unsignalled(const Stamp& stamp) const;
    void keep_undecided(const Block& block, const Record& first, const Record& second, bool reads_all);
    /// Looks again at what was not decided, as a semaphore has been signalled.
    void decide();
    void forget_gate(SemaphoreState& of);
    /// Throws, or notes, what is wrong with the accesses; then they are known.
    void access(const Range* ranges, std::size_t count, const Stamp& stamp, const Doer& doer,
                bool may_throw = true);
    void access(const NodeAccess* accesses, std::size_t count, const Stamp& stamp,
                std::uint64_t batch_offset);
    void throw_pending();
    void throw_later(const Error& error);
    Doer doer_of(Op op, const char* what);
    /// What a stream is handed now.
    Stamp new_work(Actor& on);
    void host_access(const Range& range, const Doer& doer, bool may_throw);
    /// The stream is handed work whose accesses are unknown.
    void note_opaque(Actor& on) {
        ++opaque;
        on.tick();
        on.last_opaque = on.time();
    }
    /// The same of a callable.
    void note_call(Actor& on) {
        ++opaque;
        on.tick();
        on.last_call = on.time();
    }
    /// Whether the actor has work, all of which was handed over up to `last`, that is neither known to be over at `now` nor at
    /// the same time as the access, so that it may write there by right.
    bool may_write_beside(Actor& actor, Time last, const Record& access, const Stamp& now) const;
    /// The host gets at these bytes and may change them. What of the block is the same from now on; null where nothing is.
    const Record* suspect(Block& block, std::uintptr_t begin, std::uintptr_t end);
    /// Notes what has changed. `forget`: what is handed over now may change it rightly.
    void look_at_suspects(bool forget);
    /// What happens there from now on is suspected of nothing.
    void clear(std::uintptr_t begin, std::uintptr_t end) {
        std::erase_if(suspects, [&](const Suspect& suspect) {
            return suspect.reader.begin < end && begin < suspect.reader.end;
        });
    }

    // Findings
    /// `kind`: what tells it from others beside its ends; empty: the buffer.
    void note(sluice::checked::Finding finding, bool may_throw, std::string kind = {});
    void race(const Block& block, const Record& first, const Record& second, bool may_throw);
    sluice::checked::Access access_of(const Record& record);
    sluice::checked::Finding finding_of(sluice::checked::Mistake mistake, const Block& block,
                                        const Record& access);
    std::string stream_name(ActorId id);
    std::string buffer_name(const Block& block, std::uintptr_t begin, std::uintptr_t end) const;
    std::string sharing_maker(const Block& block, const Record& first, const Record& second) const;
    void count_wait(const Stamp& from, Actor& to, std::size_t again, bool useful);
    std::vector<sluice::checked::Finding> all_findings();

    // Graphs
    void append(Actor& stream, NodeModel node);
    NodeModel& add_node(Key graph, Key node, KeyList after);
    void name_blocks(NodeModel& node);
    void launch(GraphExecModel& executable, Actor& stream);
    /// The launch will run a callable.
    void await_call(const Program::Step& step, const Stamp& stamp, std::uint64_t offset);

    // Pipelines
    std::uint32_t label_of(const std::string& name);
    void append_parts(List<Range>& ranges, const void* object, bool writes);

    std::unordered_map<Key, ActorId> streams;
    std::unordered_map<Key, EventState> events;
    std::unordered_map<Key, SemaphoreState> semaphores;
    std::unordered_map<Key, std::shared_ptr<GraphModel>> graphs;
    std::unordered_map<Key, GraphExecModel> executables;
    std::unordered_map<Key, std::unique_ptr<Capturing>> captures; // By the stream that each began on.
    std::unordered_map<const void*, ObjectState> objects;
    std::unordered_map<Key, Clock> handovers;
    Blocks blocks;
    std::optional<ActorId> default_stream;
    std::uint64_t opaque = 0; ///< Pieces of work so far whose writes are unknown.
    std::vector<std::string> labels{std::string()};
    std::vector<sluice::checked::Finding> mistakes;
    std::vector<std::string> kinds; ///< Of the mistakes.
    std::optional<Error> pending;
    std::vector<WaitCount> waits;
    std::vector<PendingCall> calls;
    Clock released; ///< What those were after that have ended and may have shared memory.
    std::vector<Suspect> suspects;
    std::vector<Undecided> undecided;
    std::deque<KeptMemory> kept;
    std::size_t kept_bytes = 0;
    List<Range> scratch; ///< Kept for its memory.
    bool throws = true;
    std::vector<ActorId> workers;

private:
    Checker() {
        Actor& threads = make_actor();
        threads.name = host_name;
    }
    void look_at(Block& block, const Record& access, bool may_throw);
    void look_for_undefined(Block& block, const Record& access, bool reads_all, bool may_throw);
    void insert(Block& block, const Record& access);
    bool may_meet_call(const Record& old, const Record* instead);
    void forget_old(Block& block);

    std::deque<Actor> actors_;
    std::deque<ActorId> free_actors_;
    std::uint64_t last_stream_ = 0;
    std::vector<Time> branch_begins_;
};

/// What the calling thread is, where it is one of sluice's.
inline std::optional<ActorId>& worker_of_thread() noexcept {
    thread_local std::optional<ActorId> worker;
    return worker;
}
inline std::uint64_t& graph_batch_of_thread() noexcept {
    thread_local std::uint64_t batch = 0;
    return batch;
}

/// Changes with each operation that the checker sees.
inline std::atomic<std::uint64_t>& generation() noexcept {
    static std::atomic<std::uint64_t> number{1};
    return number;
}

/// The checker, locked.
class Locked {
public:
    Locked() : checker_(Checker::instance()), lock_(checker_.mutex) {
        generation().fetch_add(1, std::memory_order_relaxed);
    }
    Locked& operator=(Locked&&) = delete;
    Checker* operator->() const noexcept { return &checker_; }
    Checker& operator*() const noexcept { return checker_; }

private:
    Checker& checker_;
    std::lock_guard<std::mutex> lock_;
    BookkeepingScope scope_;
};

} // namespace sluice::detail::checked
