// Two reports beside each other: which rows belong together, and their numbers.
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/comparison.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_comparison {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t none = TimelineReport::no_row;

struct Row {
    std::string name;
    std::string unit;
    double busy = 1; ///< Of each batch, microseconds.
};

/// Batches one after another, `apart` microseconds from begin to begin, on each row for as long as it says.
TimelineReport report_with(const std::string& title, const std::vector<Row>& rows, double apart = 100,
                           std::size_t batches = 5) {
    Timeline timeline(title);
    for (const Row& row : rows) {
        const std::size_t number = timeline.add_row(row.name, row.unit);
        for (std::size_t batch = 0; batch < batches; ++batch) {
            const double begin = apart * static_cast<double>(batch);
            timeline.add({.row = number, .batch = batch, .begin = begin, .end = begin + row.busy});
        }
    }
    return report_of(timeline);
}

} // namespace

TEST_CASE("a row's time per batch, share and rate stand beside each other, with factors") {
    const TimelineReport before =
        report_with("serial", {{"encode", "GPU 0", 40}, {"train", "GPU 0", 80}}, 200);
    const TimelineReport after =
        report_with("overlapped", {{"encode", "GPU 0", 50}, {"train", "GPU 0", 20}}, 100, 9);
    const Comparison comparison = compare(before, after);
    CHECK(comparison.title_before == "serial");
    CHECK(comparison.title_after == "overlapped");
    CHECK(comparison.whole.time_before == doctest::Approx(200));
    CHECK(comparison.whole.time_after == doctest::Approx(100));
    CHECK(comparison.whole.speedup == doctest::Approx(2));
    CHECK(comparison.whole.rate_before == doctest::Approx(5000));
    CHECK(comparison.whole.rate_after == doctest::Approx(10000));
    CHECK(comparison.whole.share_before == before.busy_share);
    CHECK(comparison.whole.share_after == after.busy_share);
    REQUIRE(comparison.rows.size() == 2);
    const RowComparison& train = comparison.rows[1];
    CHECK(train.name == "train");
    CHECK(train.unit == "GPU 0");
    CHECK(train.before == 1);
    CHECK(train.after == 1);
    CHECK(train.time_before == doctest::Approx(80));
    CHECK(train.time_after == doctest::Approx(20));
    CHECK(train.speedup == doctest::Approx(4));
    CHECK(train.share_before == before.rows[1].share);
    CHECK(train.share_after == after.rows[1].share);
    CHECK(train.rate_after == doctest::Approx(50000));
    CHECK(comparison.rows[0].speedup == doctest::Approx(0.8));
    CHECK(comparison_sentence(comparison) ==
          "overlapped is 2 x as fast as serial: 10000 batches/s instead of 5000.");
}

TEST_CASE("a batch's time is from begin to begin, however long batches take") {
    const auto time = [](double apart) {
        const TimelineReport report = report_with("slow", {{"encode", "GPU 0", apart / 4}}, apart);
        return compare(report, report).whole.time_before;
    };
    for (const double apart : {0.25, 100.0, 2e6, 1e9})
        CHECK(time(apart) == doctest::Approx(apart));
}

TEST_CASE("rows belong together by name and unit, then by name, the first to the first") {
    const Comparison comparison = compare(
        report_with("",
                    {{"a", "GPU 0"}, {"b", "GPU 0"}, {"a", "GPU 1"}, {"gone", "was here"}, {"a", "GPU 1"}}),
        report_with("", {{"new", "CPU"}, {"a", "GPU 1"}, {"b", "CPU"}, {"a", "GPU 0"}, {"a", "GPU 1"}}));
    REQUIRE(comparison.rows.size() == 6);
    const std::size_t expected[][2] = {{0, 3}, {1, 2}, {2, 1}, {3, none}, {4, 4}, {none, 0}};
    for (std::size_t i = 0; i < 6; ++i) {
        CAPTURE(i);
        CHECK(comparison.rows[i].before == expected[i][0]);
        CHECK(comparison.rows[i].after == expected[i][1]);
    }
    CHECK(comparison.rows[1].unit == "CPU");
    CHECK(comparison.rows[3].name == "gone");
    CHECK(comparison.rows[3].unit == "was here");
    CHECK(comparison.rows[5].unit == "CPU");
    CHECK(comparison.rows[3].time_after == 0);
    CHECK(comparison.rows[3].speedup == 0);
    CHECK(comparison.rows[5].name == "new");
    CHECK(comparison.rows[5].rate_before == 0);
    CHECK(comparison.title_before == "before");
    CHECK(comparison.title_after == "after");
}

TEST_CASE("a sentence says when there is nothing to compare, and tells runs of one title apart") {
    const TimelineReport run = report_with("run", {{"a", "", 10}});
    CHECK(
        contains(comparison_sentence(compare(run, run)), "the second run is 1 x as fast as the first run: "));
    const TimelineReport empty = report_of(Timeline("empty"));
    CHECK(comparison_sentence(compare(run, empty)) ==
          "nothing to compare: empty has no batch that took any time.");
    CHECK(comparison_sentence(compare(empty, run)) ==
          "nothing to compare: empty has no batch that took any time.");
    CHECK(compare(empty, empty).rows.empty());
    // A single batch has no steady part: what counts is how long it took.
    CHECK(compare(report_with("", {{"a", "", 10}}, 100, 1), run).whole.time_before == 10);
}

} // namespace report_comparison
