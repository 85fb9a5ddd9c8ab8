// A pipeline without the types of its stages and batches: all that it does, compiled once for a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/memory/detail/allocations.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/pipeline_options.hpp>
#include <sluice/pipeline/results.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

template <Backend B>
class StageCore;
template <Backend B>
class Executor;
template <Backend B>
class StageTimes;

/// Whether a file is compiled with SLUICE_CHECKED, as a type: what is linked to a library of the other kind is not linked at all.
template <bool Checked>
struct FileKind {};
using OfThisKind = FileKind<bool(SLUICE_CHECKED)>;

/// What is said at `Pipeline` of the members of the same name.
template <Backend B>
class PipelineCore {
public:
    using Ref = BasicStreamRef<B>;
    using Hold = SourceHold<B>;

    /// `setups` is only used while this is made.
    PipelineCore(const PlanData& plan, const PipelineSetup<B>& setups, const PipelineOptions& options,
                 OfThisKind = {});
    PipelineCore& operator=(PipelineCore&&) = delete;
    ~PipelineCore();

    /// A batch of the caller's own; `names_host_memory`: whether the handle waits when it goes.
    BatchRead submit(const GivenBatch<B>& batch, bool names_host_memory);
    /// One of a source, which `hold` holds.
    void submit_held(const GivenBatch<B>& batch, const Hold& hold);
    /// Waits for the last stage's output for batch `number`, and gives its slot.
    const void* await_result(std::size_t number);

    /// The first batch from `next` on that has a result.
    std::size_t next_result(std::size_t next) const noexcept;
    /// Batches for which there is one result.
    std::size_t batches_a_result() const noexcept;
    /// So many batches that `run` has submitted, and whose results were not given yet, have slots for these.
    std::size_t most_ahead() const noexcept;
    /// Has stages that run once for several batches run with those that there are, and waits for all work.
    void end_turns();
    /// A loop over results begins.
    void begin_results();
    /// What `run` has left.
    ResultsLeft& results_left() noexcept { return results_left_; }

    void wait_for(Ref stream);
    void flush();
    void flush(Ref stream);
    void finish();
    void reset();

    std::size_t submitted() const noexcept { return submitted_; }
    std::size_t completed();
    /// Waits until a submit would not wait for room.
    void wait_for_room();
    /// Whether a submit would wait for nothing; counts where it would.
    bool has_room();
    std::size_t dropped() const noexcept { return dropped_; }
    bool failed() const noexcept { return bool(failure_); }
    const PipelineOptions& options() const noexcept { return options_; }
    const ScheduleChoice& choice() const;
    GraphCounters graph_counters() const noexcept;
    std::vector<StageTime> stage_times();
    std::vector<StageTime> submit_times();
    std::size_t stages() const noexcept;
    const std::string& stage_name(std::size_t index) const;
    bool is_cpu_stage(std::size_t index) const;
    int device_of(std::size_t index) const;
    int multiprocessors(std::size_t index) const;
    std::string shares() const;
    Ref stream(std::size_t index) const;
    /// For descriptions; `graphed`: as far as the stage's options say.
    /// @{
    struct StagePlace {
        std::size_t lanes = 1;
        int priority = 0;
        bool external_stream = false;
        bool graphed = true;
        int multiprocessors = 0;
        std::size_t batches_a_run = 1;
        std::size_t every = 1;
        std::size_t slot_size = 0; ///< In host memory.
        MemoryBytes slot_bytes;    ///< What all its slots have elsewhere.
        List<Ref> streams;         ///< A lane each; none of a stage that runs on threads.
    };
    StagePlace place_of(std::size_t index) const;
    const PlanData& plan() const noexcept;
    std::size_t slots() const noexcept;
    std::size_t in_flight() const noexcept;
    bool graphs_whole_steps() const { return may_graph_whole_steps(options_.graph_each_stage); }
    /// @}

private:
    struct SubmitBegin {
        std::int64_t time = 0;   // of the clock, in nanoseconds
        std::int64_t waited = 0; // by then
    };
    struct Parts;
    class Call;

    void submit_given(const GivenBatch<B>& batch, const Hold& hold, bool& kept);
    void enqueue(const GivenBatch<B>& batch, const Hold& hold, bool& kept);
    void await_batch(std::size_t number);
    bool is_read(std::size_t number);
    // Whether what waits for batches may ask: not within a call, nor from a CPU stage of this pipeline.
    bool may_be_asked() const noexcept;
    void await_room();
    void hand_on();
    void mark_end();
    void at_rest() noexcept;
    std::int64_t waited() const noexcept { return waited_for_results() + room_; }
    void look_at_batch(const GivenBatch<B>& batch);
    template <class Visit>
    void for_each_host_reader(Visit&& visit);
    void end_all();
    void run_turns();
    void begin_turns_anew();
    void await_stage(std::size_t stage, std::size_t number);
    bool is_through(std::size_t stage, std::size_t number) {
        ask_for_ends(number);
        return executor_->is_through(core_, stage, number);
    }
    void ask_for_ends(std::size_t number) {
        if (number + executor_->marked(core_) < submitted_)
            core_.ends.ask(core_.plan, core_.streams);
    }
    void enter();
    void leave();
    void sync();
    void drop_batches() noexcept;
    /// Calls `work()`, and fails with what it throws.
    template <class Work>
    void or_fail(Work&& work);
    void require_sound(const char* call, bool often = false);
    void throw_known_fault();
    // In pipeline_tuning.inl:
    bool may_graph_whole_steps(bool each_stage) const;
    GraphOptions graph_options() const;
    void use_graphs(bool each_stage);
    std::vector<ScheduleTrial> trials() const;
    void look_at_submit(const SubmitBegin& begin, const GivenBatch<B>& batch);
    void come_to_rest();
    void end_trial();
    void use(const ScheduleTrial& trial);
    // In pipeline_faults.inl:
    void throw_not_sound(const char* call);
    void require_ready(const char* call, bool own);
    void require_not_captured(const char* call, bool own = true) const;
    void require_not_captured(const char* call, Ref stream) const;
    void throw_unreported() const;
    void throw_thread_fault();
    void throw_stream_fault();
    bool is_of_streams(const Error& error) const;
    [[noreturn]] void fail();
    [[noreturn]] void fail_at(int stage, std::optional<std::size_t> batch, bool or_earlier,
                              bool of_stream = false);
    // In pipeline_queries.inl:
    void require_stage(const char* what, std::size_t index) const;
    StageTimes<B>& require_times(const char* call);

    PipelineOptions options_;
    Owned<Parts> parts_;
    // What each submit asks for, side by side.
    StageCore<B>& core_;              // of the parts
    Executor<B>* executor_ = nullptr; // What runs the stages now: one of these.
    BatchWaiterRef waiter_;
    std::size_t begun_ = 0; // batches of which work may be under way: one more than submitted_ within submit
    std::size_t submitted_ = 0;
    std::size_t room_until_ = 0; // So many may be submitted before marks are looked at,
    std::size_t mark_at_ = 0;    // and behind so many one is due.
    std::size_t run_ = 0;        // Counts resets.
    Atomic<bool> in_use_;
    bool inside_ = false;      // Whether external streams have been joined since the pipeline was last left.
    bool watched_ = false;     // Whether calls of `submit` are timed, for notes or because
    bool tuning_ = false;      // `Schedule::automatic` still tries.
    bool trying_ = false;      // Whether the next `submit` is of `try_submit`.
    const bool only_device_;   // Whether the machine has no other device.
    bool asks_streams_ = true; // Whether `submit` asks first if a stream is being captured.
    const bool any_external_;  // Whether a stage is on a stream of the caller's.
    const bool looks_at_batches_; // Whether there is more to do with a batch than to hand it on.
    Maybe<Error> failure_;
    std::int64_t reading_ = 0; // Nanoseconds of waits for batches to be read, since the last submit,
    std::int64_t results_ = 0; // of those for results of `run`, likewise,
    std::int64_t room_ = 0;    // and of those for room, and for CPU stages, in all.
    std::size_t dropped_ = 0;
    GivenBatch<B> last_;         // Without the batch itself.
    std::size_t polled_ = 0;     // The batch that was last seen to be held,
    std::size_t polled_at_ = 0;  // when so many were submitted,
    std::size_t polls_ = 0;      // and how often any was since then.
    std::size_t counted_at_ = 0; // How many were submitted when `completed` was asked for last.
    ResultsLeft results_left_;
    // So many are submitted before a loop over results waits for the first, once one has begun.
    std::size_t results_ahead_ = (std::numeric_limits<std::size_t>::max)();
    int exceptions_; // under way when this was made
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/pipeline/detail/core/pipeline_core.inl>
#include <sluice/pipeline/detail/core/pipeline_faults.inl>
#include <sluice/pipeline/detail/core/pipeline_queries.inl>
#include <sluice/pipeline/detail/core/pipeline_room.inl>
#include <sluice/pipeline/detail/core/pipeline_tuning.inl>
#endif
