/// \file
/// A pipeline's results, as a range.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include <sluice/backend/config.hpp>

namespace sluice {

/// The results of a pipeline for the batches of a source, in order: what `Pipeline::run` and `AnyPipeline::run` return.
/// Each is an `Out`. Iterated once. The pipeline and the source must outlive it; it can be neither copied nor moved.
template <class Pipe, class Source, class Out>
class Results {
public:
    /// Asks for nothing yet. Called by `run`.
    Results(Pipe& pipeline, Source& source)
        : pipeline_(pipeline), next_(std::begin(source)), end_(std::end(source)),
          taken_(pipeline.submitted()) {}
    Results(const Results&) = delete;            ///< Cannot be copied.
    Results& operator=(const Results&) = delete; ///< Cannot be assigned.

    class Iterator;
    /// The first result. Submits as many batches as there are slots, and waits for the first one. Throws `Error`.
    Iterator begin() { return Iterator(*this); }
    /// Behind the last result.
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    void advance();

    Pipe& pipeline_;
    decltype(std::begin(std::declval<Source&>())) next_;
    decltype(std::end(std::declval<Source&>())) end_;
    std::size_t taken_;
    bool submitted_ = false; // Whether `*next_` has been.
    const Out* shown_ = nullptr;
};

/// An input iterator over results.
template <class Pipe, class Source, class Out>
class Results<Pipe, Source, Out>::Iterator {
public:
    /// Of iterators: none is ever taken.
    using difference_type = std::ptrdiff_t;
    /// A result.
    using value_type = Out;

    /// At the next result of `results`. Throws `Error`.
    explicit Iterator(Results& results) : results_(&results) { results_->advance(); }
    /// The result. Good, and not written, until the iterator is moved on.
    std::add_lvalue_reference_t<const Out> operator*() const noexcept { return *results_->shown_; }
    /// Gives the result back, submits the next batch, and waits for the next result. Throws `Error`.
    Iterator& operator++() {
        ++results_->taken_;
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

template <class Pipe, class Source, class Out>
void Results<Pipe, Source, Out>::advance() {
    shown_ = nullptr;
    const auto slots = static_cast<std::size_t>(pipeline_.options().slots);
    while (pipeline_.submitted() - taken_ < slots) {
        // Only now, since a batch that a source has given and nobody submits is lost.
        if (submitted_)
            ++next_;
        submitted_ = !(next_ == end_);
        if (!submitted_)
            break;
        pipeline_.submit(*next_);
    }
    if (taken_ < pipeline_.submitted())
        shown_ = &pipeline_.template await_result<Out>(taken_);
}

} // namespace sluice
