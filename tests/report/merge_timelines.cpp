/// \file
/// Timelines of several ranks as one.
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/merge_timelines.hpp>

#include "support/doctest.hpp"

namespace report_merge_timelines {

using sluice::merge_timelines;
using sluice::SpanKind;
using sluice::Timeline;

namespace {

/// A stage on a device, and the calls of submit; batch `first` and the next one, 30 us each.
Timeline rank(const std::string& device, double zero, std::size_t first) {
    Timeline timeline("overlapped");
    timeline.set_clock_zero(zero);
    timeline.add_row("submit", "CPU");
    timeline.add_row("train", device);
    timeline.add({0, first, 0, 5, SpanKind::source});
    timeline.add({1, first, 5, 35, SpanKind::compute});
    timeline.add({1, first + 1, 40, 70, SpanKind::compute});
    timeline.add_value(timeline.add_counter("device memory", "B"), 10, 4096);
    timeline.add_missing_edge({0, first, 1, first + 1, "a race"});
    timeline.set_sentence("train bounds this.");
    timeline.set_latencies({zero, 70});
    return timeline;
}

std::string error_of(const std::vector<sluice::NamedTimeline>& timelines) {
    try {
        (void)merge_timelines(timelines);
    } catch (const sluice::Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

TEST_CASE("rows of several timelines stand under their names on the axis of the earliest") {
    const Timeline first = rank("GPU 0", 1'000'100, 7);
    const Timeline second = rank("GPU 1", 1'000'000, 7);
    const Timeline merged = merge_timelines({{"rank 0", &first}, {"rank 1", &second}}, "two ranks");

    CHECK(merged.title() == "two ranks");
    CHECK(merged.clock_zero() == 1'000'000);
    const std::pair<std::string, std::string> rows[] = {{"rank 0: train", "GPU 0"},
                                                        {"rank 1: train", "GPU 1"},
                                                        {"rank 0: submit", "CPU"},
                                                        {"rank 1: submit", "CPU"}};
    REQUIRE(merged.rows().size() == 4);
    for (std::size_t row = 0; row < 4; ++row) {
        CHECK(merged.rows()[row].name == rows[row].first);
        CHECK(merged.rows()[row].unit == rows[row].second);
    }
    const std::vector<sluice::TimelineSpan> expected = {
        {2, 7, 100, 105, SpanKind::source},  {0, 7, 105, 135, SpanKind::compute},
        {0, 8, 140, 170, SpanKind::compute}, {3, 7, 0, 5, SpanKind::source},
        {1, 7, 5, 35, SpanKind::compute},    {1, 8, 40, 70, SpanKind::compute}};
    REQUIRE(merged.spans().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(merged.spans()[i].row == expected[i].row);
        CHECK(merged.spans()[i].batch == expected[i].batch);
        CHECK(merged.spans()[i].begin == expected[i].begin);
        CHECK(merged.spans()[i].end == expected[i].end);
        CHECK(merged.spans()[i].kind == expected[i].kind);
    }

    REQUIRE(merged.counters().size() == 2);
    CHECK(merged.counters()[1].name == "rank 1: device memory");
    CHECK(merged.counters()[1].unit == "B");
    REQUIRE(merged.values().size() == 2);
    CHECK(merged.values()[0].counter == 0);
    CHECK(merged.values()[0].time == 110);
    CHECK(merged.values()[1].counter == 1);
    CHECK(merged.values()[1].time == 10);
    REQUIRE(merged.missing_edges().size() == 2);
    CHECK(merged.missing_edges()[1].from_row == 3);
    CHECK(merged.missing_edges()[1].to_row == 1);
    CHECK(merged.missing_edges()[1].to_batch == 8);
    CHECK(merged.latencies() == std::vector<double>{1'000'100, 70, 1'000'000, 70});
    CHECK(merged.sentence() == "rank 0: train bounds this. rank 1: train bounds this.");
}

TEST_CASE("timelines that say nothing of their zero share one, and empty ones have none") {
    const Timeline first = rank("GPU 0", 0, 0);
    const Timeline second = rank("GPU 0", 0, 0);
    const Timeline together = merge_timelines({{"", &first}, {"b", &second}});
    CHECK(together.clock_zero() == 0);
    CHECK(together.rows()[0].name == "train");
    CHECK(together.rows()[1].name == "b: train");
    CHECK(together.spans()[3].begin == 0);

    Timeline empty;
    empty.add_row("train", "GPU 1"); // its zero, 0, would be the earliest
    const Timeline known = rank("GPU 0", 500, 0);
    const Timeline merged = merge_timelines({{"a", &empty}, {"b", &known}});
    CHECK(merged.clock_zero() == 500);
    CHECK(merged.rows().size() == 3);
    CHECK(merged.begin() == 0);
    CHECK(merge_timelines({}).rows().empty());

    // Where all are empty it is theirs: what is added later can be put in its place.
    Timeline late, later;
    late.set_clock_zero(700);
    later.set_clock_zero(800);
    CHECK(merge_timelines({{"a", &empty}, {"b", &later}, {"c", &late}, {"d", &empty}}).clock_zero() == 700);
    CHECK(merge_timelines({{"a", &late}, {"b", &later}}).clock_zero() == 700);
}

TEST_CASE("timelines on axes that cannot be compared are refused") {
    const Timeline known = rank("GPU 0", 500, 0);
    const Timeline unknown = rank("GPU 1", 0, 0);
    const std::string expected = "merge_timelines: 'b' does not say where its zero is, and 'a' does; call "
                                 "Timeline::set_clock_zero for all or for none";
    CHECK(error_of({{"a", &known}, {"b", &unknown}}) == expected);
    CHECK(error_of({{"b", &unknown}, {"a", &known}}) == expected);
    CHECK(error_of({{"a", &known}, {"b", nullptr}}) == "merge_timelines: the timeline 'b' is a null pointer");
}

} // namespace report_merge_timelines
