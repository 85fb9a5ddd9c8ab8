// When stages worked on batches: events before and after, for the last batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/detail/core/noted_windows.hpp>
#include <sluice/pipeline/detail/core/replayed_times.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

/// How work is noted.
enum class TimedWork : std::uint8_t { not_at_all, by_itself, in_a_graph };

/// A ring of notes for each stage, one for graphs of whole steps, and one for calls of `submit`, each of two windows of
/// batches. All events are made beforehand. Events say when streams work, relative to one that is recorded, while the
/// clock is read, when times are asked for: milliseconds between events are floats, which tell times of the last seconds well
/// and those of an hour ago badly. The clock says when threads work.
template <Backend B>
class StageTimes {
    using Ref = BasicStreamRef<B>;

public:
    /// Of the last `batches` batches of so many stages.
    StageTimes(std::size_t stages, int batches)
        : batches_(static_cast<std::size_t>(batches)), windows_(batches_) {
        rings_.resize(stages + 2);
        add_thread(stages + 1);
    }

    /// Makes the events of a stage that works on `stream`, with its device current.
    void add_stream(std::size_t stage, Ref stream) {
        Ring& ring = rings_[stage];
        ring.notes.resize(2 * batches_);
        for (Note& note : ring.notes) {
            note.begin = make_owned<BasicEvent<B>>(EventOptions{.timing = true});
            note.end = make_owned<BasicEvent<B>>(EventOptions{.timing = true});
        }
        ring.stream = stream;
    }
    /// Graphs of whole steps follow each other on `stream`.
    void add_graphs(Ref stream) { add_stream(rings_.size() - 2, stream); }
    void add_thread(std::size_t stage) { rings_[stage].notes.resize(2 * batches_); }

    /// `batch` is submitted next: only now is it decided whether it is noted.
    void comes(std::size_t batch) noexcept { windows_.comes(batch, now()); }

    /// Whether work that `stream` is handed now takes place by itself, and not in replays.
    static bool can_time(Ref stream) {
        if constexpr (GraphBackend<B>)
            return !B::is_capturing(stream.get());
        else
            return true;
    }
    /// Between these two, the stream is handed the stage's work on the batch. A stage that `follows` comes right behind the one
    /// before it on the same stream: where that one ends it begins, and one event serves for both.
    void begin(std::size_t stage, std::size_t batch, Ref stream, bool follows = false) {
        Note& note = note_of(stage, batch);
        note.follows = follows;
        if (!follows)
            note.begin->record(stream);
        note.kind = Kind::begun;
        note.batch = batch;
    }
    void end(std::size_t stage, std::size_t batch, Ref stream) {
        Note& note = note_of(stage, batch);
        note.end->record(stream);
        note.kind = Kind::on_stream;
    }

    /// The same of work that may be captured: a graph of steps then notes when it runs.
    TimedWork begin_work(std::size_t stage, std::size_t batch, Ref stream, bool follows) {
        if (can_time(stream)) {
            if (!windows_.hold(batch))
                return TimedWork::not_at_all;
            begin(stage, batch, stream, follows);
            return TimedWork::by_itself;
        }
        if (!replayed_.capturing())
            return TimedWork::not_at_all;
        replayed_.begin(stage, batch, stream);
        return TimedWork::in_a_graph;
    }
    void end_work(TimedWork how, std::size_t stage, std::size_t batch, Ref stream) {
        if (how == TimedWork::by_itself)
            end(stage, batch, stream);
        else
            replayed_.end(stream);
    }
    /// The same of a graph of whole steps, of which the batch is the first.
    void begin_graph(std::size_t batch, Ref stream) {
        if (!windows_.hold(batch))
            return;
        begin(rings_.size() - 2, batch, stream);
        replayed_.launches(batch);
    }
    void end_graph(std::size_t batch, Ref stream) {
        if (windows_.hold(batch))
            end(rings_.size() - 2, batch, stream);
    }
    /// Which graph works on `length` batches from `first` on, where all is as it was after each `phases` batches: 0 for one
    /// that notes nothing. A graph tells of its latest run alone. So several take turns, for so many batches, unless a
    /// source's slots have them do so anyway.
    static constexpr std::size_t batches_in_turn = 16;
    std::size_t turn_of(std::size_t first, std::size_t phases, std::size_t length,
                        bool in_turn_anyway) const noexcept {
        if (!windows_.hold(first))
            return 0;
        std::size_t round = length;
        while (round % phases != 0)
            round += length;
        return 1 +
               (round < batches_in_turn && !in_turn_anyway ? first / round % (batches_in_turn / round) : 0);
    }
    /// Whether a graph that begins with `first` notes when its stages work.
    bool notes(std::size_t first) const noexcept { return windows_.hold(first); }
    /// What stages do within graphs of steps.
    ReplayedTimes<B>& replayed() noexcept { return replayed_; }

    /// Between these two, the calling thread works on the batch.
    static std::int64_t now() noexcept { return steady_nanoseconds(); }
    void note_thread(std::size_t stage, std::size_t batch, std::int64_t begun) noexcept {
        if (!windows_.hold(batch))
            return;
        Note& note = note_of(stage, batch);
        note.begun = begun;
        note.ended = now();
        note.batch = batch;
        note.kind = Kind::on_thread;
    }

    /// The same of the call of `submit` for it, which tells more. Throws what `batch_time` does.
    template <class Given>
    void note_submit(std::size_t number, std::int64_t begun, std::int64_t waited, std::int64_t reading,
                     std::int64_t results, const Given& batch) {
        if (!windows_.hold(number))
            return;
        note_thread(submits(), number, begun);
        Note& note = note_of(submits(), number);
        note.waited = waited;
        note.reading = reading;
        note.results = results;
        note.made = batch.ops->made_at != nullptr ? batch.ops->made_at(batch.value) : 0;
        note.used = thread_nanoseconds();
    }

    void clear() noexcept {
        for (Ring& ring : rings_) {
            for (Note& note : ring.notes)
                note.kind = Kind::none;
        }
        replayed_.clear();
        windows_.restart();
    }

    /// Of all work that is over, of the last window that was noted: stage by stage, and of each in the order of the batches.
    /// No batch may be in flight. `runs(stage, batch)` tells for which batches a stage runs.
    template <class Runs>
    std::vector<StageTime> all(Runs&& runs) const {
        std::vector<StageTime> times;
        List<Zero> zeros;
        const std::size_t stages = rings_.size() - 2;
        for (std::size_t stage = 0; stage < stages; ++stage)
            append(times, stage, zeros);
        replayed_.visit([&](const auto& note, std::size_t batch) {
            if (note.end.is_done())
                times.push_back(between(note.begin, note.end, note.stage, batch,
                                        zero_of(zeros, *rings_[note.stage].stream)));
        });
        const std::size_t last = keep_last_run(times, batches_, runs);
        std::vector<StageTime> graphs;
        append(graphs, stages, zeros);
        for (const StageTime& graph : graphs) {
            if (times.empty() ||
                (graph.batch >= windows_.stretch_before(last) && graph.batch < windows_.end_of(last)))
                times.push_back(graph);
        }
        return times;
    }
    /// Of the calls of `submit`, likewise.
    std::vector<StageTime> of_submits() const {
        std::vector<StageTime> times;
        List<Zero> zeros;
        append(times, rings_.size() - 1, zeros);
        keep_last_run(times, batches_);
        return times;
    }
    std::size_t submits() const noexcept { return rings_.size() - 1; }

private:
    enum class Kind : std::uint8_t { none, begun, on_stream, on_thread };
    struct Note {
        Owned<BasicEvent<B>> begin;
        Owned<BasicEvent<B>> end;
        std::int64_t begun = 0;
        std::int64_t ended = 0;
        std::int64_t waited = 0;
        std::int64_t reading = 0;
        std::int64_t made = 0;
        std::int64_t used = 0;
        std::int64_t results = 0;
        std::size_t batch = 0;
        bool follows = false;
        Kind kind = Kind::none;
    };
    struct Ring {
        List<Note> notes;
        std::optional<Ref> stream; // whose device the events belong to
    };
    /// Where the clock is at an event of a device.
    struct Zero {
        int device;
        Owned<BasicEvent<B>> event;
        double at; // in microseconds
    };

    Note& note_of(std::size_t stage, std::size_t batch) noexcept {
        return rings_[stage].notes[batch % (2 * batches_)];
    }

    // Of several attempts the one in which least time went by between two looks at the clock. On a machine with
    // nothing else to do that is 10 µs; a GPU that other programs use, too, may need many attempts.
    static const Zero& zero_of(List<Zero>& zeros, Ref stream) {
        const int device = stream.device();
        for (const Zero& zero : zeros) {
            if (zero.device == device)
                return zero;
        }
        const DeviceGuard<B> guard(device);
        stream.sync();
        Zero& zero = zeros.emplace_back(Zero{device, nullptr, 0});
        std::int64_t least = 0;
        constexpr std::int64_t near_enough = 20'000; // in nanoseconds
        for (int attempt = 0; attempt < 5 || (attempt < 50 && least > near_enough); ++attempt) {
            auto event = make_owned<BasicEvent<B>>(EventOptions{.timing = true});
            const std::int64_t before = now();
            event->record(stream);
            event->sync();
            const std::int64_t after = now();
            if (attempt > 0 && after - before >= least)
                continue;
            least = after - before;
            zero.event = std::move(event);
            zero.at = (static_cast<double>(before) + static_cast<double>(after)) / 2000;
        }
        return zero;
    }
    void append(std::vector<StageTime>& times, std::size_t stage, List<Zero>& zeros) const {
        const Ring& ring = rings_[stage];
        // The oldest batch is noted behind the newest.
        std::size_t oldest = 0;
        for (std::size_t i = 1; i < ring.notes.size(); ++i) {
            if (ring.notes[i].kind != Kind::none &&
                (ring.notes[oldest].kind == Kind::none || ring.notes[i].batch < ring.notes[oldest].batch))
                oldest = i;
        }
        for (std::size_t i = 0; i < ring.notes.size(); ++i) {
            const Note& note = ring.notes[(oldest + i) % ring.notes.size()];
            if (note.kind == Kind::on_thread) {
                const auto microseconds = [](std::int64_t time) { return static_cast<double>(time) / 1000; };
                times.push_back({stage, note.batch, microseconds(note.begun), microseconds(note.ended),
                                 microseconds(note.waited), microseconds(note.reading),
                                 microseconds(note.made), microseconds(note.used),
                                 microseconds(note.results)});
            } else if (note.kind == Kind::on_stream && note.end->is_done()) {
                const Zero& zero = zero_of(zeros, *ring.stream);
                const BasicEvent<B>& begin =
                    note.follows ? *rings_[stage - 1].notes[note.batch % (2 * batches_)].end : *note.begin;
                times.push_back(between(begin, *note.end, stage, note.batch, zero));
            }
        }
    }
    static StageTime between(const BasicEvent<B>& begin, const BasicEvent<B>& end, std::size_t stage,
                             std::size_t batch, const Zero& zero) {
        const double at = zero.at - microseconds(end, *zero.event);
        return {stage, batch, at - microseconds(begin, end), at, 0};
    }
    static double microseconds(const BasicEvent<B>& from, const BasicEvent<B>& to) {
        return 1000 * static_cast<double>(elapsed_milliseconds(from, to));
    }

    std::size_t batches_; // of a window
    NotedWindows windows_;
    List<Ring> rings_;
    ReplayedTimes<B> replayed_;
};

/// Has a graph of steps note when its stages work, where times are noted, for the length of its capture.
template <Backend B>
class StepsCapture {
public:
    StepsCapture(Maybe<StageTimes<B>>& times, std::size_t first)
        : replayed_(times && times->notes(first) ? &times->replayed() : nullptr) {
        if (replayed_ != nullptr)
            replayed_->begin_capture(first);
    }
    StepsCapture& operator=(StepsCapture&&) = delete;
    ~StepsCapture() {
        if (replayed_ != nullptr)
            replayed_->end_capture();
    }

private:
    ReplayedTimes<B>* replayed_;
};

/// The options of `core`'s graphs of steps.
template <class Core>
GraphOptions options_for(const Core& core, GraphOptions options) {
    if (core.times)
        options.capacity *= core.times->batches_in_turn + 1;
    return options;
}

} // namespace sluice::detail
