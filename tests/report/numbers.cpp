// Numbers, units, tables, counters and axes in reports, at both sides of each limit.
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_axis.hpp>
#include <sluice/report/detail/timeline_text.hpp>

#include "support/doctest.hpp"

namespace report_numbers {

using namespace sluice;
using namespace sluice::detail;

TEST_CASE("numbers: four digits, wherever the point is") {
    using numbers::four_digits;
    CHECK(four_digits(0) == "0.000");
    CHECK(four_digits(9.9994) == "9.999");
    CHECK(four_digits(9.9996) == "10.00");
    CHECK(four_digits(99.994) == "99.99");
    CHECK(four_digits(99.996) == "100.0");
    CHECK(four_digits(999.94) == "999.9");
    CHECK(four_digits(999.96) == "1000");
    CHECK(four_digits(999999.4) == "999999");
    CHECK(four_digits(999999.6) == "1.0e+06");
    CHECK(four_digits(9.9995) == "10.00");
    CHECK(four_digits(99.995) == "100.0");
    CHECK(four_digits(999.95) == "1000");
    CHECK(four_digits(999999.5) == "1.0e+06");
    using numbers::number_text;
    CHECK(number_text(999999.5) == "1.000e+06");
    CHECK(number_text(0) == "0");
    CHECK(number_text(-0.0004) == "0");
    CHECK(number_text(-0.5) == "-0.5");
    CHECK(number_text(0.12345) == "0.123");
    CHECK(number_text(-12.345) == "-12.35");
    CHECK(number_text(123.456) == "123.5");
    CHECK(number_text(-999999.4) == "-999999");
    CHECK(number_text(-999999.6) == "-1.000e+06");
    CHECK(number_text(1234567890) == "1.235e+09");
    CHECK(numbers::trimmed(2.50) == "2.5");
    CHECK(numbers::trimmed(2.004) == "2");
    CHECK(numbers::trimmed(2.006) == "2.01");
    CHECK(numbers::trimmed(10, 1) == "10");
    CHECK(numbers::trimmed(0.15, 1) == "0.1"); // as 0.15 is below 15/100
    CHECK(numbers::percent(0.1234) == "12.3");
    CHECK(numbers::percent(1) == "100.0");
    CHECK(numbers::count(9'999'999) == "9999999");
    CHECK(numbers::count(0) == "0");
}

TEST_CASE("numbers: a time has at most four digits before the point") {
    const auto text = [](double time) {
        const numbers::TimeUnit unit = numbers::unit_for(time);
        return numbers::fixed(time / unit.microseconds, 0) + ' ' + unit.name;
    };
    CHECK(text(0) == "0 us");
    CHECK(text(9999.4) == "9999 us");
    CHECK(text(9999.6) == "10 ms");
    CHECK(text(9'999'400) == "9999 ms");
    CHECK(text(9'999'600) == "10 s");
}

TEST_CASE("numbers: a table cuts names, keeps a space before numbers, and leaves further cells out") {
    TextTable table({6, 4}, {5, 3});
    table.add({"name", "unit", "12", "7", "left out"});
    table.add({"longer name", "\u4E00\u4E00", "12345", "1234"});
    table.add({"short"});
    table.add({});
    CHECK(table.text() == "name   unit   12  7\n"
                          "longe\u2026 \u4E00\u4E00 12345 1234\n"
                          "short \n"
                          "\n");
}

TEST_CASE("numbers: a counter's steps are by time, and of one time the last holds") {
    Timeline timeline("counters");
    const std::size_t first = timeline.add_counter("first", "B");
    const std::size_t second = timeline.add_counter("second", "W");
    const std::size_t empty = timeline.add_counter("empty", "W");
    struct Value {
        std::size_t counter;
        double time, value;
    };
    for (const Value& value : {Value{first, 30, 3},
                               {second, 10, 9},
                               {first, 10, 1},
                               {first, 30, 4},
                               {first, 20, 2},
                               {first, 30, 5},
                               {second, 5, 8}})
        timeline.add_value(value.counter, value.time, value.value);
    const auto steps = counters::steps_of(timeline);
    REQUIRE(steps.size() == 3);
    const auto text = [&](std::size_t counter) {
        std::string all;
        for (const counters::Step& step : steps[counter])
            all += numbers::shortest(step.time) + ':' + numbers::shortest(step.value) + ' ';
        return all;
    };
    CHECK(text(first) == "10:1 20:2 30:5 ");
    CHECK(text(second) == "5:8 10:9 ");
    CHECK(text(empty).empty());
}

TEST_CASE("numbers: bytes have the unit that suits them, and other units are put behind") {
    using counters::value_text;
    CHECK(value_text(3, "W") == "3 W");
    CHECK(value_text(2048, "W") == "2048 W");
    CHECK(value_text(3, "") == "3");
    CHECK(value_text(0, "B") == "0 B");
    CHECK(value_text(1023, "B") == "1023 B");
    CHECK(value_text(1024, "B") == "1 KiB");
    CHECK(value_text(-1024, "B") == "-1 KiB");
    CHECK(value_text(1.5 * 1024 * 1024, "B") == "1.5 MiB");
    CHECK(value_text(std::ldexp(1, 30), "B") == "1 GiB");
    CHECK(value_text(std::ldexp(1, 40), "B") == "1 TiB");
    CHECK(value_text(std::ldexp(1, 50), "B") == "1024 TiB");
    CHECK(value_text(std::ldexp(1, 51), "B") == "2048 TiB");
}

TEST_CASE("numbers: ticks are at round times, as near as they may be, in the largest unit") {
    using drawing::axis_of;
    using drawing::round_step;
    // The least 1, 2 or 5 x 10^k: found by trying them all from below.
    for (double least = 0.00123; least < 1e7; least *= 1.07) {
        double wanted = 0;
        for (int k = -4; k < 9 && wanted == 0; ++k) {
            for (const int factor : {1, 2, 5}) {
                if (wanted == 0 && factor * std::pow(10, k) >= least)
                    wanted = factor * std::pow(10, k);
            }
        }
        CHECK(round_step(least) == doctest::Approx(wanted));
    }
    for (const double exact : {0.01, 0.5, 1.0, 2.0, 5.0, 10.0, 2000.0})
        CHECK(round_step(exact) == doctest::Approx(exact));
    const auto text = [](double begin, double end, double apart) {
        const drawing::Axis axis = axis_of({begin, end}, apart);
        std::string all = axis.unit;
        for (const drawing::Tick& tick : axis.ticks) {
            all += ' ' + tick.text;
            CHECK(tick.at >= begin - 1e-9 * apart);
            CHECK(tick.at <= end + 1e-9 * apart);
        }
        return all;
    };
    CHECK(text(0, 10, 2) == "\u00b5s 0 2 4 6 8 10");
    CHECK(text(0, 9.9, 1.9) == "\u00b5s 0 2 4 6 8");
    CHECK(text(-5, 5, 4) == "\u00b5s -5 0 5");
    CHECK(text(-4, 5, 4) == "\u00b5s 0 5");
    CHECK(text(3, 12, 4) == "\u00b5s 5 10");
    CHECK(text(0, 1, 0.25) == "\u00b5s 0 0.5 1");
    CHECK(text(0, 0.004, 0.0011) == "\u00b5s 0 0.002 0.004");
    CHECK(text(0, 999, 400) == "\u00b5s 0 500");
    CHECK(text(0, 1000, 400) == "ms 0 0.5 1");
    CHECK(text(-1000, 10, 400) == "ms -1 -0.5 0");
    CHECK(text(2e6, 2e6 + 4, 1.5) == "ms 2000 2000.002 2000.004");
    CHECK(text(2e6, 2e6 + 0.4, 0.15) == "\u00b5s 2000000 2000000.2 2000000.4");
    CHECK(text(2e6, 2e6 + 4000, 1500) == "s 2 2.002 2.004");
    CHECK(text(2e6, 2e6 + 2000, 700) == "s 2 2.001 2.002");
    CHECK(text(2e6, 2e6 + 1000, 400) == "ms 2000 2000.5 2001");
    CHECK(text(0, 999'999, 400'000) == "ms 0 500");
    CHECK(text(0, 1e6, 400'000) == "s 0 0.5 1");
    // So far from zero that a double cannot tell ticks apart.
    CHECK(axis_of({1e17, 1e17 + 64}, 1).ticks.size() <= 1000);
}

} // namespace report_numbers
