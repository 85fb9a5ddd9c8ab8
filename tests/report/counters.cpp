// Counters of a timeline in numbers, as text and as JSON.
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/timeline_report.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_counters {

using namespace sluice;
using namespace sluice::test;

namespace {

Timeline with_values(const std::vector<std::pair<double, double>>& values, double end = 0) {
    Timeline timeline;
    if (end > 0)
        timeline.add({.row = timeline.add_row("encode", "GPU 0"), .begin = 0, .end = end});
    const std::size_t counter = timeline.add_counter("device memory", "B");
    for (const auto& [time, value] : values)
        timeline.add_value(counter, time, value);
    return timeline;
}

CounterReport numbers_of(const std::vector<std::pair<double, double>>& values, double end = 0) {
    return report_of(with_values(values, end)).counters.at(0);
}

} // namespace

TEST_CASE("a counter's mean is over time, and its last value holds until the end") {
    const CounterReport numbers = numbers_of({{10, 1}, {20, 5}, {30, 2}}, 50);
    CHECK(numbers.name == "device memory");
    CHECK(numbers.unit == "B");
    CHECK(numbers.values == 3);
    CHECK(numbers.lowest == 1);
    CHECK(numbers.peak == 5);
    CHECK(numbers.mean == doctest::Approx((1 * 10 + 5 * 10 + 2 * 20) / 40.0));
    // Without spans, and behind the last one, it ends with its last value.
    CHECK(numbers_of({{10, 1}, {20, 5}, {30, 2}}).mean == 3);
    CHECK(numbers_of({{10, 1}, {20, 5}, {30, 2}}, 15).mean == 3);
    CHECK(numbers_of({{10, 4}, {20, 5}, {30, 2}, {40, 3}}, 50).lowest == 2);
    CHECK(numbers_of({{0, 1}, {0.25, 3}}, 0.5).mean == 2);
    CHECK(numbers_of({{10, 4}}, 10).mean == 4);
    CHECK(numbers_of({{-4, -7}}).mean == -7);
    CHECK(numbers_of({{-4, -7}}).peak == -7);
    CHECK(numbers_of({}).values == 0);
    CHECK(numbers_of({}).mean == 0);
}

TEST_CASE("values come in any order, and the last that was added for a time holds") {
    const CounterReport numbers = numbers_of({{30, 2}, {10, 9}, {20, 5}, {10, 1}});
    CHECK(numbers.values == 3);
    CHECK(numbers.peak == 5);
    CHECK(numbers.mean == 3);
}

TEST_CASE("a counter's mean is that of a sum over many short intervals") {
    std::mt19937 random(11);
    std::vector<std::pair<double, double>> values;
    std::vector<double> at(1000, 0); // by microsecond
    for (int i = 0; i < 60; ++i) {
        const std::size_t time = i == 0 ? 0 : random() % 999;
        const double value = static_cast<double>(random() % 1000);
        values.emplace_back(static_cast<double>(time), value);
    }
    double sum = 0;
    for (std::size_t time = 0; time < at.size(); ++time) {
        double latest = -1;
        for (const auto& [when, value] : values) {
            if (when <= static_cast<double>(time) && when >= latest) {
                latest = when;
                at[time] = value;
            }
        }
        sum += at[time];
    }
    CHECK(numbers_of(values, 1000).mean == doctest::Approx(sum / 1000).epsilon(1e-12));
}

TEST_CASE("counters do not touch what rows say") {
    Timeline timeline = with_values({{-100, 1}, {1000, 3}}, 50);
    const TimelineReport report = report_of(timeline);
    CHECK(report.wall == 50);
    CHECK(report.rows.size() == 1);
    CHECK(report.rows[0].share == 1);
}

TEST_CASE("a table has a line for each counter") {
    Timeline timeline = with_values({{0, 3.0 * (1 << 20)}, {25, 1536.0 * (1 << 20)}}, 50);
    timeline.add_counter("a counter without values, and with a name that does not fit", "W");
    timeline.add_value(timeline.add_counter("power", "W"), 0, 71.25);
    const std::string table = to_table(report_of(timeline));
    CHECK(contains(table, "\n\ndevice memory: peak 1.5 GiB, mean 769.5 MiB\n"
                          "a counter without values, a\u2026: no values\n"
                          "power: peak 71.25 W, mean 71.25 W\n\nencode set the pace"));
    CHECK_FALSE(contains(to_table(report_of(Timeline())), "peak"));
    // The widest that there is.
    Timeline wide;
    for (const double value : {-1.7e308, 1.7e308, 1e6, -999999.4, 1e-300}) {
        wide.add_value(wide.add_counter(std::string(100, 'W'), value < 0 ? "B" : "a long unit"), 0, value);
    }
    std::size_t begin = 0;
    const std::string text = to_table(report_of(wide));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
        CHECK(detail::timeline_text::width_of(text.substr(begin, end - begin)) <= 80);
        begin = end + 1;
    }
}

TEST_CASE("values are shown with four digits and in units that suit them") {
    using detail::counters::value_text;
    CHECK(value_text(0, "B") == "0 B");
    CHECK(value_text(1023, "B") == "1023 B");
    CHECK(value_text(1024, "B") == "1 KiB");
    CHECK(value_text(-1023, "B") == "-1023 B");
    CHECK(value_text(-1024, "B") == "-1 KiB");
    CHECK(value_text(-1536, "B") == "-1.5 KiB");
    CHECK(value_text(10.0 * (1 << 20), "B") == "10 MiB");
    CHECK(value_text(78.126 * 1024 * 1024 * 1024, "B") == "78.13 GiB");
    CHECK(value_text(3e18, "B") == "2.728e+06 TiB");
    CHECK(value_text(100, "") == "100");
    CHECK(value_text(-0.0001, "") == "0");
    CHECK(value_text(123456.7, "W") == "123457 W");
    CHECK(value_text(1.2345e9, "W") == "1.234e+09 W");
}

TEST_CASE("JSON holds the counters") {
    const std::string json = to_json(report_of(with_values({{0, 1}, {25, 4}}, 50)));
    CHECK(contains(json,
                   ",\"counters\":[{\"name\":\"device memory\",\"unit\":\"B\",\"values\":2,\"lowest\":1,"
                   "\"peak\":4,\"mean\":2.5}]}"));
    CHECK(contains(to_json(report_of(Timeline())), ",\"counters\":[]}"));
}

} // namespace report_counters
