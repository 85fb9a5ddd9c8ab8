/// \file
/// Any callable as a graph, captured when a key comes again and replayed from then on.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice {

/// Called with each reason why work runs eagerly that could be a graph, once: not again for further keys.
using RefusalHandler = void (*)(const char* reason);

/// Writes the reason to the standard error stream.
void print_refusal(const char* reason);

/// How a `GraphCapture` works.
struct GraphOptions {
    /// How many executables are kept, 1 to 2^20. When there are as many, a key that comes again replaces the least recently
    /// used one, if that has not been used since the key came before. So of more keys that come in turns, some keep their
    /// graphs and the others run eagerly.
    std::size_t capacity = 16;
    /// How often the work of a new key runs eagerly, on the stream that it will be captured on, before the next run
    /// captures it: libraries load kernels and make workspaces in their first calls, and a key that never comes again is
    /// not captured at all. 0: the first run captures.
    int warmup = 1;
    /// See `capture`.
    CaptureOptions capture = {};
    /// How many graphs may be made of which it is not known that they pay: for a key that comes for the first time (without
    /// a warm-up), and in the place of another key's. Every 64 runs allow one more. A key that comes again while there is
    /// room is captured in any case. So many new keys in a row are also reported as a refusal. 0: no limit.
    std::size_t give_up_after = 64;
    /// Hands each new executable to the device at once, instead of with its first replay.
    bool upload = true;
    /// For looking for a fault, slow: before each replay the work is captured again and compared with what will be
    /// replayed, down to the arguments of kernels, and the device memory that it names is looked up. Where the work
    /// has changed under its key, or memory has been freed, `run` throws. Empty: on a checked backend. Pipelines that look for
    /// races do so in any case, and their error names the stage and the batch.
    std::optional<bool> check = {};
    /// So many first replays of each key capture the work again and compare it likewise, but replay what they have captured
    /// where it has changed: nothing is lost, and `GraphCounters::changes` tells. What changes later goes unnoticed.
    int comparisons = 0;
    /// Called on the thread that runs the work. Null: not called.
    RefusalHandler on_refusal = &print_refusal;
};

namespace detail {
/// Throws `Error` for what is out of range.
void require_options(const GraphOptions& options);
} // namespace detail

/// Runs that launched no graph, by reason. In a pipeline each is what one launch would have been: a step or several, or a
/// stage's work on a batch where each stage has graphs of its own.
struct EagerRuns {
    std::uint64_t first_runs = 0; ///< a key's first ones, before it is captured; some keys never come again
    std::uint64_t no_place =
        0; ///< of keys that came again, while as many others as there are places are in use
    std::uint64_t refused = 0;       ///< of keys whose capture was refused, or broke
    std::uint64_t changed_slots = 0; ///< of work that changes its slots on the host, which a replay would not
    std::uint64_t untold = 0;        ///< of batches that cannot be told apart
    std::uint64_t ends = 0; ///< steps that not all stages take part in: the first, and those of a `flush`
    std::uint64_t opted_out =
        0; ///< of stages that are not to be captured: `StageOptions::graphed`, CPU stages
    std::uint64_t blocking = 0; ///< under `PipelineOptions::launch_blocking`

    /// All of them.
    std::uint64_t total() const noexcept {
        return first_runs + no_place + refused + changed_slots + untold + ends + opted_out + blocking;
    }
    /// Adds each number.
    EagerRuns& operator+=(const EagerRuns& other) noexcept;
};

/// What a `GraphCapture` has done so far.
struct GraphCounters {
    std::uint64_t captures = 0;       ///< graphs recorded
    std::uint64_t instantiations = 0; ///< executables made
    std::uint64_t updates = 0;        ///< executables changed in place instead
    std::uint64_t replays = 0;        ///< executables launched, the first launch of each included
    std::uint64_t evictions = 0;      ///< graphs that made way for another key's
    std::uint64_t refusals = 0;       ///< captures that were refused, or broke
    std::uint64_t comparisons = 0;    ///< captures made to see whether the work has changed under its key,
    std::uint64_t changes = 0;        ///< and those that found that it has
    EagerRuns eager;                  ///< runs that were not replays

    /// Adds each number.
    GraphCounters& operator+=(const GraphCounters& other) noexcept;
};

/// The key of work that is always the same.
struct NoKey {
    /// Always true.
    friend bool operator==(NoKey, NoKey) noexcept { return true; }
};

/// One run of a `GraphCapture`. May outlive it.
class Replay {
public:
    /// Of no run: not replayed, and current for ever.
    Replay() = default;
    /// Run number `*runs`, which later runs of the key count up.
    Replay(detail::Shared<const std::uint64_t> runs, bool replayed)
        : runs_(std::move(runs)), run_(*runs_), replayed_(replayed) {}

    /// Whether an executable was launched; otherwise the work ran eagerly.
    bool replayed() const noexcept { return replayed_; }
    /// Whether the outputs are still this run's: no later run of the same key has overwritten them. Also false once another
    /// keys have made this one forgotten or `clear` was called, since later runs are not counted here then.
    bool is_current() const noexcept { return runs_ == nullptr || *runs_ == run_; }
    /// Throws `Error` if they are not.
    void require_current() const;

    /// What a count of runs becomes when its key leaves the cache.
    static constexpr std::uint64_t forgotten = ~std::uint64_t{0};

private:
    detail::Shared<const std::uint64_t> runs_;
    std::uint64_t run_ = 0;
    bool replayed_ = false;
};

/// Runs work as a graph: eagerly when a key comes for the first time, then by one launch. The second run captures the
/// work and launches what it has captured. Each run has the effect of the work exactly once.
///
/// A key stands for everything that the work reads on the host: shapes, pointers, scalars. Work that would enqueue
/// something else needs another key; what changes on the device, in buffers and `DeviceScalar`s, does not. Keys are of
/// any type with `==` that can be copied.
///
/// A capture that is refused (see `capture` for the reasons) costs no more than the attempt: the key's work continues to
/// run eagerly, the reason is reported once, and `counters().refusals` counts it. A run calls the work at most once, but for
/// an attempt to capture it that is made again (see `capture`) or is refused: then the work is called again, and does again what
/// it does on the host, such as counting. What the work itself throws, `run` throws, and the next run of the key tries again.
/// `run` also throws an error that earlier calls left behind, without running the work, when it is about to run a new key or to
/// capture. Work called within another capture on the same thread becomes part of that one.
///
/// Work is captured on a stream of the `GraphCapture`'s own, with the priority and the share of the caller's stream. What other threads
/// enqueue on the caller's stream during the capture runs as usual. So the work must use the stream that it is given, and
/// streams that it forks from that one. Launches go to the caller's stream.
///
/// Executables are kept in a cache of fixed size. A new graph goes into the executable of the key that it replaces where
/// the driver can update it, and into a new one otherwise. Keys without a graph are remembered, as many as the capacity again
/// and at least 16, so that it is known when they come again. Steady state creates and allocates nothing.
///
/// One thread at a time. Belongs to the device that was current when it was made. Buffers that the work uses must
/// outlive the replays.
///
/// \code
/// sluice::GraphCapture<int> graphs;
/// graphs.run(stream, batch_size, [&](sluice::StreamRef s) { model.forward(s, input, output); });
/// \endcode
template <class Key = NoKey, Backend B = DefaultBackend>
requires std::equality_comparable<Key> && GraphBackend<B>
class GraphCapture {
public:
    using backend = B;             ///< What runs the graphs.
    using Ref = BasicStreamRef<B>; ///< What work is called with.

    /// Throws `Error` for options out of range.
    explicit GraphCapture(const GraphOptions& options = {});

    GraphCapture(const GraphCapture&) = delete;
    GraphCapture& operator=(const GraphCapture&) = delete;

    /// Enqueues the key's work in the order of `stream`: by replaying it, or by calling `work(s)`, with `stream` or one
    /// that forks from it. Does not wait for the device. Throws `Error`, and what `work` throws.
    template <class F>
    Replay run(Ref stream, const Key& key, F&& work);
    /// The same, for work without a key.
    template <class F>
    Replay run(Ref stream, F&& work) {
        static_assert(std::is_same_v<Key, NoKey>,
                      "sluice::GraphCapture: the key is missing, as in run(stream, key, work); work that is "
                      "always the same needs none in a GraphCapture<>");
        return run(stream, Key{}, work);
    }

    /// Like `run`, but calls `eager()` wherever `run` would run the work eagerly: it enqueues the same work in its own
    /// way, in the order of `stream`, with whatever device is current. `work(s)` is only called to be captured, by this
    /// object or by the capture that the calling thread is making. Throws `Error`, and what `work` and `eager` throw.
    ///
    /// `is_warm()` is asked once about a new key: true means that work of its kind has run before under other keys, and
    /// needs no eager run of its own. `before_launch()` is called before each launch.
    template <class F, std::invocable<> Eager, std::predicate<> IsWarm, std::invocable<> BeforeLaunch>
    Replay run_or(Ref stream, const Key& key, F&& work, Eager&& eager, IsWarm&& is_warm,
                  BeforeLaunch&& before_launch);
    /// The same, for a new key that is not warm, and with nothing before a launch.
    template <class F, std::invocable<> Eager>
    Replay run_or(Ref stream, const Key& key, F&& work, Eager&& eager) {
        return run_or(
            stream, key, work, eager, [] { return false; }, [] {});
    }

    /// Replays the key's work after calling `before_launch()`, if it can be replayed by now, and says whether. Does nothing
    /// otherwise: `run_or` does the rest. Throws `Error`.
    template <std::invocable<> BeforeLaunch>
    bool replay(Ref stream, const Key& key, BeforeLaunch&& before_launch);

    /// Captures the key's work anew, since it has changed, and replays that. The executable is updated in place where
    /// the driver can. Throws `Error`, and what `work` throws: the next run of the key captures it again then.
    template <class F>
    Replay recapture(Ref stream, const Key& key, F&& work);

    /// Waits for eager runs that are under way on the object's own stream. Throws `Error` for a fault of their work, which
    /// on the Host backend no other stream knows of. Replays are the caller's stream's.
    void finish() const {
        if (own_)
            own_->sync();
    }
    /// The object's own stream, if there is one by now: CUDA's backend keeps the fault of a captured host function with it.
    std::optional<Ref> capture_stream() const noexcept {
        return own_ ? std::optional<Ref>(own_->ref()) : std::nullopt;
    }
    /// Forgets such a fault.
    void clear_failure() noexcept {
        if (own_)
            B::clear_failure(own_->get());
    }

    /// What has been done so far.
    const GraphCounters& counters() const noexcept { return counters_; }
    /// What the constructor was given.
    const GraphOptions& options() const noexcept { return options_; }

    /// Keys that have a graph.
    std::size_t size() const noexcept;
    /// The key's graph, until the next call that may capture; null when it has none.
    const BasicGraph<B>* graph(const Key& key) const noexcept;
    /// The key's executable, until the next call that may capture; null when it has none.
    const BasicGraphExec<B>* executable(const Key& key) const noexcept;
    /// Whether a graph may be made of which it is not known that it pays: see `GraphOptions::give_up_after`.
    bool settled() const noexcept { return options_.give_up_after == 0 || allowance_ > 0; }
    /// Why the key's last capture was refused; empty when it was not.
    const std::string& refusal(const Key& key) const noexcept;
    /// Why a capture was refused first, of any key, or what a comparison has found to have changed; empty while all is well.
    const std::string& first_refusal() const noexcept { return first_refusal_; }

    /// Forgets all keys and their executables. Waits for nothing; launches in flight complete.
    void clear() noexcept;

private:
    enum class State { warming, ready, refused };
    struct Entry {
        explicit Entry(const Key& of) : key(of) {}
        Key key;
        State state = State::warming;
        int warm = 0;           // Eager runs so far.
        int compared = 0;       // Comparisons so far.
        bool quiet = false;     // Refused, as was known before.
        std::uint64_t used = 0; // When, counted in runs of the cache.
        // Of this key; shared with the `Replay`s handed out.
        detail::Shared<std::uint64_t> runs = detail::make_shared_value<std::uint64_t>(std::uint64_t{0});
        Entry* next = nullptr; // Whose turn it was after this one the last time.
        // In this order: an executable goes before the graph that it was made from.
        detail::Maybe<BasicGraph<B>> graph;
        detail::Maybe<BasicGraphExec<B>> executable;
        std::vector<const void*> memory; // Device memory that the graph names; where checking is on.
        detail::ReplayHooks<B> hooks;    // What the graph's work wants to be told of each launch.
        std::string reason;
    };

    using Work = detail::WorkRef<B>;
    Replay run_fitting(Ref stream, const Key& key, Work work, detail::CallRef<void(bool)> eagerly,
                       detail::CallRef<bool()> is_warm, detail::CallRef<void()> before_launch);
    Replay recapture_fitting(Ref stream, const Key& key, Work work);
    Entry* find(const Key& key) noexcept;
    const Entry* find(const Key& key) const noexcept;
    Entry& admit(const Key& key);
    struct Room {
        bool is_there = false;
        Entry* instead_of = nullptr; // Whose executable the new graph takes over.
    };
    Room find_room(const Entry& entry, bool is_new);
    void forget_graph(Entry& entry) noexcept;
    std::size_t most_known() const noexcept {
        return options_.capacity + (options_.capacity < 16 ? 16 : options_.capacity);
    }
    Replay launch(Entry& entry, Ref stream) {
        launch_entry(entry, stream);
        return Replay{entry.runs, true};
    }
    void launch_entry(Entry& entry, Ref stream);
    void record(Entry& entry, Ref stream, Work work, Entry* instead_of = nullptr);
    void check(Entry& entry, Ref stream, Work work);
    void compare(Entry& entry, Ref stream, Work work);
    bool is_new(const Entry& entry) const noexcept { return entry.compared < options_.comparisons; }
    static std::string change_of(const BasicGraph<B>& a, const detail::ReplayHooks<B>& hooks_of_a,
                                 const BasicGraph<B>& b, const detail::ReplayHooks<B>& hooks_of_b);
    void make_executable(Entry& entry, Ref stream, BasicGraph<B> graph, detail::ReplayHooks<B> hooks);
    void run_aside(Ref stream, Work work);
    Ref own_stream(Ref like);
    void refuse(Entry& entry, const std::string& reason, bool quiet = false);
    void tell(const std::string& reason);
    // Counts a run, which from time to time allows another graph that may not pay.
    std::uint64_t tick() noexcept {
        if (++clock_ % runs_an_allowance == 0 && allowance_ < options_.give_up_after)
            ++allowance_;
        return clock_;
    }

    static constexpr std::uint64_t runs_an_allowance = 64;
    static constexpr std::size_t most_told = 32; // Further reasons are told each time.

    GraphOptions options_;
    int device_;
    GraphCounters counters_;
    std::string first_refusal_;
    detail::List<detail::Owned<Entry>> entries_;
    Entry* last_ = nullptr;
    std::uint64_t clock_ = 0;
    std::size_t new_in_a_row_ = 0;      // New keys since the last launch.
    std::size_t allowance_;             // Graphs that may be made now without knowing that they pay.
    detail::List<std::string> told_;    // Reasons.
    detail::Maybe<BasicStream<B>> own_; // Where work is warmed up and captured.
    StreamOptions own_like_;
    BasicEvent<B> fence_;
};

} // namespace sluice

#include <sluice/graph/detail/graph_capture.inl>
#include <sluice/graph/detail/graph_capture_entries.inl>
