/// \file
/// Schedule::graphed: the work on one or more batches is one graph.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/detail/overlapped.hpp>
#include <sluice/pipeline/detail/source_slots.hpp>
#include <sluice/pipeline/detail/stage_core.hpp>

namespace sluice::detail {

/// A graph of `length` steps holds each captured stage's work on `length` successive batches, with the waits between
/// them inside: stage i on the batches that begin `lag[i]` before the newest ones, so that stages overlap from the
/// first node on. Graphs follow each other on one stream, the origin. Stages that are not captured run between them on
/// their own streams, one batch behind, or ahead of, their neighbours.
///
/// While it fills and drains, and where no graph serves, the stages run as overlapped, on their own streams.
template <class Core>
class GraphedExecutor {
    using Shape = typename Core::Shape;
    using B = typename Core::backend;
    using Ref = typename Core::Ref;
    using Given = GivenBatch<Core>;
    using Hold = SourceHold<B>;
    static constexpr std::size_t stages = Core::stages;

public:
    GraphedExecutor(Core& core, const GraphOptions& options, int steps)
        : slots_(core.order->slots()), graphs_(options), on_refusal_(options.on_refusal) {
        if (steps < 0)
            throw Error("a graph needs at least 1 step (0: as many as is good), got " +
                        std::to_string(steps));
        choose_captured(core);
        choose_lags(core);
        phases_ = slots_ * lane_turns(core);
        const std::size_t asked = static_cast<std::size_t>(steps);
        asked_ = asked > 0;
        longest_ = origin_ && !any_uncaptured_ ? (asked_ ? asked : automatic_steps) : 1;
        pending_.resize(std::bit_ceil(longest_ + 2 * stages));
        if (origin_)
            make_capture_streams(core);
    }

    void submit(Core& core, std::size_t number, const Given& batch, const Hold& hold) {
        Pending& pending = pending_of(number);
        pending.take(batch, hold, key_batches_);
        submitted_ = number + 1;
        const std::size_t length = length_for(hold);
        if (hold && submitted_ - released_ >= hold.slots()) {
            flush(core); // or the source could not fill another one
        } else if (submitted_ - grouped_ >= length || !(asked_ || (hold && hold.ready_behind() > 0))) {
            enqueue(core, length);
        }
    }

    /// Sees that all batches are on their way through all stages.
    void flush(Core& core) {
        enqueue(core, longest_);
        // What later stages still lack, batch by batch.
        std::array<std::size_t, stages> until;
        until.fill(submitted_);
        run_eagerly(core, until, [](std::size_t) { return true; });
        release_read(core);
        started_ = submitted_;
    }

    /// Forgets all batches. Nobody works on any.
    void reset() noexcept {
        for (Pending& pending : pending_) {
            if (pending.hold)
                pending.hold.done();
            pending.hold = {};
        }
        submitted_ = grouped_ = started_ = released_ = 0;
        next_.fill(0);
        graphs_.clear_failure();
        for (const auto& lanes : capture_streams_) {
            for (const BasicStream<B>& lane : lanes)
                B::clear_failure(lane.native());
        }
    }

    /// Waits on the calling thread until stage I is through batch `number`.
    template <std::size_t Index>
    void await_stage(Core& core, std::size_t number) {
        if (next_[Index] <= number)
            flush(core);
        if constexpr (Shape::aside[Index])
            core.await_on_thread(Index, number);
        else
            core.streams.await(captured_[Index] && on_origin_ ? *origin_stage_ : Index,
                               captured_[Index] && on_origin_ ? 0 : number);
    }
    /// Whether stage `stage`'s work on batch `number` has been enqueued.
    bool enqueued(std::size_t stage, std::size_t number) const noexcept { return next_[stage] > number; }

    /// Whether the last batches were replayed, as the next will be, then.
    bool replays() const noexcept { return replays_; }

    /// Calls `visit(stage, stream)` for the streams on which stages are captured: CUDA's backend keeps the fault of a
    /// captured host function with its stream.
    template <class Visit>
    void for_each_capture_stream(Visit&& visit) const {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            for (const BasicStream<B>& lane : capture_streams_[stage])
                visit(stage, lane.ref());
        }
    }

    GraphCounters counters() const noexcept {
        GraphCounters counters = graphs_.counters();
        counters.refusals += refusals_;
        return counters;
    }
    void finish() const { graphs_.finish(); }

private:
    static constexpr std::size_t automatic_steps = 16;

    // A batch that not all stages have had yet.
    struct Pending {
        Given batch;
        Hold hold;
        std::vector<std::max_align_t> copy;
        KeyBytes key;
        bool known = false;
        KeyBytes shape;      // The same without addresses,
        bool shaped = false; // where it has been asked for while the batch was there.

        void take(const Given& given, const Hold& source, bool keyed) {
            batch = given;
            hold = source;
            // Where there is no copy, the batch is a source's, or the caller keeps it.
            if (!source && given.ops->copied_bytes > 0) {
                copy.resize((given.ops->copied_bytes + sizeof(std::max_align_t) - 1) /
                            sizeof(std::max_align_t));
                std::memcpy(copy.data(), given.value, given.ops->copied_bytes);
                batch.value = copy.data();
            }
            shaped = false;
            key.clear();
            known = !keyed || given.ops->append_key(key, batch.value);
            // Work may read it where it is then.
            if (batch.value == given.value)
                append_scalar(key, batch.value);
        }
    };
    // The batches that each stage works on in one graph: from next_ on, until this one.
    using Until = std::array<std::size_t, stages>;
    // Before each launch: what the graph must come after.
    struct BeforeLaunch final : ReplayHook<B> {
        explicit BeforeLaunch(GraphedExecutor& of) : executor(of) {}
        void before_replay() override {
            executor.to_origin(*core);
            if (executor.any_uncaptured_)
                executor.await_uncaptured(*core, *until);
        }
        void after_replay(Ref) override {}
        GraphedExecutor& executor;
        Core* core = nullptr;
        const Until* until = nullptr;
    };

    Pending& pending_of(std::size_t number) noexcept { return pending_[number & (pending_.size() - 1)]; }

    void choose_captured(Core& core) {
        Core::for_each_stage([&](auto stage) {
            captured_[stage] = Shape::capturable[stage] && core.template stage<stage>().options().graphed;
            if (!captured_[stage]) {
                any_uncaptured_ = true;
                return;
            }
            if (!origin_) {
                origin_ = core.streams.of(stage, 0);
                origin_stage_ = stage;
            }
            key_batches_ = key_batches_ || Shape::bindings.reads_batch[stage];
        });
    }

    // A stage is one batch behind those that it reads, as long as the slots between them last that long.
    void choose_lags(const Core&) {
        if (slots_ == 1 && !any_uncaptured_)
            return; // a chain, with nothing to overlap
        std::size_t most = 0;
        for (std::size_t i = 0; i < stages; ++i)
            most = std::max(most, Shape::edges.depth[i]);
        for (std::size_t i = 0; i < stages; ++i)
            lag_[i] = Shape::edges.depth[i];
        bool lasts = true;
        for (std::size_t i = 0; i < stages; ++i) {
            for (std::size_t j = 0; j < i; ++j)
                lasts = lasts && !(Shape::bindings.reads[i][j] && lag_[i] - lag_[j] > slots_);
        }
        if (!lasts) {
            for (std::size_t& lag : lag_)
                lag = std::min(lag, slots_);
        }
        // Between the graph and what runs beside it, a step must have come before.
        for (std::size_t i = 0; i < stages; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (!Shape::bindings.reads[i][j] || captured_[i] == captured_[j])
                    continue;
                if (lag_[i] == lag_[j] || lag_[i] - lag_[j] >= slots_) {
                    throw Error(
                        "a graphed pipeline of which a stage opts out of the graph, or is a CPU stage, needs "
                        "at least " +
                        std::to_string(
                            std::max<std::size_t>(2, Shape::edges.depth[i] - Shape::edges.depth[j] + 1)) +
                        " slots between stages, got " + std::to_string(slots_));
                }
            }
        }
    }

    void make_capture_streams(Core& core) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (!captured_[stage])
                continue;
            const DeviceGuard<B> device(core.streams.device_of(stage));
            for (std::size_t lane = 0; lane < core.streams.lanes(stage); ++lane)
                capture_streams_[stage].emplace_back(
                    StreamOptions{.priority = core.streams.priority_of(stage)});
            for (std::size_t slot = 0; slot < slots_; ++slot)
                capture_marks_[stage].emplace_back();
            fences_[stage].emplace();
        }
        fork_.emplace();
    }

    // As long as is good for a batch of this source, whose slots a held batch takes from its workers.
    std::size_t length_for(const Hold& hold) const noexcept {
        if (longest_ == 1)
            return 1;
        if (!hold)
            return asked_ ? longest_ : 1;
        const std::size_t most = std::max<std::size_t>(1, std::min(longest_, hold.slots() / 2));
        if (asked_)
            return most;
        std::size_t length = 1;
        while (2 * length <= most)
            length *= 2;
        return length;
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
        Until until;
        bool whole = true; // whether it fills or drains no longer
        bool known = true;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            until[stage] = first + length >= started_ + lag_[stage] ? first + length - lag_[stage] : started_;
            if (captured_[stage])
                whole = whole && until[stage] == next_[stage] + length;
        }
        for (std::size_t batch = first_keyed(first); key_batches_ && batch < first + length; ++batch)
            known = known && pending_of(batch).known;
        grouped_ = first + length;
        if (origin_) {
            const auto eager = [&] {
                run_eagerly(core, until, [&](std::size_t stage) { return captured_[stage]; });
            };
            if (whole && known && !core.launch_blocking()) {
                make_key(core, first, length);
                run_graph(core, first, length, until, eager);
            } else {
                if (whole && !known)
                    refuse("capture refused: batches are told apart by what their members hold on the host, "
                           "and this "
                           "type does not show its members; write a graph_key(const Batch&) for it");
                eager();
            }
        }
        if (any_uncaptured_)
            run_eagerly(core, until, [&](std::size_t stage) { return !captured_[stage]; });
        release_read(core);
    }

    // The oldest batch whose work may be in a graph with `first`'s.
    std::size_t first_keyed(std::size_t first) const noexcept {
        std::size_t most = 0;
        for (std::size_t stage = 0; stage < stages; ++stage)
            most = captured_[stage] ? std::max(most, lag_[stage]) : most;
        return first >= started_ + most ? first - most : started_;
    }

    void make_key(Core& core, std::size_t first, std::size_t length) {
        KeyBytes& key = key_;
        key.clear();
        append_scalar(key, phases_ & (phases_ - 1) ? first % phases_ : first & (phases_ - 1));
        append_scalar(key, length);
        if (key_batches_) {
            for (std::size_t batch = first_keyed(first); batch < first + length; ++batch)
                append_bytes(key, pending_of(batch).key.data(), pending_of(batch).key.size());
        }
        core.append_slots(key);
    }
    static std::size_t lane_turns(const Core& core) noexcept {
        std::size_t turns = 1;
        for (std::size_t stage = 0; stage < stages; ++stage)
            turns = std::max(turns, core.lanes(stage));
        return turns;
    }

    template <class Eager>
    void run_graph(Core& core, std::size_t first, std::size_t length, const Until& until, Eager& eager) {
        bool ran_eagerly = false;
        const auto run = [&] {
            ran_eagerly = true;
            copy_slots(core, slot_bytes_);
            eager();
            copy_slots(core, key_bytes_after_);
            if (!(key_bytes_after_ == slot_bytes_))
                note_changing();
            else
                note_warm(first, length);
        };
        const auto capture = [&](Ref origin) {
            // Before any stage is called: an attempt that is given up leaves other numbers in the slots, and stages that
            // are behind may have to read the former ones.
            if (std::find(changing_.begin(), changing_.end(), key_) != changing_.end())
                throw changes_slots();
            capture_group(core, origin, until);
            if (replay_hooks<B>() != nullptr)
                replay_hooks<B>()->push_back(before_launch_);
        };
        before_launch_->core = &core;
        before_launch_->until = &until;
        if (!graphs_.replay(*origin_, key_)) [[unlikely]]
            graphs_.run_or(*origin_, key_, capture, run, [&] { return is_warm(first, length); });
        core.leave_stage();
        if (ran_eagerly)
            return;
        replays_ = !any_uncaptured_;
        if (any_uncaptured_)
            mark_captured(core, until);
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (captured_[stage])
                next_[stage] = until[stage];
        }
    }

    // Libraries load kernels and make workspaces in their first calls. Once steps with batches of these shapes, their
    // numbers and sizes but not their addresses, and with these slots have run eagerly, and have left the slots as they
    // were, another such step need not do so before it is captured.
    bool kind_of(std::size_t first, std::size_t length) {
        kind_.clear();
        bool known = key_batches_;
        const KeyBytes* former = nullptr;
        for (std::size_t batch = first_keyed(first); known && batch < first + length; ++batch) {
            Pending& pending = pending_of(batch);
            // Older ones may have been given back, and be filled with others by now.
            if (!pending.shaped && batch >= first) {
                pending.shape.clear();
                pending.shape.leave_out_addresses();
                pending.shaped = pending.batch.ops->append_key(pending.shape, pending.batch.value);
            }
            known = pending.shaped;
            // One after the other, each once: a longer graph of the same batches is of the same kind.
            if (former != nullptr && *former == pending.shape)
                continue;
            append_bytes(kind_, pending.shape.data(), pending.shape.size());
            former = &pending.shape;
        }
        append_bytes(kind_, slot_bytes_.data(), slot_bytes_.size());
        return known;
    }
    bool is_warm(std::size_t first, std::size_t length) {
        copy_slots(*before_launch_->core, slot_bytes_);
        return kind_of(first, length) && std::find(kinds_.begin(), kinds_.end(), kind_) != kinds_.end();
    }
    // `slot_bytes_` are those from before the step.
    void note_warm(std::size_t first, std::size_t length) {
        if (kinds_.size() < most_kinds && kind_of(first, length) &&
            std::find(kinds_.begin(), kinds_.end(), kind_) == kinds_.end())
            kinds_.push_back(kind_);
    }

    static void copy_slots(Core& core, KeyBytes& to) {
        to.clear();
        core.append_slots(to);
    }
    static NotCapturable changes_slots() {
        return NotCapturable(
            "capture refused: a stage changes its slot on the host, which a replay would not do", true);
    }
    // Work under this key changes slots.
    void note_changing() {
        if (std::find(changing_.begin(), changing_.end(), key_) != changing_.end())
            return;
        if (changing_.size() < most_changing)
            changing_.push_back(key_);
        else
            changing_[next_changing_++ % most_changing] = key_;
    }

    // Orders the origin after what captured stages have been handed on their own streams.
    void to_origin(Core& core) {
        if (on_origin_)
            return;
        core.streams.release_to(*origin_);
        on_origin_ = true;
    }
    void to_streams(Core& core) {
        if (!on_origin_)
            return;
        core.streams.join(*origin_);
        on_origin_ = false;
    }

    template <class Visit>
    void for_each_captured(const Until& until, Visit&& visit) {
        std::size_t begin = submitted_, end = 0;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (captured_[stage] && next_[stage] < until[stage]) {
                begin = std::min(begin, next_[stage]);
                end = std::max(end, until[stage]);
            }
        }
        for (std::size_t batch = begin; batch < end; ++batch) {
            Core::for_each_stage([&](auto stage) {
                if (captured_[stage] && batch >= next_[stage] && batch < until[stage])
                    visit(stage, batch);
            });
        }
    }

    void await_uncaptured(Core& core, const Until& until) {
        for_each_captured(until, [&](auto stage, std::size_t batch) {
            for (std::size_t other = 0; other < stages; ++other) {
                if (captured_[other])
                    continue;
                if (Shape::edges.same[stage][other])
                    core.order->wait(*origin_, other, batch);
                if (Shape::edges.former[stage][other] && batch >= slots_)
                    core.order->wait(*origin_, other, batch - slots_);
            }
        });
    }
    void mark_captured(Core& core, const Until& until) {
        for_each_captured(until, [&](auto stage, std::size_t batch) {
            bool event = false, semaphore = false;
            for (std::size_t other = 0; other < stages; ++other) {
                if (captured_[other] ||
                    !(Shape::edges.same[other][stage] || Shape::edges.former[other][stage]))
                    continue;
                (Shape::aside[other] ? semaphore : event) = true;
            }
            core.order->mark(*origin_, stage, batch, event, semaphore);
        });
    }

    void capture_group(Core& core, Ref origin, const Until& until) {
        copy_slots(core, slot_bytes_);
        fork_->record(origin);
        for (const auto& lanes : capture_streams_) {
            for (const BasicStream<B>& lane : lanes)
                lane.wait(*fork_);
        }
        const auto join = [&] {
            for (std::size_t stage = 0; stage < stages; ++stage) {
                for (const BasicStream<B>& lane : capture_streams_[stage]) {
                    fences_[stage]->record(lane);
                    origin.wait(*fences_[stage]);
                }
            }
        };
        const auto call = [&](auto stage, std::size_t batch) {
            const auto& lanes = capture_streams_[stage];
            const Ref stream = lanes[batch % lanes.size()];
            const auto after = [&](std::size_t other, std::size_t of_batch) {
                // What is not in this graph came before it.
                if (captured_[other] && of_batch >= next_[other] && of_batch < until[other])
                    stream.wait(capture_marks_[other][of_batch % slots_]);
            };
            Core::for_each_stage([&](auto other) {
                if constexpr (Shape::edges.same[stage][other])
                    after(other, batch);
                if constexpr (Shape::edges.former[stage][other]) {
                    if (batch >= slots_)
                        after(other, batch - slots_);
                }
            });
            const Given& given = pending_of(batch).batch;
            given.ops->run[stage](core, stream, batch, given.value);
            if constexpr (Shape::edges.awaited[stage])
                capture_marks_[stage][batch % slots_].record(stream);
        };
        try {
            for_each_captured(until, call);
        } catch (...) {
            // Streams that are left out would break the capture, which would then be blamed for what a stage has thrown.
            (void)thrown_text(join);
            throw;
        }
        join();
        copy_slots(core, key_bytes_after_);
        if (!(key_bytes_after_ == slot_bytes_))
            throw changes_slots();
    }

    // Runs what stages that are `chosen` lack, batch by batch, each on its own stream.
    template <class Chosen>
    void run_eagerly(Core& core, const Until& until, Chosen&& chosen) {
        std::size_t begin = submitted_, end = 0;
        bool captured = false;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (!chosen(stage) || next_[stage] >= until[stage])
                continue;
            begin = std::min(begin, next_[stage]);
            end = std::max(end, until[stage]);
            captured = captured || captured_[stage];
        }
        if (begin >= end)
            return;
        replays_ = false;
        if (captured)
            to_streams(core);
        for (std::size_t batch = begin; batch < end; ++batch) {
            Core::for_each_stage([&](auto stage) {
                if (!chosen(stage) || batch != next_[stage] || batch >= until[stage])
                    return;
                run_in_order<stage>(core, batch, pending_of(batch).batch);
                ++next_[stage];
            });
        }
    }

    // Tells sources of the batches that all stages have had that read them.
    void release_read(Core& core) {
        std::size_t end = submitted_;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (Shape::bindings.reads_batch[stage])
                end = std::min(end, next_[stage]);
        }
        for (; released_ < end; ++released_) {
            Hold& hold = pending_of(released_).hold;
            if (!hold)
                continue;
            bool on_origin = false;
            Core::for_each_stage([&](auto stage) {
                if constexpr (Shape::bindings.reads_batch[stage]) {
                    if (captured_[stage] && on_origin_)
                        on_origin = true;
                    else
                        release_batch<stage>(core, released_, hold);
                }
            });
            if (on_origin)
                hold.release(*origin_);
            hold.done();
            hold = {};
        }
    }

    void refuse(const char* reason) {
        if (refusals_++ == 0 && on_refusal_ != nullptr)
            on_refusal_(reason);
    }

    std::size_t slots_;
    GraphCapture<KeyBytes, B> graphs_;
    RefusalHandler on_refusal_;
    std::uint64_t refusals_ = 0;

    std::array<bool, stages> captured_{};
    std::array<std::size_t, stages> lag_{};
    bool any_uncaptured_ = false;
    bool key_batches_ = false; // Whether a captured stage reads the batch.
    std::size_t phases_ = 1;   // After so many batches each slot meets each lane again.
    std::optional<Ref> origin_;
    std::optional<std::size_t> origin_stage_;
    std::size_t longest_ = 1; // Steps of a graph at most,
    bool asked_ = false;      // by the caller's wish.

    std::vector<Pending> pending_;           // a ring, as long as a power of two
    std::size_t started_ = 0;                // All batches before have been through all stages,
    std::size_t grouped_ = 0;                // these are on their way,
    std::size_t submitted_ = 0;              // and these are held.
    std::size_t released_ = 0;               // The first batch whose source has not been told.
    std::array<std::size_t, stages> next_{}; // Each stage's next batch.
    bool replays_ = false;
    bool on_origin_ = false; // Whether captured stages' last work is on the origin.

    std::shared_ptr<BeforeLaunch> before_launch_ = std::make_shared<BeforeLaunch>(*this);
    KeyBytes key_;
    static constexpr std::size_t most_kinds = 64;
    std::vector<KeyBytes> kinds_;
    KeyBytes kind_;
    // Keys whose work changes slots, seen when it ran eagerly.
    static constexpr std::size_t most_changing = 256;
    std::vector<KeyBytes> changing_;
    std::size_t next_changing_ = 0;
    KeyBytes slot_bytes_;
    KeyBytes key_bytes_after_;
    std::array<std::vector<BasicStream<B>>, stages> capture_streams_;
    std::array<std::vector<BasicEvent<B>>, stages> capture_marks_;
    std::array<std::optional<BasicEvent<B>>, stages> fences_;
    std::optional<BasicEvent<B>> fork_;
};

} // namespace sluice::detail
