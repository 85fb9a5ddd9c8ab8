/// \file
/// The graphs of a pipeline's steps, and the order between them and stages that are not captured.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <sluice/graph/graph_capture.hpp>

namespace sluice::detail {

/// One address for each type.
template <class T>
inline constexpr char type_tag = 0;

/// What tells a batch from others, as far as a captured step is concerned.
struct BatchKey {
    static constexpr std::size_t capacity = 256;

    const void* type = nullptr; // Null: it cannot be told.
    std::size_t size = 0;
    const void* bytes = nullptr;
    const void* place = nullptr;

    /// The batch's own bits, where they are all there is to it.
    template <class Batch>
    static BatchKey of_value(const Batch& batch) noexcept {
        if constexpr (std::is_trivially_copyable_v<Batch> && sizeof(Batch) <= capacity)
            return {.type = &type_tag<Batch>, .size = sizeof(Batch), .bytes = &batch};
        return {};
    }
    /// The place of a batch whose contents stay the same on the host, as a source's slots do.
    template <class Batch>
    static BatchKey of_place(const Batch& batch) noexcept {
        return {.type = &type_tag<Batch>, .place = &batch};
    }
};

/// The key of a captured step.
class StepKey {
public:
    StepKey(std::size_t phase, const BatchKey& batch) noexcept
        : phase_(phase), type_(batch.type), place_(batch.place), size_(batch.size) {
        if (size_ > 0)
            std::memcpy(bytes_.data(), batch.bytes, size_);
    }
    StepKey(const StepKey& other) noexcept { *this = other; }
    StepKey& operator=(const StepKey& other) noexcept {
        phase_ = other.phase_;
        type_ = other.type_;
        place_ = other.place_;
        size_ = other.size_;
        std::memcpy(bytes_.data(), other.bytes_.data(), size_);
        return *this;
    }
    friend bool operator==(const StepKey& a, const StepKey& b) noexcept {
        return a.phase_ == b.phase_ && a.type_ == b.type_ && a.place_ == b.place_ && a.size_ == b.size_ &&
               std::memcmp(a.bytes_.data(), b.bytes_.data(), a.size_) == 0;
    }

private:
    std::size_t phase_;
    const void* type_;
    const void* place_;
    std::size_t size_;
    std::array<std::byte, BatchKey::capacity> bytes_; // The first `size_` have values.
};

/// The graphs of the steps of `Stages` stages, and one event for each participant in the order between steps: the
/// captured stages together, and each stage that is not captured.
template <Backend B, std::size_t Stages>
class StepGraphs {
public:
    using Ref = BasicStreamRef<B>;

    /// Makes what is needed for graphed steps; without this call nothing is.
    void prepare(const GraphOptions& options) { state_.emplace(options); }

    /// Stage `stage` runs on `stream`, captured or not.
    void add(std::size_t stage, Ref stream, bool captured) {
        if (captured) {
            captured_[stage] = true;
            if (!origin_)
                origin_ = stream;
        } else {
            uncaptured_ = true;
        }
        streams_[stage] = stream;
    }
    bool captured(std::size_t stage) const noexcept { return captured_[stage]; }
    bool any_uncaptured() const noexcept { return uncaptured_; }
    /// The stream that graphs are launched on: the first captured stage's. Empty when there is none.
    const std::optional<Ref>& origin() const noexcept { return origin_; }

    /// Orders this step of every participant after the former step of all others.
    void begin_step() {
        if (!uncaptured_)
            return;
        for (std::size_t stage = 0; stage < Stages; ++stage) {
            if (captured_[stage])
                continue;
            if (origin_) {
                origin_->wait(state_->done[stage]);
                streams_[stage]->wait(state_->origin_done);
            }
            for (std::size_t other = 0; other < Stages; ++other) {
                if (other != stage && !captured_[other])
                    streams_[stage]->wait(state_->done[other]);
            }
        }
    }
    void end_captured() {
        if (uncaptured_ && origin_)
            state_->origin_done.record(*origin_);
    }
    void end_uncaptured(std::size_t stage) { state_->done[stage].record(*streams_[stage]); }

    /// Runs `work(stream)` on the origin, as a graph once it has been captured.
    template <class F>
    void run(const StepKey& key, F&& work) {
        if constexpr (GraphBackend<B>)
            state_->graphs.run(*origin_, key, std::forward<F>(work));
    }
    /// Says once why steps are not captured.
    void refuse(const char* reason) {
        if (!state_->refused && state_->options.on_refusal != nullptr)
            state_->options.on_refusal(reason);
        state_->refused = true;
        ++state_->refusals;
    }

    /// Waits for eager runs aside, and throws their faults; forgets them.
    void finish() const {
        if constexpr (GraphBackend<B>) {
            if (state_)
                state_->graphs.finish();
        }
    }
    void clear_failure() noexcept {
        if constexpr (GraphBackend<B>) {
            if (state_)
                state_->graphs.clear_failure();
        }
    }

    /// Orders later work on all captured stages' streams after `origin`, and back.
    void fork(Ref origin) {
        state_->fence.record(origin);
        for (std::size_t stage = 0; stage < Stages; ++stage) {
            if (captured_[stage] && *streams_[stage] != origin)
                streams_[stage]->wait(state_->fence);
        }
    }
    void join(Ref origin) {
        for (std::size_t stage = 0; stage < Stages; ++stage) {
            if (!captured_[stage] || *streams_[stage] == origin)
                continue;
            state_->fence.record(*streams_[stage]);
            origin.wait(state_->fence);
        }
    }

    GraphCounters counters() const noexcept {
        GraphCounters counters;
        if constexpr (GraphBackend<B>) {
            if (state_) {
                counters = state_->graphs.counters();
                counters.refusals += state_->refusals;
            }
        }
        return counters;
    }

private:
    // A backend without graphs has pipelines all the same.
    template <class T>
    struct Cache {
        struct type {
            explicit type(const GraphOptions&) {}
        };
    };
    template <GraphBackend T>
    struct Cache<T> {
        using type = GraphCapture<StepKey, T>;
    };
    struct State {
        explicit State(const GraphOptions& given) : options(given), graphs(given) {}
        GraphOptions options;
        typename Cache<B>::type graphs;
        BasicEvent<B> fence;
        BasicEvent<B> origin_done;
        std::array<BasicEvent<B>, Stages> done;
        bool refused = false;
        std::uint64_t refusals = 0;
    };

    std::optional<State> state_;
    std::array<std::optional<Ref>, Stages> streams_;
    std::array<bool, Stages> captured_{};
    bool uncaptured_ = false;
    std::optional<Ref> origin_;
};

} // namespace sluice::detail
