// Bodies of pipeline_core.hpp: batches that are under way or have been read, and stages that run once for several.
#pragma once

#include <utility>

#include <sluice/pipeline/detail/core/in_flight.hpp>

namespace sluice::detail {

// Nothing is held any longer: the caller may fill a batch again once it has been read.
template <Backend B>
void PipelineCore<B>::hand_on() {
    core_.checks.let_go(true);
    executor_->flush(core_);
}

// Waits until no more batches are under way than may be.
template <Backend B>
void PipelineCore<B>::await_room() {
    const std::int64_t begun = watched_ ? StageTimes<B>::now() : 0;
    InFlight<B>& in_flight = parts_->in_flight;
    while (submitted_ >= in_flight.completed() + in_flight.limit()) {
        // A caller that has asked for no bound may signal later what a stage waits for.
        if (options_.in_flight == 0 && core_.streams.lack_signals()) {
            room_until_ = submitted_ + 1;
            return;
        }
        if (in_flight.await_oldest(core_))
            continue;
        hand_on(); // What is held ends nowhere yet.
        mark_end();
    }
    room_until_ = in_flight.completed() + in_flight.limit();
    if (watched_) [[unlikely]]
        room_ += StageTimes<B>::now() - begun;
}

// Sets a mark behind the batches whose work has been handed to streams whole.
template <Backend B>
void PipelineCore<B>::mark_end() {
    std::size_t end = submitted_;
    for (std::size_t stage = 0; stage < core_.stages(); ++stage)
        end = smaller(end, executor_->next_of(stage));
    InFlight<B>& in_flight = parts_->in_flight;
    // Before the new mark, which the stages are not behind yet: a device takes longest to say no.
    const bool looks = in_flight.is_sparse() && end > in_flight.marked();
    if (looks)
        in_flight.look_quietly(core_);
    const bool marked = in_flight.mark(core_, *executor_, end);
    mark_at_ = marked ? in_flight.due() : submitted_ + 1;
    if (looks)
        room_until_ = in_flight.completed() + in_flight.limit();
}

template <Backend B>
std::size_t PipelineCore<B>::completed() {
    const Call call(*this, "completed");
    require_sound("completed", true); // or a loop until all are through would have no end
    InFlight<B>& in_flight = parts_->in_flight;
    or_fail([&] {
        in_flight.look(core_);
        // A caller that asks again, with nothing submitted in between, waits for what is held, or not looked at yet.
        const bool again = std::exchange(counted_at_, submitted_) == submitted_;
        if (again && in_flight.completed() < submitted_ && !in_flight.any()) {
            hand_on();
            mark_end();
        }
    });
    room_until_ = in_flight.completed() + in_flight.limit();
    return in_flight.completed();
}

template <Backend B>
void PipelineCore<B>::wait_for_room() {
    const Call call(*this, "wait_for_room");
    require_sound("wait_for_room", true);
    or_fail([&] {
        if (submitted_ >= room_until_)
            await_room();
        throw_known_fault();
    });
}

template <Backend B>
bool PipelineCore<B>::has_room() {
    const Call call(*this, "try_submit");
    require_sound("try_submit", true);
    bool room = true;
    or_fail([&] {
        throw_known_fault();
        InFlight<B>& in_flight = parts_->in_flight;
        if (submitted_ >= room_until_) {
            in_flight.look(core_);
            room_until_ = in_flight.completed() + in_flight.limit();
            room = submitted_ < room_until_;
            if (!room && !in_flight.any()) {
                hand_on(); // What is held would never end.
                mark_end();
            }
        }
        for_each_host_reader(
            [&](std::size_t reader, std::size_t batch) { room = room && is_through(reader, batch); });
    });
    dropped_ += room ? 0 : 1;
    trying_ = room;
    return room;
}

// Whether all stages that take the batch have read it.
template <Backend B>
bool PipelineCore<B>::is_read(std::size_t number) {
    const Call call(*this, "BatchRead::is_ready");
    if (failure_ || number < parts_->in_flight.completed())
        return true;
    if (any_external_) [[unlikely]]
        require_not_captured("BatchRead::is_ready", false);
    bool read = true;
    or_fail([&] {
        std::size_t held = submitted_; // the first batch that is not on its way
        for (std::size_t stage = 0; stage < core_.stages(); ++stage) {
            if (!core_.plan.stages[stage].reads_batch)
                continue;
            held = smaller(held, executor_->next_of(stage));
            read = read && is_through(stage, number);
        }
        // A caller that asks for one again, with nothing submitted in between, submits nothing until it is read. More
        // questions than batches are held ask for one again, in whatever order.
        if (held <= number) {
            if (std::exchange(polled_at_, submitted_) != submitted_)
                polls_ = 0;
            const bool same = std::exchange(polled_, number) == number && polls_ > 0;
            if (same || ++polls_ > submitted_ - held)
                hand_on();
        }
        throw_known_fault();
    });
    return read;
}

// All that was submitted has ended, or is forgotten.
template <Backend B>
void PipelineCore<B>::at_rest() noexcept {
    parts_->in_flight.at_rest(submitted_);
    room_until_ = submitted_ + parts_->in_flight.limit();
    mark_at_ = parts_->in_flight.due();
}

template <Backend B>
std::size_t PipelineCore<B>::batches_a_result() const noexcept {
    return core_.rates.batches_an_output(core_.stages() - 1);
}

template <Backend B>
std::size_t PipelineCore<B>::most_ahead() const noexcept {
    // Results of a loop that ended with fewer batches than one is made of come first: where all begins anew a second time, their
    // slots are forgotten.
    if (results_left_.next < core_.rates.begin())
        return 0;
    return static_cast<std::size_t>(options_.slots) * batches_a_result();
}

template <Backend B>
std::size_t PipelineCore<B>::next_result(std::size_t next) const noexcept {
    return core_.rates.next_output(core_.stages() - 1, next);
}

template <Backend B>
void PipelineCore<B>::end_turns() {
    if (!core_.rates.any())
        return;
    const Call call(*this, "run");
    or_fail([&] { end_all(); });
}

// All that was submitted passes all stages, and the calling thread waits for that.
template <Backend B>
void PipelineCore<B>::end_all() {
    run_turns();
    leave();
    sync();
    begin_turns_anew();
    throw_known_fault();
    if (tuning_ && parts_->tuner->given_up())
        end_trial();
}

// Runs the stages that run once for several batches for those that there are, behind all that was submitted.
template <Backend B>
void PipelineCore<B>::run_turns() {
    if (core_.rates.is_whole(submitted_))
        return;
    throw_known_fault();
    enter();
    executor_->flush(core_);
    for (std::size_t stage = 0; stage < core_.stages(); ++stage) {
        if (!core_.rates.runs(stage, submitted_ - 1))
            executor_->run_behind_last(core_, stage, submitted_ - 1, last_);
    }
}

// Later batches are others than those that stages have run for. Nothing is under way.
template <Backend B>
void PipelineCore<B>::begin_turns_anew() {
    if (core_.rates.is_whole(submitted_))
        return;
    core_.rates.begin_anew(submitted_);
    core_.slots.lay_out_rows(core_.plan, core_.rates);
    executor_->reset(); // Graphs are of the slots that were next.
    executor_->start_at(submitted_);
}

} // namespace sluice::detail
