// Bodies of merge_timelines.hpp.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice {

namespace detail::merge {

inline std::string named(const NamedTimeline& part, const std::string& what) {
    return part.name.empty() ? what : part.name + ": " + what;
}

/// The earliest zero of those that have something at a time, or of those that say where theirs is; 0 where none says so.
inline double common_zero(const std::vector<NamedTimeline>& timelines) {
    const NamedTimeline* first = nullptr;
    double of_empty = 0;
    for (const NamedTimeline& part : timelines) {
        if (part.timeline == nullptr)
            throw Error("merge_timelines: the timeline '" + part.name + "' is a null pointer");
        if (part.timeline->spans().empty() && part.timeline->values().empty()) {
            const double zero = part.timeline->clock_zero();
            of_empty = of_empty == 0 || (zero != 0 && zero < of_empty) ? zero : of_empty;
            continue;
        }
        if (first == nullptr) {
            first = &part;
            continue;
        }
        const double zero = part.timeline->clock_zero(), before = first->timeline->clock_zero();
        if ((zero == 0) != (before == 0)) {
            throw Error("merge_timelines: '" + (zero == 0 ? part : *first).name +
                        "' does not say where its zero is, and '" + (zero == 0 ? *first : part).name +
                        "' does; call Timeline::set_clock_zero for all or for none");
        }
        if (zero < before)
            first = &part;
    }
    return first == nullptr ? of_empty : first->timeline->clock_zero();
}

/// Adds the times of a part, whose rows have the numbers `rows` in `merged`.
inline void add_times(const NamedTimeline& part, const std::vector<std::size_t>& rows, Timeline& merged) {
    const Timeline& from = *part.timeline;
    const double later = from.clock_zero() - merged.clock_zero();
    for (TimelineSpan span : from.spans()) {
        span.row = rows[span.row];
        span.begin += later;
        span.end += later;
        merged.add(span);
    }
    for (MissingEdge edge : from.missing_edges()) {
        edge.from_row = rows[edge.from_row];
        edge.to_row = rows[edge.to_row];
        merged.add_missing_edge(std::move(edge));
    }
    const std::size_t first_counter = merged.counters().size();
    for (const TimelineCounter& counter : from.counters())
        merged.add_counter(named(part, counter.name), counter.unit);
    for (const TimelineValue& value : from.values())
        merged.add_value(first_counter + value.counter, value.time + later, value.value);
}

} // namespace detail::merge

inline Timeline merge_timelines(const std::vector<NamedTimeline>& timelines, std::string title) {
    Timeline merged(std::move(title));
    merged.set_clock_zero(detail::merge::common_zero(timelines));
    std::vector<std::vector<std::size_t>> rows(timelines.size());
    for (const bool on_cpu : {false, true}) {
        for (std::size_t i = 0; i < timelines.size(); ++i) {
            const std::vector<TimelineRow>& from = timelines[i].timeline->rows();
            rows[i].resize(from.size());
            for (std::size_t row = 0; row < from.size(); ++row) {
                if ((from[row].unit == "CPU") == on_cpu)
                    rows[i][row] =
                        merged.add_row(detail::merge::named(timelines[i], from[row].name), from[row].unit);
            }
        }
    }
    std::string sentences;
    std::vector<double> latencies;
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        detail::merge::add_times(timelines[i], rows[i], merged);
        const std::vector<double>& own = timelines[i].timeline->latencies();
        latencies.insert(latencies.end(), own.begin(), own.end());
        const std::string& sentence = timelines[i].timeline->sentence();
        if (!sentence.empty())
            sentences += (sentences.empty() ? "" : " ") + detail::merge::named(timelines[i], sentence);
    }
    merged.set_sentence(std::move(sentences));
    merged.set_latencies(std::move(latencies));
    return merged;
}

} // namespace sluice
