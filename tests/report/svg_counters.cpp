// Counters in pictures: step lines at their times and values.
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <sluice/report/svg.hpp>

#include "report/xml.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_svg_counters {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Point {
    double x;
    double y;
};

/// The corners of a path of M, H and V.
std::vector<Point> corners(const std::string& path) {
    std::istringstream in(path);
    std::vector<Point> points;
    Point at{0, 0};
    for (char command = 0; in >> command;) {
        if (command == 'M')
            in >> at.x >> at.y;
        else if (command == 'H')
            in >> at.x;
        else {
            REQUIRE(command == 'V');
            in >> at.y;
        }
        REQUIRE(in);
        points.push_back(at);
    }
    return points;
}

std::vector<Point> line_of(const std::vector<Element>& elements) {
    for (const Element& element : elements) {
        if (element.name == "path" && element.css() == "line")
            return corners(element.attributes.at("d"));
    }
    return {};
}

std::vector<std::string> titles(const std::vector<Element>& elements) {
    std::vector<std::string> found;
    for (const Element& element : elements) {
        if (element.name == "title" && elements[element.parent].css() == "hit")
            found.push_back(element.text);
    }
    return found;
}

bool has_text(const std::vector<Element>& elements, const std::string& text) {
    for (const Element& element : elements) {
        if (element.name == "text" && element.text == text)
            return true;
    }
    return false;
}

/// Spans from 0 to 100 us, and a counter.
Timeline with_values(const std::vector<Point>& values, const std::string& unit = "B") {
    Timeline timeline("run");
    timeline.add({.row = timeline.add_row("encode", "GPU 0"), .begin = 0, .end = 100});
    const std::size_t counter = timeline.add_counter("memory", unit);
    for (const Point& value : values)
        timeline.add_value(counter, value.x, value.y);
    return timeline;
}

} // namespace

TEST_CASE("a counter is a step line over the time of the spans") {
    const auto elements = parse(to_svg(with_values({{-50, 512}, {25, 2048}, {75, 1024}, {300, 1e9}})));
    const std::vector<Point> line = line_of(elements);
    REQUIRE(line.size() == 6);
    double left = 0;
    double width = 0;
    double bottom = 0;
    for (const Element& element : elements) {
        if (element.css() == "c0" && bottom == 0) { // the legend has one too
            left = element.number("x");
            width = element.number("width");
            bottom = element.number("y") + element.number("height");
        }
    }
    const auto at = [&](double share) { return doctest::Approx(left + share * width).epsilon(1e-3); };
    CHECK(line[0].x == at(0)); // what held before
    CHECK(line[1].x == at(0.25));
    CHECK(line[2].x == at(0.25));
    CHECK(line[3].x == at(0.75));
    CHECK(line[5].x == at(1)); // what is behind the axis is not seen
    CHECK(line[2].y > bottom);
    const double base = line[2].y + 35;
    CHECK(base - line[0].y == doctest::Approx(35 / 4.0).epsilon(1e-2));
    CHECK(base - line[4].y == doctest::Approx(35 / 2.0).epsilon(1e-2));
    CHECK(titles(elements) == std::vector<std::string>{"memory: 512 B from 0 \u00b5s on",
                                                       "memory: 2 KiB from 25 \u00b5s on",
                                                       "memory: 1 KiB from 75 \u00b5s on"});
    CHECK(has_text(elements, "memory"));
    CHECK(has_text(elements, "0 to 2 KiB"));
}

TEST_CASE("the last value holds until the end of its own timeline") {
    const Timeline timeline = with_values({{0, 1}});
    Timeline longer("longer");
    longer.add({.row = longer.add_row("encode", "GPU 0"), .begin = 0, .end = 200});
    const std::vector<Point> line = line_of(parse(to_svg({&timeline, &longer})));
    const std::vector<Point> alone = line_of(parse(to_svg(timeline)));
    REQUIRE(line.size() == 2);
    REQUIRE(alone.size() == 2);
    CHECK(line[1].x - line[0].x == doctest::Approx((alone[1].x - alone[0].x) / 2).epsilon(1e-3));
}

TEST_CASE("a scale begins below 0 where values are") {
    const auto elements = parse(to_svg(with_values({{0, -1}, {50, 3}}, "W")));
    CHECK(has_text(elements, "-1 W to 3 W"));
    const std::vector<Point> line = line_of(elements);
    REQUIRE(line.size() == 4);
    CHECK(line[0].y - line[2].y == doctest::Approx(35).epsilon(1e-3));
    // Of any size, also of none.
    CHECK(line_of(parse(to_svg(with_values({{0, 0}})))).size() == 2);
    const std::vector<Point> large = line_of(parse(to_svg(with_values({{0, -1.7e308}, {50, 1.7e308}}))));
    REQUIRE(large.size() == 4);
    CHECK(large[0].y - large[2].y == doctest::Approx(35).epsilon(1e-3));
}

TEST_CASE("a counter without values, or with values elsewhere, is a row without a line") {
    for (const std::vector<Point>& values : {std::vector<Point>{}, std::vector<Point>{{101, 3}}}) {
        const auto elements = parse(to_svg(with_values(values)));
        CHECK(line_of(elements).empty());
        CHECK(has_text(elements, "no values"));
    }
}

TEST_CASE("without spans the axis is that of the values") {
    Timeline timeline;
    const std::size_t counter = timeline.add_counter("<memory>");
    timeline.add_value(counter, 40, 1);
    timeline.add_value(counter, 10, 2);
    const std::vector<Point> line = line_of(parse(to_svg(timeline)));
    REQUIRE(line.size() == 4);
    CHECK(line[3].x == doctest::Approx(960 - 16));
    CHECK(contains(to_svg(timeline), "&lt;memory&gt;: 2 from 10"));
}

TEST_CASE("a picture of many values stays small, and keeps the highest") {
    std::vector<Point> values;
    for (int i = 0; i < 200'000; ++i)
        values.push_back({i * 0.0005, i == 77'777 ? 4096.0 : 100.0 + i % 7});
    const std::string picture = to_svg(with_values(values));
    CHECK(picture.size() < 200'000);
    const auto elements = parse(picture);
    CHECK(has_text(elements, "0 to 4 KiB"));
    CHECK(titles(elements).size() == 1);
    const std::vector<Point> line = line_of(elements);
    double highest = 1e9;
    for (const Point& point : line)
        highest = point.y < highest ? point.y : highest;
    CHECK(line[0].y - highest > 30);
}

TEST_CASE("times of values that no axis can show are refused") {
    Timeline timeline = with_values({{0, 1}, {2e15, 1}});
    CHECK(contains(text_of([&] { to_svg(timeline); }), "to_svg: a value of counter 'memory'"));
}

} // namespace report_svg_counters
