/// \file
/// What ran when: spans of time on rows, such as the stages of a pipeline on their streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/error.hpp>
#include <sluice/report/detail/numbers.hpp>

namespace sluice {

/// What a span of a timeline was spent with.
enum class SpanKind : std::uint8_t {
    compute, ///< kernels, or a CPU stage's work
    copy,    ///< copies and fills
    source,  ///< filling a batch on the host
    wait,    ///< a thread or a stream waited, and nothing ran
};

/// One span of time on a row of a timeline.
struct TimelineSpan {
    std::size_t row = 0;               ///< Which row, as `Timeline::add_row` numbered it.
    std::size_t batch = 0;             ///< Which batch, counted from 0; it gives the colour.
    double begin = 0;                  ///< Microseconds since the timeline's zero.
    double end = 0;                    ///< Likewise, not before `begin`.
    SpanKind kind = SpanKind::compute; ///< What the time was spent with.
};

/// A row of a timeline: a stage's stream, a worker thread. Its spans may overlap each other.
struct TimelineRow {
    std::string name; ///< Shown beside the row; UTF-8.
    std::string unit; ///< What the row belongs to, such as "GPU 0" or "CPU"; rows of one unit stand together.
};

/// A quantity over time, such as the device memory in use. Its values form a step line: each holds until the next one.
struct TimelineCounter {
    std::string name; ///< Shown beside it; UTF-8.
    std::string
        unit; ///< What its values are in; "B" stands for bytes, which are shown as KiB, MiB and so on.
};

/// One value of a counter.
struct TimelineValue {
    std::size_t counter = 0; ///< Which one, as `Timeline::add_counter` numbered it.
    double time = 0;         ///< Microseconds since the timeline's zero, from when on the value holds.
    double value = 0;        ///< In the counter's unit.
};

/// An order that is missing: nothing makes the work on one row and batch come after the work on another.
struct MissingEdge {
    std::size_t from_row = 0;   ///< Whose end
    std::size_t from_batch = 0; ///< of the work on this batch
    std::size_t to_row = 0;     ///< should come before the begin of this one's
    std::size_t to_batch = 0;   ///< work on this batch.
    std::string text{};         ///< What is wrong, in a sentence; UTF-8.
};

/// Spans of time on named rows, and values of named counters, in the order in which they were added. Not synchronised: one
/// thread at a time.
class Timeline {
public:
    /// An empty one; `title` is shown above it.
    explicit Timeline(std::string title = {}) : title_(std::move(title)) {}
    Timeline(const Timeline&) = default;            ///< The same rows, spans and values.
    Timeline(Timeline&&) noexcept = default;        ///< Leaves the argument empty.
    Timeline& operator=(const Timeline&) = default; ///< The same rows, spans and values.
    /// Leaves the argument empty, unless it is the same one.
    Timeline& operator=(Timeline&& other) noexcept {
        if (this != &other) { // which a vector would lose
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }

    /// Adds a row below the others and returns its number, counted from 0.
    std::size_t add_row(std::string name, std::string unit = {}) {
        rows_.push_back({std::move(name), std::move(unit)});
        return rows_.size() - 1;
    }

    /// Adds a counter below the others and returns its number, counted from 0.
    std::size_t add_counter(std::string name, std::string unit = {}) {
        counters_.push_back({std::move(name), std::move(unit)});
        return counters_.size() - 1;
    }

    /// Adds a span.
    /// \throws Error for a row or a kind that is not there, times that are not finite, or an end before the begin.
    void add(const TimelineSpan& span) {
        if (span.row >= rows_.size()) {
            throw Error("Timeline::add: the span is on row " + std::to_string(span.row) + ", and " +
                        detail::there_are(rows_.size(), "row") + "; add the row first");
        }
        if (!is_finite(span.begin) || !is_finite(span.end)) {
            throw Error("Timeline::add: a span on row '" + rows_[span.row].name + "' lasts from " +
                        detail::numbers::shortest(span.begin) + " us to " +
                        detail::numbers::shortest(span.end) + " us; expected finite times");
        }
        if (span.begin > span.end) {
            throw Error("Timeline::add: a span on row '" + rows_[span.row].name + "' ends at " +
                        detail::numbers::shortest(span.end) + " us, before it begins at " +
                        detail::numbers::shortest(span.begin) + " us");
        }
        detail::require_named("Timeline::add: the span's kind", span.kind, SpanKind::wait,
                              "compute, copy, source or wait");
        spans_.push_back(span);
    }

    /// Adds a value of a counter. Values may come in any order; of those with one time the last that was added holds.
    /// \throws Error for a counter that is not there, or a time or value that is not finite.
    void add_value(std::size_t counter, double time, double value) {
        if (counter >= counters_.size()) {
            throw Error("Timeline::add_value: the value is of counter " + std::to_string(counter) + ", and " +
                        detail::there_are(counters_.size(), "counter") + "; add the counter first");
        }
        if (!is_finite(time) || !is_finite(value)) {
            throw Error("Timeline::add_value: counter '" + counters_[counter].name + "' has the value " +
                        detail::numbers::shortest(value) + " at " + detail::numbers::shortest(time) +
                        " us; expected finite numbers");
        }
        values_.push_back({counter, time, value});
    }

    /// Adds an edge that is missing. It is drawn where both rows have a span of work on these batches.
    /// \throws Error for a row that is not there.
    void add_missing_edge(MissingEdge edge) {
        for (const std::size_t row : {edge.from_row, edge.to_row}) {
            if (row >= rows_.size()) {
                throw Error("Timeline::add_missing_edge: the edge is of row " + std::to_string(row) +
                            ", and " + detail::there_are(rows_.size(), "row") + "; add the row first");
            }
        }
        missing_edges_.push_back(std::move(edge));
    }

    /// How long batches took each, from when they were submitted, or came into being, to the end of their last work; in microseconds.
    /// \throws Error for one that is not finite.
    void set_latencies(std::vector<double> microseconds) {
        for (const double latency : microseconds) {
            if (!is_finite(latency))
                throw Error("Timeline::set_latencies: a latency is " + detail::numbers::shortest(latency) +
                            " us; expected finite times");
        }
        latencies_ = std::move(microseconds);
    }
    /// Empty by default.
    const std::vector<double>& latencies() const noexcept { return latencies_; }

    /// Says where the timeline's zero is on `std::chrono::steady_clock`, in microseconds since that clock's epoch. What was
    /// noted by this clock elsewhere, such as kernels, can then be put beside.
    /// \throws Error for one that is not finite.
    void set_clock_zero(double microseconds) {
        if (!is_finite(microseconds))
            throw Error("Timeline::set_clock_zero: the zero is " + detail::numbers::shortest(microseconds) +
                        " us; expected a finite time");
        clock_zero_ = microseconds;
    }
    /// As `set_clock_zero` said; 0 by default.
    double clock_zero() const noexcept { return clock_zero_; }

    /// Says in a sentence what set the pace, where that is known better than the rows show it.
    void set_sentence(std::string sentence) { sentence_ = std::move(sentence); }
    /// As `set_sentence` said; empty by default.
    const std::string& sentence() const noexcept { return sentence_; }

    const std::string& title() const noexcept { return title_; }               ///< What it was made with.
    const std::vector<TimelineRow>& rows() const noexcept { return rows_; }    ///< By number.
    const std::vector<TimelineSpan>& spans() const noexcept { return spans_; } ///< As they were added.

    /// As they were added.
    const std::vector<MissingEdge>& missing_edges() const noexcept { return missing_edges_; }

    const std::vector<TimelineCounter>& counters() const noexcept { return counters_; } ///< By number.
    const std::vector<TimelineValue>& values() const noexcept { return values_; } ///< As they were added.

    /// The first begin of a span; 0 without spans.
    double begin() const noexcept {
        double first = spans_.empty() ? 0 : spans_.front().begin;
        for (const TimelineSpan& span : spans_)
            first = span.begin < first ? span.begin : first;
        return first;
    }
    /// The last end of a span; 0 without spans.
    double end() const noexcept {
        double last = spans_.empty() ? 0 : spans_.front().end;
        for (const TimelineSpan& span : spans_)
            last = span.end > last ? span.end : last;
        return last;
    }

private:
    static bool is_finite(double value) noexcept { return value - value == 0; }

    std::string title_;
    std::string sentence_;
    double clock_zero_ = 0;
    std::vector<TimelineRow> rows_;
    std::vector<TimelineSpan> spans_;
    std::vector<MissingEdge> missing_edges_;
    std::vector<TimelineCounter> counters_;
    std::vector<TimelineValue> values_;
    std::vector<double> latencies_;
};

} // namespace sluice
