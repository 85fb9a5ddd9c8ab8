/// \file
/// How a GraphCapture works, what it counts, and one run of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <sluice/backend/detail/shared.hpp>
#include <sluice/graph/capture.hpp>

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
    /// replayed, down to the arguments of kernels, and the device memory that it names is looked up. Memory that the work
    /// allocates and frees in stream order may have another address in each capture. Where the work has changed under its
    /// key, or memory has been freed, `run` throws. Bytes of a kernel's argument that stand for nothing, such as those behind
    /// a structure's last member, count as well: give them a member. Empty: on a checked backend. Pipelines that look for
    /// races do so in any case, and their error names the stage and the batch.
    std::optional<bool> check = {};
    /// So many first replays of each key capture the work again and compare it likewise, but replay what they have captured
    /// where it has changed: nothing is lost, and `GraphCounters::changes` tells. From a change on, four times as many do. What
    /// changes later goes unnoticed.
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
    std::uint64_t changes = 0;        ///< and those that found that it has;
    std::uint64_t later_changes = 0;  ///< of these, all but what a key's first comparison found
    EagerRuns eager;                  ///< runs that were not replays

    /// Adds each number.
    GraphCounters& operator+=(const GraphCounters& other) noexcept;
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

} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/graph/detail/graph_options.inl>
#endif
