// Schedule::graphed where all stages can be captured: the work on one or more batches is one graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/pipeline/detail/core/capture_streams.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/step_graphs.hpp>
#include <sluice/pipeline/detail/core/step_lags.hpp>

namespace sluice::detail {

/// A graph of `length` steps holds each stage's work on `length` successive batches, with the waits between them inside:
/// stage i on the batches that begin `lag[i]` before the newest ones, so that stages overlap from the first node on.
/// Stages on one external stream are captured on one stream, batch by batch.
/// Graphs follow each other on one stream, the first stage's, the origin.
///
/// While it fills and drains, and where no graph serves, the stages run as overlapped, on their own streams.
template <Backend B>
class GraphedSteps final : public Executor<B> {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;
    using Given = GivenBatch<B>;
    using Hold = SourceHold<B>;

public:
    /// `steps` of a graph; 0: as many as is good. No more, nor stages further apart, than `in_flight` batches allow.
    GraphedSteps(Core& core, const GraphOptions& options, std::size_t steps, std::size_t in_flight)
        : plan_(core.plan), stages_(core.stages()), asked_(steps > 0),
          longest_(asked_ ? smaller(steps, in_flight) : automatic_steps), origin_(core.streams.of(0, 0)),
          graphs_(graphs_on(core.streams.device_of(0), options_for(core, options))),
          refusals_(options.on_refusal), pending_(longest_ + 2 * stages_, plan_.batch_is_read),
          ends_(origin_, core.order->slots() * stages_), next_(stages_), until_(stages_), capture_(core) {
        this->keeps_batches_ = true;
        graphs_.set_stages(core, 0, stages_ - 1);
        choose_lags(core.free_slots(), in_flight - 1);
        longest_ = larger(1, smaller(longest_, in_flight - most_lag_));
        phases_ = core.slots.later_rows() * most_lanes(core);
        first_whole_ = most_lag_ + core.slots.first_rows();
        capture_.for_each([&](int stage, Ref stream) { captured_on_.push_back({stage, stream}); });
    }

    bool hold_at_most(std::size_t in_flight) override {
        ends_.expect_waits();
        // Half, so that the next graph is on its way while the caller takes this one's results.
        longest_ = larger(1, smaller(longest_, (in_flight - smaller(in_flight, most_lag_)) / 2));
        return most_lag_ < in_flight;
    }

    void submit(Core& core, std::size_t number, const Given& batch, const Hold& hold) override {
        pending_.take(number, batch, hold);
        submitted_ = number + 1;
        if (hold)
            ++holds_;
        const std::size_t length = length_for(hold);
        if (hold && submitted_ - released_ >= hold.slots()) {
            flush(core); // or the source could not fill another one
        } else if (ends_group(length, hold) || !(asked_ || (hold && hold.ready_behind() > 0))) {
            enqueue(core, length);
        }
    }

    void start_at(std::size_t number) noexcept override {
        submitted_ = grouped_ = started_ = released_ = number;
        next_.assign(stages_, number);
        ends_.start();
    }

    bool has_run_steps() const noexcept override { return has_launched_; }

    void run_behind_last(Core& core, std::size_t stage, std::size_t number, const Given& batch) override {
        ends_.to_streams(core);
        core.run_in_order(stage, number, batch);
        ends_.ran_eagerly(core, stage, number);
    }

    void flush(Core& core) override {
        enqueue(core, longest_);
        // What later stages still lack, batch by batch.
        until_.assign(stages_, submitted_);
        run_eagerly(core, until_, &refusals_.eager().ends);
        release_read(core);
        started_ = submitted_;
        replays_ = false;
        if (!tells_ends_ && refusals_.eager().ends >= told_ends && graphs_.counters().replays == 0) {
            tells_ends_ = true;
            refusals_.tell("graphs refused: a flush, a finish or a wait for a batch has cut off every step "
                           "before all stages had joined it; graph_each_stage has no such steps");
        }
    }

    void finish_before(Core& core, std::size_t batch) override {
        Until until = next_;
        for (std::size_t& end : until)
            end = larger(end, batch);
        run_eagerly(core, until, &refusals_.eager().ends);
    }

    void reset() noexcept override {
        pending_.drop();
        graphs_.reset();
        start_at(0);
        holds_ = 0;
        replays_ = has_launched_ = false;
        for (const Captured& captured : captured_on_)
            B::clear_failure(captured.stream.get());
    }

    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        if (next_[stage] <= number)
            flush(core);
        ends_.await(core, stage, number, lag_[stage]);
    }

    bool is_through(Core& core, std::size_t stage, std::size_t number) override {
        return next_[stage] > number && ends_.is_through(core, stage, number, lag_[stage]);
    }
    const Ref* one_end() const noexcept override { return ends_.one_end(); }

    std::size_t next_of(std::size_t stage) const noexcept override { return next_[stage]; }

    void for_each_capture_stream(const CallRef<void(int, Ref)>& visit) const override {
        for (const Captured& captured : captured_on_)
            visit(captured.stage, captured.stream);
    }

    GraphCounters counters() const noexcept override { return refusals_.added_to(graphs_.counters()); }
    std::string first_refusal() const override { return refusals_.first_after(graphs_.first_refusal()); }

private:
    static constexpr std::size_t automatic_steps = 16;
    static constexpr std::uint64_t told_ends = 64; // Runs that were cut off, until that is told.

    // The batches that each stage works on in one graph: from next_ on, until this one.
    using Until = List<std::size_t>;

    // Captured and launched on streams of the origin's device.
    static StepGraphs<B> graphs_on(int device, const GraphOptions& options) {
        const DeviceGuard<B> guard(device);
        return StepGraphs<B>(options);
    }

    void choose_lags(std::size_t slots, std::size_t most) {
        lag_ = step_lags(plan_, slots);
        for (std::size_t& lag : lag_)
            lag = smaller(lag, most);
        if (capture_.any_shared())
            lower_lags(plan_, lag_, slots, capture_.captured_as());
        for (const std::size_t lag : lag_)
            most_lag_ = larger(most_lag_, lag);
    }

    // As long as is good for a batch of this source, whose slots a held batch takes from its workers.
    std::size_t length_for(const Hold& hold) const noexcept {
        if (longest_ == 1)
            return 1;
        if (!hold)
            return asked_ ? longest_ : 1;
        const std::size_t most = larger(1, smaller(longest_, hold.slots() / 2));
        if (asked_)
            return most;
        std::size_t length = 1;
        while (2 * length <= most)
            length *= 2;
        return length;
    }

    // Groups that begin anywhere would meet a source's slots in as many ways as there are slots, each a graph of its own.
    bool ends_group(std::size_t length, const Hold& hold) const noexcept {
        return hold ? submitted_ % length == 0 : submitted_ - grouped_ >= length;
    }

    // Enqueues all batches that are held: in a graph of `length`, where they are as many, and otherwise one by one.
    void enqueue(Core& core, std::size_t length) {
        if (submitted_ - grouped_ == length) {
            enqueue_group(core, length);
        } else {
            while (grouped_ < submitted_)
                enqueue_group(core, 1);
        }
    }

    void enqueue_group(Core& core, std::size_t length) {
        const std::size_t first = grouped_;
        const bool whole = replays_ || lags_as_it_should(first); // whether it fills or drains no longer
        grouped_ = first + length;
        const bool keyed = whole && !core.launch_blocking() && make_key(core, first, length);
        if (!keyed || !replays_ || !replay(core, first, length))
            enqueue_otherwise(core, first, length, whole, keyed);
        release_read(core);
    }

    // Whether each stage is as far behind batch `first` as graphs of steps have it, and is handed what it will be later.
    bool lags_as_it_should(std::size_t first) const noexcept {
        if (first < first_whole_)
            return false;
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            if (next_[stage] + lag_[stage] != first)
                return false;
        }
        return true;
    }

    // Launches the key's graph, where there is one.
    bool replay(Core& core, std::size_t first, std::size_t length) {
        core.checks.graph_begins_with(first);
        if (!graphs_.replay(origin_, [&] { before_launch(core, first); }))
            return false;
        launched(core, first);
        for (std::size_t& next : next_)
            next += length;
        return true;
    }

    void enqueue_otherwise(Core& core, std::size_t first, std::size_t length, bool whole, bool keyed) {
        Until& until = until_; // kept for its memory
        until = next_;
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            const std::size_t end = first + length;
            if (replays_)
                until[stage] += length;
            else
                until[stage] = end >= started_ + lag_[stage] ? end - lag_[stage] : started_;
        }
        if (keyed)
            run_graph(core, first, length, until);
        else
            run_eagerly(core, until, refusals_.step(core.launch_blocking(), whole));
    }

    // The oldest batch whose work may be in a graph with `first`'s.
    std::size_t first_keyed(std::size_t first) const noexcept {
        return first >= started_ + most_lag_ ? first - most_lag_ : started_;
    }

    // False when its batches cannot be told from others.
    bool make_key(Core& core, std::size_t first, std::size_t length) {
        const std::size_t phase = phases_ & (phases_ - 1) ? first % phases_ : first & (phases_ - 1);
        StepKey& key = graphs_.new_key(core, phase, length);
        if (core.times) [[unlikely]]
            key.push_back(core.times->turn_of(first, phases_, length, bool(pending_.hold(first))));
        if (pending_.append_numbers(key, first_keyed(first), first + length)) [[likely]]
            return true;
        refusals_.untold_batches();
        return false;
    }

    void run_graph(Core& core, std::size_t first, std::size_t length, const Until& until) {
        core.checks.graph_begins_with(first);
        const bool replayed = graphs_.run(
            core, origin_,
            [&](Ref origin) {
                const StepsCapture<B> noted(core.times, first);
                capture_group(core, origin, until);
            },
            [&] { run_eagerly(core, until); },
            [&](KeyBytes& kind) {
                return pending_.append_shapes(kind, first_keyed(first), first, first + length);
            },
            [&] { before_launch(core, first); });
        core.leave_stage();
        if (!replayed)
            return;
        launched(core, first);
        replays_ = true;
        next_ = until;
    }

    void before_launch(Core& core, std::size_t first) {
        ends_.to_origin(core);
        has_launched_ = true;
        if (core.times) [[unlikely]]
            core.times->begin_graph(first, origin_);
    }
    void launched(Core& core, std::size_t first) {
        ends_.launched(grouped_);
        if (core.times) [[unlikely]]
            core.times->end_graph(first, origin_);
    }

    template <class Visit>
    void for_each_work(const Until& until, Visit&& visit) {
        std::size_t begin = submitted_, end = 0;
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            begin = smaller(begin, next_[stage]);
            end = larger(end, until[stage]);
        }
        for (std::size_t batch = begin; batch < end; ++batch) {
            for (std::size_t stage = 0; stage < stages_; ++stage) {
                if (batch >= next_[stage] && batch < until[stage])
                    visit(stage, batch);
            }
        }
    }

    void capture_group(Core& core, Ref origin, const Until& until) {
        const typename CaptureStreams<B>::Range graph{next_, until};
        capture_.fork(origin);
        const auto call = [&](std::size_t stage, std::size_t batch) {
            if (!core.rates.runs(stage, batch))
                return;
            const Ref stream = capture_.begin(core, stage, batch, graph);
            core.run(stage, stream, batch, pending_.given(batch));
            graphs_.stage_captured(stage, batch, stream);
            capture_.end(core, stage, batch, stream);
        };
        try {
            for_each_work(until, call);
        } catch (...) {
            // Streams that are left out would break the capture, which would then be blamed for what a stage has thrown.
            (void)thrown_text([&] { capture_.join(origin); });
            throw;
        }
        capture_.join(origin);
    }

    // Runs what stages lack, batch by batch, each on its own stream. Counts it there.
    void run_eagerly(Core& core, const Until& until, std::uint64_t* counted = nullptr) {
        if (until == next_)
            return;
        if (counted != nullptr)
            ++*counted;
        replays_ = false;
        ends_.to_streams(core);
        for_each_work(until, [&](std::size_t stage, std::size_t batch) {
            if (batch != next_[stage])
                return;
            if (core.rates.runs(stage, batch)) {
                core.run_in_order(stage, batch, pending_.given(batch));
                ends_.ran_eagerly(core, stage, batch);
            }
            ++next_[stage];
        });
    }

    // Tells sources of the batches that all stages have had that read them.
    void release_read(Core& core) {
        if (holds_ == 0) {
            released_ = submitted_;
            return;
        }
        std::size_t end = submitted_;
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            if (plan_.stages[stage].reads_batch)
                end = smaller(end, next_[stage]);
        }
        for (; released_ < end; ++released_) {
            Hold& hold = pending_.hold(released_);
            if (!hold)
                continue;
            for (std::size_t stage = 0; stage < stages_; ++stage) {
                if (plan_.stages[stage].reads_batch && !ends_.on_origin())
                    core.release_batch(stage, released_, hold);
            }
            if (plan_.batch_is_read && ends_.on_origin())
                hold.release(origin_);
            hold.give_up();
            hold = {};
            --holds_;
        }
    }

    const PlanData& plan_;
    std::size_t stages_;
    bool asked_;          // Whether the caller has asked for
    std::size_t longest_; // so many steps of a graph at most.
    Ref origin_;
    StepGraphs<B> graphs_;
    Refusals refusals_;
    PendingBatches<B> pending_;
    StepEnds<B> ends_;

    List<std::size_t> lag_;
    std::size_t most_lag_ = 0;
    std::size_t first_whole_ = 0; // Before this batch, batches before may be missing.
    std::size_t phases_ = 1;      // After so many batches each slot meets each lane again.

    std::size_t started_ = 0;   // All batches before have been through all stages,
    std::size_t grouped_ = 0;   // these are on their way,
    std::size_t submitted_ = 0; // and these are held.
    std::size_t released_ = 0;  // The first batch whose source has not been told,
    std::size_t holds_ = 0;     // of so many that are held.
    Until next_;                // Each stage's next batch,
    Until until_;               // and in what is being enqueued, the one behind its last.
    bool has_launched_ = false; // a graph, since it began or was reset
    bool tells_ends_ = false;
    using Executor<B>::replays_; // All lag as they should then.
    CaptureStreams<B> capture_;
    struct Captured {
        int stage; // -1: several
        Ref stream;
    };
    List<Captured> captured_on_; // Each submit looks at these for faults.
};

} // namespace sluice::detail
