// What all drawings of a timeline share: checked times, rows by unit, and lanes in which nothing overlaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/backend/error.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice::detail::drawing {

/// The largest time, in microseconds: 30 years. What is drawn in nanoseconds must fit into 64 bits.
inline constexpr double largest_time = 1e15;

/// Refuses times that no axis can show. `who` is the public function.
inline void check_times(const char* who, const Timeline& timeline) {
    for (const TimelineSpan& span : timeline.spans()) {
        if (span.begin < -largest_time || span.end > largest_time)
            throw Error(std::string(who) + ": a span on row '" + timeline.rows()[span.row].name +
                        "' lasts from " + numbers::shortest(span.begin) + " to " +
                        numbers::shortest(span.end) + " us, and times must be within 1e15 us");
    }
    for (const TimelineValue& value : timeline.values()) {
        if (value.time < -largest_time || value.time > largest_time)
            throw Error(std::string(who) + ": a value of counter '" +
                        timeline.counters()[value.counter].name + "' is of " + numbers::shortest(value.time) +
                        " us, and times must be within 1e15 us");
    }
}

/// Likewise of all of them, and null pointers.
inline void check_timelines(const char* who, const std::vector<const Timeline*>& timelines) {
    for (const Timeline* timeline : timelines) {
        if (timeline == nullptr)
            throw Error(std::string(who) + ": a timeline's pointer is null");
        check_times(who, *timeline);
    }
}

/// Rows of one unit, in the order of their numbers.
struct Unit {
    std::string name;
    std::vector<std::size_t> rows;
};

/// The units in the order of their first rows.
inline std::vector<Unit> units_of(const Timeline& timeline) {
    std::vector<Unit> units;
    for (std::size_t row = 0; row < timeline.rows().size(); ++row) {
        const std::string& name = timeline.rows()[row].unit;
        auto unit = units.begin();
        while (unit != units.end() && unit->name != name)
            ++unit;
        if (unit == units.end())
            unit = units.insert(units.end(), Unit{name, {}});
        unit->rows.push_back(row);
    }
    return units;
}

/// A span with its place among the lanes of its row.
struct Placed {
    TimelineSpan span;
    std::size_t lane = 0;
};

/// A row's spans by begin, and how many lanes they take.
struct Lanes {
    std::vector<Placed> spans;
    std::size_t count = 1;
};

/// Puts every span into the first lane that is free at its begin, so that spans of one lane never overlap.
/// A span that begins where another ends may follow it in the same lane.
inline void place(Lanes& row) {
    std::sort(row.spans.begin(), row.spans.end(), [](const Placed& a, const Placed& b) {
        if (a.span.begin != b.span.begin)
            return a.span.begin < b.span.begin;
        return a.span.end != b.span.end ? a.span.end < b.span.end : a.span.batch < b.span.batch;
    });
    struct Busy {
        double end;
        std::size_t lane;
    };
    const auto later = [](const Busy& a, const Busy& b) { return a.end > b.end; };
    const auto higher = [](std::size_t a, std::size_t b) { return a > b; };
    std::vector<Busy> busy;        // a heap, the first end in front
    std::vector<std::size_t> idle; // a heap, the lowest lane in front
    std::size_t count = 0;
    for (Placed& placed : row.spans) {
        while (!busy.empty() && busy.front().end <= placed.span.begin) {
            std::pop_heap(busy.begin(), busy.end(), later);
            idle.push_back(busy.back().lane);
            std::push_heap(idle.begin(), idle.end(), higher);
            busy.pop_back();
        }
        if (idle.empty()) {
            placed.lane = count++;
        } else {
            std::pop_heap(idle.begin(), idle.end(), higher);
            placed.lane = idle.back();
            idle.pop_back();
        }
        busy.push_back({placed.span.end, placed.lane});
        std::push_heap(busy.begin(), busy.end(), later);
    }
    row.count = count > 0 ? count : 1;
}

/// By row: the spans that are seen between `begin` and `end`, placed. One that only touches them is not, unless it lasts no time.
inline std::vector<Lanes> lanes_of(const Timeline& timeline, double begin, double end) {
    std::vector<Lanes> rows(timeline.rows().size());
    for (const TimelineSpan& span : timeline.spans()) {
        const bool instant = span.begin == span.end;
        if (instant ? span.end >= begin && span.begin <= end : span.end > begin && span.begin < end)
            rows[span.row].spans.push_back({span, 0});
    }
    for (Lanes& row : rows)
        place(row);
    return rows;
}

} // namespace sluice::detail::drawing
