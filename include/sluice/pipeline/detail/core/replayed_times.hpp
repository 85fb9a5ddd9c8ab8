// When stages worked on batches within graphs of steps: events that the graphs record.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice::detail {

/// The events within one graph of steps, which tell of its latest run.
template <EventNodeBackend B>
class GraphNotes : public ReplayHook<B> {
    using Ref = BasicStreamRef<B>;

public:
    struct Note {
        std::size_t stage;
        std::size_t number; // the batch's
        BasicEvent<B> begin;
        BasicEvent<B> end;
    };

    /// Captured with `first` as the first batch of the graph; `*next` says which it is in the launch that comes next.
    GraphNotes(std::size_t first, Shared<const std::size_t> next) : first_(first), next_(std::move(next)) {}

    /// Between these two, the stage is captured.
    void begin(std::size_t stage, std::size_t batch, Ref stream) {
        notes_.push_back({stage, batch, BasicEvent<B>(EventOptions{.timing = true}),
                          BasicEvent<B>(EventOptions{.timing = true})});
        B::record_external(notes_.back().begin.get(), stream.get());
    }
    void end(Ref stream) { B::record_external(notes_.back().end.get(), stream.get()); }

    void before_replay(ReplayExec<B>) override {}
    void after_replay(Ref) override {
        ran_first_ = *next_;
        ran_ = true;
    }
    void append_own_memory(std::vector<const void*>&) const override {}

    void forget() noexcept { ran_ = false; }
    /// Calls `visit(note, batch)` for what the latest run did, if there was one.
    template <class Visit>
    void visit(Visit&& visit) const {
        for (const Note& note : notes_) {
            if (ran_)
                visit(note, note.number + ran_first_ - first_); // may be before the first
        }
    }

private:
    std::size_t first_;
    std::size_t ran_first_ = 0;
    bool ran_ = false;
    Shared<const std::size_t> next_;
    List<Note> notes_;
};

/// Of all graphs of steps that there are. A graph that is dropped takes its notes with it.
template <class B>
class ReplayedTimes {
public:
    void begin_capture(std::size_t) noexcept {}
    void end_capture() noexcept {}
    void launches(std::size_t) noexcept {}
    bool capturing() const noexcept { return false; }
    void begin(std::size_t, std::size_t, BasicStreamRef<B>) noexcept {}
    void end(BasicStreamRef<B>) noexcept {}
    void clear() noexcept {}
    template <class Visit>
    void visit(Visit&&) const noexcept {}
};
template <EventNodeBackend B>
class ReplayedTimes<B> {
    using Ref = BasicStreamRef<B>;

public:
    /// The capture on the calling thread is that of a graph of steps, of which `first` is the first batch.
    void begin_capture(std::size_t first) {
        capturing_ = nullptr;
        ReplayHooks<B>* const hooks = replay_hooks<B>();
        if (hooks == nullptr)
            return;
        std::size_t left = 0;
        for (auto& graph : graphs_) {
            if (graph.is_there())
                std::swap(graphs_[left++], graph);
        }
        graphs_.resize(left);
        auto notes = make_shared_value<GraphNotes<B>>(first, next_);
        graphs_.push_back(notes);
        capturing_ = notes.get();
        hooks->push_back(std::move(notes));
    }
    void end_capture() noexcept { capturing_ = nullptr; }
    /// The next graph that is launched begins with the batch `first`.
    void launches(std::size_t first) noexcept { *next_ = first; }

    /// Between `begin` and `end`, a stage is captured.
    bool capturing() const noexcept { return capturing_ != nullptr; }
    void begin(std::size_t stage, std::size_t batch, Ref stream) { capturing_->begin(stage, batch, stream); }
    void end(Ref stream) { capturing_->end(stream); }

    void clear() noexcept {
        for (const auto& graph : graphs_) {
            if (const auto notes = graph.lock())
                notes->forget();
        }
    }
    template <class Visit>
    void visit(Visit&& visit) const {
        for (const auto& graph : graphs_) {
            if (const auto notes = graph.lock())
                notes->visit(visit);
        }
    }

private:
    Shared<std::size_t> next_ = make_shared_value<std::size_t>(std::size_t{0});
    List<Watched<GraphNotes<B>>> graphs_;
    GraphNotes<B>* capturing_ = nullptr;
};

} // namespace sluice::detail
