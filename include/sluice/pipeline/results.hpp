/// \file
/// A pipeline's results, as a range.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <sluice/backend/error.hpp>
#include <sluice/pipeline/batch_read.hpp>

namespace sluice {

/// What tells a loop over results to end: a `std::stop_token`, or anything that is called as `bool()`, such as a lambda that reads a
/// `std::atomic<bool>` that a signal handler sets. It is asked on the thread of the loop.
template <class Stop>
concept StopRequest = requires(const Stop& stop) {
    { stop.stop_requested() } -> std::convertible_to<bool>;
}
|| requires(const Stop& stop) {
    { stop() } -> std::convertible_to<bool>;
};

namespace detail {
/// Goes on until the source ends.
struct NeverStop {
    constexpr bool operator()() const noexcept { return false; }
};
/// The batches `next` to `end`, counted since the last reset, that a `run` has submitted and whose results were not given yet.
struct ResultsLeft {
    std::size_t next = 0;
    std::size_t end = 0;
    const void* loop = nullptr; // The `Results` that was begun last.

    /// Throws `Error` unless they are still those of `asking`, and it alone has submitted batches since it began.
    void require(const void* asking, std::size_t submitted) const;
};
/// What a loop can go through.
template <class Source>
concept BatchRange = requires(Source& source) {
    std::begin(source);
    std::end(source);
};
/// What goes through it; of what can't be gone through, anything, so that a sentence is all that the compiler says.
template <class Source>
struct BatchesOf {
    using type = const int*;
};
template <BatchRange Source>
struct BatchesOf<Source> {
    using type = decltype(std::begin(std::declval<Source&>()));
};
/// What `drain` takes for a source.
struct NoBatches {
    static NoBatches& instance() noexcept {
        static NoBatches none;
        return none;
    }
};
} // namespace detail

/// The results of a pipeline for the batches of a source, in order: what `run` and `drain` of `Pipeline` and `AnyPipeline`
/// return. Each is an `Out`. Iterated once. The pipeline and the source must outlive it; it can be neither copied nor moved.
template <class Pipe, class Source, class Out, class Stop = detail::NeverStop>
class Results {
    static_assert(!std::is_void_v<Out>, "sluice::Pipeline::run: the last stage makes nothing; give it an "
                                        "output, with a slot maker, that the loop reads");
    static_assert(
        detail::BatchRange<Source> || std::is_same_v<Source, detail::NoBatches>,
        "sluice::Pipeline::run: the source is no range of batches, since it has no begin() and end(); "
        "give it a Source or a container, and a batch alone to submit");

public:
    /// Asks for nothing yet. Called by `run` and `drain`.
    Results(Pipe& pipeline, Source& source, Stop stop = {})
        : pipeline_(pipeline), source_(source), stop_(std::move(stop)) {
        detail::require_callable("run: the stop request", stop_);
    }
    Results(const Results&) = delete;            ///< Cannot be copied.
    Results& operator=(const Results&) = delete; ///< Cannot be assigned.

    class Iterator;
    /// The first result. Submits as many batches as there are slots, and waits for the first one. Throws `Error`.
    Iterator begin();
    /// Behind the last result.
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    using Batches = typename detail::BatchesOf<Source>::type;
    static constexpr bool has_batches = detail::BatchRange<Source>;

    void advance();
    // Behind each call of code that may use the pipeline: the loop's body, the stop request, a source that fills on this thread.
    void require_own() { pipeline_.core().results_left().require(this, pipeline_.submitted()); }
    bool asked_to_stop() const;
    void submit_ahead();
    bool take_batch();
    void submit_batch();

    Pipe& pipeline_;
    Source& source_;
    [[no_unique_address]] Stop stop_;
    std::optional<Batches> batches_; // Once the first one has been asked for.
    BatchRead read_; // Of `**batches_`, where it may not be there any longer when the next one is.
    bool ended_ = false;
    std::exception_ptr source_error_; // Thrown behind the results of the batches before it.
    const Out* shown_ = nullptr;
};

/// An input iterator over results.
template <class Pipe, class Source, class Out, class Stop>
class Results<Pipe, Source, Out, Stop>::Iterator {
public:
    /// Of iterators: none is ever taken.
    using difference_type = std::ptrdiff_t;
    /// A result.
    using value_type = Out;

    /// At the next result of `results`. Throws `Error`.
    explicit Iterator(Results& results) : results_(&results) { results_->advance(); }
    /// The result. Good, and not written, until the iterator is moved on. Throws `Error` behind the last one.
    std::add_lvalue_reference_t<const Out> operator*() const {
        if (at_end()) [[unlikely]]
            throw Error("run: there is no result behind the last one; compare the iterator with end() first");
        return *results_->shown_;
    }
    /// Gives the result back, submits the next batch, and waits for the next result. Throws `Error`, also where the loop's body has
    /// submitted a batch to the pipeline itself, has reset it, or has begun another loop over its results.
    Iterator& operator++() {
        results_->advance();
        return *this;
    }
    /// The same.
    void operator++(int) { ++*this; }
    /// Whether there are no more results.
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.at_end(); }

private:
    bool at_end() const noexcept { return results_->shown_ == nullptr; }
    Results* results_;
};

template <class Pipe, class Source, class Out, class Stop>
typename Results<Pipe, Source, Out, Stop>::Iterator Results<Pipe, Source, Out, Stop>::begin() {
    detail::ResultsLeft& left = pipeline_.core().results_left();
    const std::size_t submitted = pipeline_.submitted();
    if (left.end != submitted)
        left = {submitted, submitted}; // Later submits have used the slots of what was left.
    left.loop = this;
    if constexpr (has_batches)
        pipeline_.core().begin_results();
    return Iterator(*this);
}

template <class Pipe, class Source, class Out, class Stop>
void Results<Pipe, Source, Out, Stop>::advance() {
    shown_ = nullptr;
    require_own();
    if constexpr (has_batches)
        submit_ahead();
    auto& core = pipeline_.core();
    detail::ResultsLeft& left = core.results_left();
    if (const std::size_t next = core.next_result(left.next); next < left.end) {
        left.next = next;
        shown_ = static_cast<const Out*>(core.await_result(left.next));
        ++left.next;
    } else if (source_error_ != nullptr) {
        std::rethrow_exception(std::exchange(source_error_, nullptr));
    }
}

template <class Pipe, class Source, class Out, class Stop>
bool Results<Pipe, Source, Out, Stop>::asked_to_stop() const {
    if constexpr (requires { stop_.stop_requested(); })
        return stop_.stop_requested();
    else
        return stop_();
}

// Until as many batches are in flight as there are slots.
template <class Pipe, class Source, class Out, class Stop>
void Results<Pipe, Source, Out, Stop>::submit_ahead() {
    while (!ended_ &&
           pipeline_.submitted() - pipeline_.core().results_left().next < pipeline_.core().most_ahead()) {
        ended_ = asked_to_stop(); // What has been submitted is still to come then.
        // Before a batch is taken, which would be lost.
        require_own();
        if (!ended_) {
            read_.wait(); // Asking for the next batch may fill this one again.
            try {
                ended_ = !take_batch();
            } catch (...) {
                source_error_ = std::current_exception();
                ended_ = true;
            }
        }
        require_own();
        if (!ended_)
            submit_batch();
        auto& core = pipeline_.core();
        core.results_left().end = pipeline_.submitted();
        if (ended_)
            core.end_turns();
    }
}

// The next batch, no sooner than it can be submitted: one that a source has given and that is not submitted is lost.
template <class Pipe, class Source, class Out, class Stop>
bool Results<Pipe, Source, Out, Stop>::take_batch() {
    if (batches_)
        ++*batches_;
    else
        batches_.emplace(std::begin(source_));
    return !(*batches_ == std::end(source_));
}

template <class Pipe, class Source, class Out, class Stop>
void Results<Pipe, Source, Out, Stop>::submit_batch() {
    if constexpr (std::is_void_v<decltype(pipeline_.submit(**batches_))>)
        pipeline_.submit(**batches_);
    else if constexpr (std::forward_iterator<Batches>)
        pipeline_.submit(**batches_).stays();
    else
        read_ = pipeline_.submit(**batches_);
}

} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
namespace sluice {

SLUICE_BODY void detail::ResultsLeft::require(const void* asking, std::size_t submitted) const {
    if (loop != asking)
        throw Error(
            "run: within the loop over results the pipeline was reset or replaced, or another loop asked for "
            "its results, so that it has lost those that were still to come; do so behind the loop");
    if (end != submitted)
        throw Error("run: a batch was submitted within the loop over results, and takes the slot of one that "
                    "is still to come; submit it before the loop or behind it, or on another pipeline");
}

} // namespace sluice
#endif
