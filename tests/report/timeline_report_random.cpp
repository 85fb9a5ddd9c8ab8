// Random timelines, against what looking at each stretch between two neighbouring ends of spans gives.
#include <algorithm>
#include <ctime>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <sluice/report/timeline_report.hpp>

#include "support/doctest.hpp"

namespace report_timeline_report_random {

using namespace sluice;

namespace {

struct Interval {
    double begin;
    double end;
};

bool covers(const std::vector<Interval>& intervals, double begin, double end) {
    return std::any_of(intervals.begin(), intervals.end(),
                       [&](const Interval& i) { return i.begin <= begin && end <= i.end; });
}

/// The times of `timeline`, stretch by stretch.
class Stretches {
public:
    explicit Stretches(const Timeline& timeline) : timeline_(timeline) {
        for (const TimelineSpan& span : timeline.spans()) {
            ends_.insert(span.begin);
            ends_.insert(span.end);
        }
    }

    /// The length of all stretches for which `holds(begin, end)`.
    template <class Holds>
    double sum(const Holds& holds) const {
        double result = 0;
        for (auto next = ends_.begin(); next != ends_.end();) {
            const double begin = *next++;
            if (next != ends_.end() && holds(begin, *next))
                result += *next - begin;
        }
        return result;
    }

    /// The intervals of the spans for which `holds(span)`.
    template <class Holds>
    std::vector<Interval> intervals(const Holds& holds) const {
        std::vector<Interval> result;
        for (const TimelineSpan& span : timeline_.spans()) {
            if (holds(span))
                result.push_back({span.begin, span.end});
        }
        return result;
    }

    template <class Holds>
    double time(const Holds& holds) const {
        const auto found = intervals(holds);
        return sum([&](double begin, double end) { return covers(found, begin, end); });
    }

    const std::set<double>& ends() const { return ends_; }

private:
    const Timeline& timeline_;
    std::set<double> ends_;
};

bool is_work(const TimelineSpan& span) { return span.kind != SpanKind::wait; }

/// The gaps of a row, of which each is uncovered in its inside and ends where a batch is.
std::vector<double> gaps_of(const Timeline& timeline, const Stretches& stretches, std::size_t row) {
    std::map<std::size_t, Interval> batches;
    for (const TimelineSpan& span : timeline.spans()) {
        if (span.row != row || !is_work(span))
            continue;
        Interval& batch = batches.try_emplace(span.batch, Interval{span.begin, span.end}).first->second;
        batch = {std::min(batch.begin, span.begin), std::max(batch.end, span.end)};
    }
    std::vector<Interval> with;
    with.reserve(batches.size());
    for (const auto& [number, batch] : batches)
        with.push_back(batch);
    std::vector<double> gaps;
    double last = 0; // where a batch was last
    bool any = false;
    for (const double end : stretches.ends()) {
        if (!covers(with, end, end))
            continue;
        if (any && stretches.sum(
                       [&](double b, double e) { return b >= last && e <= end && covers(with, b, e); }) == 0)
            gaps.push_back(end - last);
        last = end;
        any = true;
    }
    return gaps;
}

void check_row(const Timeline& timeline, const Stretches& stretches, const TimelineReport& report,
               std::size_t row) {
    const RowReport& numbers = report.rows[row];
    const auto works = [row](const TimelineSpan& s) { return s.row == row && is_work(s); };
    const auto waits = [row](const TimelineSpan& s) { return s.row == row && !is_work(s); };
    CHECK(numbers.busy == doctest::Approx(stretches.time(works)));
    CHECK(numbers.share == doctest::Approx(report.wall > 0 ? stretches.time(works) / report.wall : 0));
    CHECK(numbers.waits == stretches.intervals(waits).size());
    CHECK(numbers.waited == doctest::Approx(stretches.time(waits)));

    std::vector<double> durations;
    double sum = 0;
    for (const Interval& interval : stretches.intervals(works)) {
        durations.push_back(interval.end - interval.begin);
        sum += durations.back();
    }
    std::sort(durations.begin(), durations.end());
    const std::size_t count = durations.size();
    CHECK(numbers.spans == count);
    if (count > 0) {
        CHECK(numbers.mean == doctest::Approx(sum / static_cast<double>(count)));
        CHECK(numbers.median == doctest::Approx((durations[(count - 1) / 2] + durations[count / 2]) / 2));
        CHECK(numbers.shortest == durations.front());
        CHECK(numbers.longest == durations.back());
        std::size_t rank = 1;
        while (100 * rank < 99 * count)
            ++rank;
        CHECK(numbers.p99 == durations[rank - 1]);
    }

    const std::vector<double> gaps = gaps_of(timeline, stretches, row);
    double gap_time = 0;
    double longest = 0;
    for (const double gap : gaps) {
        gap_time += gap;
        longest = std::max(longest, gap);
    }
    CHECK(numbers.gaps == gaps.size());
    CHECK(numbers.gap_time == doctest::Approx(gap_time));
    CHECK(numbers.longest_gap == doctest::Approx(longest));
}

void check_device(const Timeline& timeline, const Stretches& stretches, const TimelineReport& report) {
    const auto of_device = [&](SpanKind kind) {
        return stretches.intervals([&timeline, kind](const TimelineSpan& span) {
            return span.kind == kind && timeline.rows()[span.row].unit != "CPU";
        });
    };
    const auto compute = of_device(SpanKind::compute);
    const auto copies = of_device(SpanKind::copy);
    const auto share = [&](bool computes, bool copying) {
        return stretches.sum([&](double begin, double end) {
            return covers(compute, begin, end) == computes && covers(copies, begin, end) == copying;
        }) / report.wall;
    };
    CHECK(report.device.compute_only == doctest::Approx(share(true, false)));
    CHECK(report.device.copy_only == doctest::Approx(share(false, true)));
    CHECK(report.device.both == doctest::Approx(share(true, true)));
    CHECK(report.device.neither == doctest::Approx(share(false, false)));
    const DeviceShares& device = report.device;
    CHECK(device.compute_only + device.copy_only + device.both + device.neither ==
          doctest::Approx(1).epsilon(1e-12));
}

void check_whole(const Timeline& timeline, const Stretches& stretches, const TimelineReport& report) {
    CHECK(report.busy_share == doctest::Approx(stretches.time(is_work) / report.wall));
    std::vector<std::vector<Interval>> computing;
    double serial = 0;
    for (std::size_t row = 0; row < timeline.rows().size(); ++row) {
        computing.push_back(stretches.intervals(
            [row](const TimelineSpan& s) { return s.row == row && s.kind == SpanKind::compute; }));
        serial += stretches.time([row](const TimelineSpan& s) {
            return s.row == row && (s.kind == SpanKind::compute || s.kind == SpanKind::copy);
        });
    }
    const double overlap = stretches.sum([&](double begin, double end) {
        return std::count_if(computing.begin(), computing.end(),
                             [&](const auto& row) { return covers(row, begin, end); }) >= 2;
    });
    CHECK(report.overlap == doctest::Approx(overlap / report.wall));
    CHECK(report.serial_sum == doctest::Approx(serial / report.wall));

    std::map<std::size_t, double> done;
    for (const TimelineSpan& span : timeline.spans()) {
        if (is_work(span)) {
            double& end = done.try_emplace(span.batch, span.end).first->second;
            end = std::max(end, span.end);
        }
    }
    CHECK(report.batches == done.size());
    std::vector<double> ends;
    ends.reserve(done.size());
    for (const auto& [batch, end] : done)
        ends.push_back(end);
    std::sort(ends.begin(), ends.end());
    if (!ends.empty()) {
        CHECK(report.steady_begin == ends.front());
        CHECK(report.steady_end == ends.back());
        const double seconds = (ends.back() - ends.front()) / 1e6;
        const double batches = static_cast<double>(ends.size() - 1);
        CHECK(report.batches_per_second == doctest::Approx(seconds > 0 ? batches / seconds : 0));
    }
}

void check_pace(const TimelineReport& report) {
    std::vector<std::size_t> order;
    for (std::size_t row = 0; row < report.rows.size(); ++row) {
        if (report.rows[row].share > 0)
            order.push_back(row);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return report.rows[a].share > report.rows[b].share;
    });
    CHECK(report.pace_row == (order.empty() ? TimelineReport::no_row : order[0]));
    CHECK(report.next_row == (order.size() < 2 ? TimelineReport::no_row : order[1]));
}

/// Up to 40 spans on up to 5 rows: of whole microseconds, so that many ends are equal, or of any length.
Timeline random_timeline(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
    Timeline timeline;
    const std::size_t rows = 1 + below(5);
    for (std::size_t row = 0; row < rows; ++row)
        timeline.add_row("row " + std::to_string(row),
                         std::vector<std::string>{"CPU", "GPU 0", "GPU 1", ""}[below(4)]);
    const bool whole = below(2) == 0;
    const std::size_t batches = 1 + below(12);
    const auto time = [&](std::size_t bound) {
        return whole ? static_cast<double>(below(bound))
                     : static_cast<double>(random()) / 4e9 * static_cast<double>(bound);
    };
    const std::size_t longest = below(3) == 0 ? 20 : 4; // dense and sparse ones
    for (std::size_t left = 1 + below(40); left > 0; --left) {
        const double begin = time(60) - 20;
        const auto kind = static_cast<SpanKind>(below(4));
        timeline.add({below(rows), below(batches), begin, begin + time(longest), kind});
    }
    return timeline;
}

} // namespace

TEST_CASE("the numbers of random timelines are those of their elementary intervals") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const Timeline timeline = random_timeline(seed);
        const Stretches stretches(timeline);
        const TimelineReport report = report_of(timeline);
        REQUIRE(report.rows.size() == timeline.rows().size());
        for (std::size_t row = 0; row < report.rows.size(); ++row) {
            CAPTURE(row);
            check_row(timeline, stretches, report, row);
        }
        if (report.wall > 0) {
            check_device(timeline, stretches, report);
            check_whole(timeline, stretches, report);
        }
        check_pace(report);
    }
}

TEST_CASE("the order in which spans are added does not matter") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        const Timeline timeline = random_timeline(seed);
        std::vector<TimelineSpan> spans = timeline.spans();
        std::shuffle(spans.begin(), spans.end(), std::mt19937(seed));
        Timeline other;
        for (const TimelineRow& row : timeline.rows())
            other.add_row(row.name, row.unit);
        for (const TimelineSpan& span : spans)
            other.add(span);
        const Stretches stretches(timeline);
        const TimelineReport report = report_of(other);
        for (std::size_t row = 0; row < report.rows.size(); ++row)
            check_row(timeline, stretches, report, row);
    }
}

TEST_CASE("a million spans take seconds") {
    constexpr std::size_t spans = 1000000;
    constexpr std::size_t rows = 4;
    Timeline timeline;
    for (std::size_t row = 0; row < rows; ++row)
        timeline.add_row("row", "GPU 0");
    // Each row is busy 10 of 16 us, and the batches come in an order without a pattern.
    std::size_t at = 0;
    for (std::size_t i = 0; i < spans; ++i) {
        const std::size_t batch = at / rows;
        const double begin = 16 * static_cast<double>(batch);
        timeline.add({at % rows, batch, begin, begin + 10, SpanKind::compute});
        at = (at + 618033) % spans; // without a common factor, so that each comes once
    }
    const std::clock_t begin = std::clock();
    const TimelineReport report = report_of(timeline);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    MESSAGE("a million spans took ", seconds, " s");
    CHECK(seconds < 30); // sanitizers and a loaded machine included; a quadratic step would take hours
    CHECK(report.batches == spans / rows);
    for (const RowReport& row : report.rows) {
        CHECK(row.spans == spans / rows);
        CHECK(row.busy == 10.0 * spans / rows);
        CHECK(row.gaps == spans / rows - 1);
        CHECK(row.longest_gap == 6);
    }
    CHECK(report.batches_per_second == doctest::Approx(1e6 / 16));
}

} // namespace report_timeline_report_random
