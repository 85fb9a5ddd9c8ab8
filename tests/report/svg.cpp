// Pictures of timelines: what a reader of the XML finds in them.
#include <cstddef>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <sluice/report/svg.hpp>

#include "report/boxes.hpp"
#include "report/files.hpp"
#include "report/xml.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_svg {

using namespace sluice;
using namespace sluice::test;

namespace {

/// U+FFFD, `times` over.
std::string replaced(int times) { return times == 0 ? "" : "\xEF\xBF\xBD" + replaced(times - 1); }

Timeline one_row(const std::vector<TimelineSpan>& spans, const std::string& name = "encode") {
    Timeline timeline("one");
    timeline.add_row(name, "GPU 0");
    for (const TimelineSpan& span : spans)
        timeline.add(span);
    return timeline;
}

} // namespace

TEST_CASE("each span is a rectangle at its time, with its text") {
    const Timeline timeline = one_row({{0, 3, 0, 250, SpanKind::compute},
                                       {0, 4, 500, 1000, SpanKind::copy},
                                       {0, 12, 1000, 1500, SpanKind::source},
                                       {0, 5, 1500, 2000, SpanKind::wait}});
    const auto elements = parse(to_svg(timeline));
    CHECK(elements[0].name == "svg");
    CHECK(elements[0].number("width") == 960);
    const std::vector<Box> all = boxes(elements);
    REQUIRE(all.size() == 4);
    CHECK(all[0].title == "encode, batch 3, compute: begins at 0 \u00b5s, lasts 250 \u00b5s");
    CHECK(all[1].title == "encode, batch 4, copy: begins at 500 \u00b5s, lasts 500 \u00b5s");
    CHECK(all[2].title == "encode, batch 12, source: begins at 1 ms, lasts 500 \u00b5s");
    CHECK(all[3].title == "encode, batch 5, wait: begins at 1.5 ms, lasts 500 \u00b5s");
    // A quarter of 1 ms is half as wide as half of it; colours come again after 8 batches.
    CHECK(all[0].width * 2 == doctest::Approx(all[1].width).epsilon(1e-3));
    CHECK(all[1].x - all[0].x == doctest::Approx(all[1].width).epsilon(1e-3));
    CHECK(all[0].css == "c3");
    CHECK(all[1].css == "p4");
    CHECK(all[2].css == "s4");
    CHECK(all[3].css == "w5 dash");
    CHECK(texts(elements, "no on on3") == std::vector<std::string>{"3"});
    CHECK(texts(elements, "no on on4 halo4") == std::vector<std::string>{"4"});
    CHECK(texts(elements, "no") == std::vector<std::string>{"12", "5"});
    // The picture ends where its last span does.
    CHECK(all[3].x + all[3].width == doctest::Approx(960 - 16).epsilon(1e-3));
    std::size_t patterns = 0;
    for (const Element& element : elements)
        patterns += element.name == "pattern";
    CHECK(patterns == 1);
    const std::string svg = to_svg(timeline); // each colour that is used has its rule
    for (const char* const rule : {".c3{fill:#", ".p4{fill:url(#sluice-copy-4)}", "id=\"sluice-copy-4\""})
        CHECK(contains(svg, rule));
    for (const char* const rule : {".c4{", ".c5{", ".p3{", "sluice-copy-3"})
        CHECK(!contains(svg, rule));
}

TEST_CASE("a span is seen where it lasts within the time shown, and an instant at its ends, too") {
    const Timeline timeline = one_row({{0, 1, 0, 10, SpanKind::compute},
                                       {0, 2, 10, 20, SpanKind::compute},
                                       {0, 3, 20, 30, SpanKind::compute},
                                       {0, 4, 10, 10, SpanKind::compute},
                                       {0, 5, 20, 20, SpanKind::compute},
                                       {0, 6, 9, 9, SpanKind::compute},
                                       {0, 7, 21, 21, SpanKind::compute}});
    std::set<std::size_t> seen;
    const auto rows = detail::drawing::lanes_of(timeline, 10, 20);
    for (const auto& placed : rows.at(0).spans)
        seen.insert(placed.span.batch);
    CHECK(seen == std::set<std::size_t>{2, 4, 5});
}

TEST_CASE("a batch's number is only where it fits") {
    const auto elements = parse(to_svg(one_row({{0, 1, 0, 1}, {0, 123456, 1, 1.5}, {0, 2, 500, 1000}})));
    CHECK(texts(elements, "no on on2") == std::vector<std::string>{"2"});
}

TEST_CASE("names that are XML, broken UTF-8 or control characters are text") {
    const std::string evil = "</text><script>alert('1')</script> & \"x\"\x01";
    Timeline timeline(evil);
    timeline.add_row(evil, evil);
    timeline.add_row("br\xC3oken \xE2\x82", "unit");
    timeline.add_row(
        "\xE0\x80\x80 \xED\xA0\x80 \xF4\x90\x80\x80 \U0001F600"); // overlong, a surrogate, too large
    timeline.add({0, 0, 0, 1});
    SvgOptions options;
    options.width = 3000;
    options.caption = evil;
    const std::string svg = to_svg(timeline, options);
    const auto elements = parse(svg);
    CHECK_FALSE(contains(svg, "<script"));
    const std::string shown = "</text><script>alert('1')</script> & \"x\"\xEF\xBF\xBD";
    CHECK(texts(elements, "title") == std::vector<std::string>{shown});
    CHECK(texts(elements, "unit") == std::vector<std::string>{shown, "unit"});
    CHECK(texts(elements, "") ==
          std::vector<std::string>{shown, "br" + replaced(1) + "oken " + replaced(1),
                                   replaced(3) + " " + replaced(3) + " " + replaced(4) + " \U0001F600"});
    CHECK(boxes(elements).at(0).title.substr(0, shown.size()) == shown);
}

TEST_CASE("a picture needs nothing else") {
    const std::string svg = to_svg(one_row({{0, 0, 0, 1, SpanKind::copy}}));
    CHECK_FALSE(contains(svg, "<script"));
    CHECK_FALSE(contains(svg, "@import"));
    CHECK_FALSE(contains(svg, "href"));
    CHECK(svg.find("http") == svg.find("http://www.w3.org/2000/svg")); // the namespace
    CHECK(svg.rfind("http") == svg.find("http"));
    CHECK(contains(svg, "prefers-color-scheme:dark"));
    CHECK(contains(svg, "class=\"bg\""));
}

TEST_CASE("spans that overlap do not cover each other") {
    std::mt19937 random(7);
    Timeline timeline("random");
    for (int row = 0; row < 5; ++row)
        timeline.add_row("row " + std::to_string(row), row % 2 ? "GPU" : "CPU");
    for (std::size_t i = 0; i < 600; ++i) {
        const auto begin = static_cast<double>(random() % 1000);
        const double end = begin + 5 + static_cast<double>(random() % 50);
        timeline.add({random() % 5, i, begin, end, static_cast<SpanKind>(random() % 4)});
    }
    const std::vector<Box> all = boxes(parse(to_svg(timeline)));
    CHECK(all.size() == 600);
    check_apart(all);
    // One after the other need no second lane.
    const std::vector<Box> chain = boxes(parse(to_svg(one_row({{0, 0, 0, 1}, {0, 2, 2, 3}, {0, 1, 1, 2}}))));
    CHECK(chain[0].y == chain[1].y);
    CHECK(chain[0].y == chain[2].y);
    const std::vector<Box> pair = boxes(parse(to_svg(one_row({{0, 0, 0, 2}, {0, 1, 1, 3}, {0, 2, 2, 4}}))));
    REQUIRE(pair.size() == 3); // the first lane's two, then the second lane's
    CHECK(pair[0].y == pair[1].y);
    CHECK(contains(pair[1].title, "batch 2"));
    CHECK(pair[0].y < pair[2].y);
}

TEST_CASE("rows of one unit stand together") {
    Timeline timeline;
    timeline.add_row("a", "CPU");
    timeline.add_row("b", "GPU");
    timeline.add_row("c", "CPU");
    timeline.add_row("d");
    const auto elements = parse(to_svg(timeline));
    CHECK(texts(elements, "unit") == std::vector<std::string>{"CPU", "GPU"});
    CHECK(texts(elements, "") == std::vector<std::string>{"a", "c", "b", "d"});
}

TEST_CASE("long names are cut between characters, and whole in the hover text") {
    std::string name;
    for (int i = 0; i < 60; ++i)
        name += "\u00e9\u4e2d";
    const auto elements = parse(to_svg(one_row({{0, 0, 0, 1}}, name)));
    const std::string shown = texts(elements, "").at(0);
    CHECK(shown.size() < name.size() / 2);
    CHECK(shown.substr(shown.size() - 3) == "\u2026");
    CHECK(name.substr(0, shown.size() - 3) == shown.substr(0, shown.size() - 3));
    bool whole = false;
    for (const Element& element : elements)
        whole = whole || (element.name == "title" && element.text == name);
    CHECK(whole);
}

TEST_CASE("the axis has round, even steps in a fitting unit") {
    const std::set<std::string> units{"time, \u00b5s", "time, ms", "time, s"};
    for (double size = 0.02; size < 1e12; size *= 3.3) {
        for (const double begin : {0.0, 0.7 * size, -2.5 * size, 1e3 * size}) {
            CAPTURE(size);
            CAPTURE(begin);
            const auto elements = parse(to_svg(one_row({{0, 0, begin, begin + size}})));
            const std::vector<std::string> ticks = texts(elements, "tick");
            CHECK(ticks.size() >= 2);
            CHECK(ticks.size() <= 16);
            REQUIRE(ticks.size() >= 2);
            const double step = std::stod(ticks[1]) - std::stod(ticks[0]);
            double digit = step;
            while (digit > 9.99)
                digit /= 10;
            while (digit < 0.999)
                digit *= 10;
            CHECK(
                (digit == doctest::Approx(1) || digit == doctest::Approx(2) || digit == doctest::Approx(5)));
            for (std::size_t i = 1; i < ticks.size(); ++i)
                CHECK(std::stod(ticks[i]) - std::stod(ticks[i - 1]) == doctest::Approx(step).epsilon(1e-6));
            CHECK(units.count(texts(elements, "muted").at(0)) == 1);
        }
    }
    const auto ticks = [](double end) {
        const auto elements = parse(to_svg(one_row({{0, 0, 0, end}})));
        return texts(elements, "muted").at(0) + ": " + texts(elements, "tick").at(1);
    };
    CHECK(ticks(100) == "time, \u00b5s: 10");
    CHECK(ticks(2e4) == "time, ms: 2");
    CHECK(ticks(5e6) == "time, s: 0.5");
    // Far from zero the unit is smaller, so that numbers stay short.
    const auto far = parse(to_svg(one_row({{0, 0, 1e6, 1e6 + 20}})));
    CHECK(texts(far, "muted").at(0) == "time, ms");
    CHECK(texts(far, "tick").at(1) == "1000.002");
}

TEST_CASE("numbers have at most two decimals") {
    const Timeline timeline = one_row({{0, 0, 0.123456, 1.0 / 3}, {0, 1, 0.77777, 3.14159265}});
    for (const Element& element : parse(to_svg(timeline))) {
        for (const auto& [name, value] : element.attributes) {
            if (name == "x" || name == "y" || name == "width" || name == "height" || name == "x1") {
                const std::size_t point = value.find('.');
                CHECK((point == std::string::npos || value.size() - point <= 3));
            }
        }
    }
}

TEST_CASE("a part of the time is shown alone") {
    const Timeline timeline =
        one_row({{0, 0, 0, 10}, {0, 1, 10, 20}, {0, 2, 20, 30}, {0, 3, 30, 40}, {0, 4, 20, 20}});
    SvgOptions options;
    options.begin = 15;
    options.end = 30;
    const auto elements = parse(to_svg(timeline, options));
    const std::vector<Box> all = boxes(elements);
    REQUIRE(all.size() == 3); // what ends or begins at the edge is not seen; what lasts no time is
    CHECK(contains(all[0].title, "batch 1, compute: begins at 10 \u00b5s, lasts 10 \u00b5s"));
    CHECK(all[0].width == doctest::Approx(all[2].width / 2).epsilon(1e-3));
    CHECK(all[1].width == 0.5);
    CHECK(all[2].x + all[2].width == doctest::Approx(944).epsilon(1e-3));
}

TEST_CASE("several timelines share one axis") {
    const Timeline serial = one_row({{0, 0, 0, 100}, {0, 1, 100, 200}});
    const Timeline overlapped = one_row({{0, 0, 50, 100}}, "a longer name of a row");
    const auto elements = parse(to_svg({&serial, &overlapped}));
    const std::vector<Box> all = boxes(elements);
    REQUIRE(all.size() == 3);
    CHECK(all[2].width == doctest::Approx(all[0].width / 2).epsilon(1e-3));
    CHECK(all[2].x + all[2].width == doctest::Approx(all[1].x).epsilon(1e-3));
    CHECK(all[2].y > all[0].y + all[0].height);
    CHECK(texts(elements, "title").size() == 2);
    CHECK(contains(text_of([&] { to_svg({&serial, nullptr}); }), "null"));
}

TEST_CASE("many narrow spans become blocks, and none is lost") {
    Timeline timeline("many");
    timeline.add_row("kernels");
    for (std::size_t i = 0; i < 30'000; ++i)
        timeline.add(
            {0, i, 10.0 * static_cast<double>(i), 10.0 * static_cast<double>(i) + (i == 15'000 ? 9000 : 3)});
    SvgOptions options;
    const std::string svg = to_svg(timeline, options);
    const auto elements = parse(svg);
    const std::vector<Box> all = boxes(elements);
    CHECK(all.size() < 3000);
    CHECK(svg.size() < 1'000'000);
    CHECK(spans_in(all) == 30'000);
    CHECK(contains(svg, "narrower than a quarter of a pixel"));
    CHECK(contains(svg, ">several spans<"));      // in the legend
    CHECK(contains(svg, "batch 15000, compute")); // a wide one stays itself

    options.merge_above = 30'000;
    const std::string whole = to_svg(timeline, options);
    CHECK(boxes(parse(whole)).size() == 30'000);
    CHECK_FALSE(contains(whole, "narrower than"));
    CHECK_FALSE(contains(whole, "several spans"));
}

TEST_CASE("a row has at most 100 lanes, and says how many spans stand in the last") {
    Timeline timeline;
    timeline.add_row("crowd");
    for (std::size_t i = 0; i < 400; ++i)
        timeline.add({0, i, static_cast<double>(i), 1000.0 + static_cast<double>(i)});
    const std::string svg = to_svg(timeline);
    const std::vector<Box> all = boxes(parse(svg));
    CHECK(all.size() == 100);
    CHECK(spans_in(all) == 400);
    CHECK(contains(svg, "More than 100 spans of a row overlap"));
    CHECK(contains(svg, ">several spans<"));
    check_apart(all);
}

TEST_CASE("timelines without spans, rows or time are pictures too") {
    CHECK(boxes(parse(to_svg(Timeline()))).empty());
    CHECK(parse(to_svg(std::vector<const Timeline*>{})).size() > 3);
    Timeline rows;
    rows.add_row("");
    CHECK(boxes(parse(to_svg(rows))).empty());
    CHECK(boxes(parse(to_svg(one_row({{0, 0, 5, 5}, {0, 1, 5, 5}})))).size() == 2);
    CHECK(boxes(parse(to_svg(one_row({{0, 0, 1e15, 1e15}})))).size() == 1);
    CHECK(boxes(parse(to_svg(one_row({{0, 0, -1e15, 1e15}})))).size() == 1);
    SvgOptions later;
    later.begin = 100;
    CHECK(boxes(parse(to_svg(Timeline(), later))).empty());
}

TEST_CASE("captions are wrapped at words") {
    SvgOptions options;
    options.width = 300;
    for (int i = 0; i < 30; ++i)
        options.caption += "word" + std::to_string(i) + (i == 2 ? "\n" : " ");
    const auto lines = texts(parse(to_svg(one_row({{0, 0, 0, 1}}), options)), "muted");
    CHECK(lines.size() > 6);
    bool broken = false;
    for (const std::string& line : lines) {
        CHECK(line.size() < 50);
        broken = broken || line == "word0 word1 word2";
    }
    CHECK(broken);
}

TEST_CASE("a legend that is wider than the picture goes on in further lines") {
    const auto legend = [](double width, std::vector<SpanKind> kinds) {
        Timeline timeline;
        const std::size_t row = timeline.add_row("row", "GPU 0");
        double begin = 0;
        for (const SpanKind kind : kinds) {
            timeline.add({row, 0, begin, begin + 10, kind});
            begin += 10;
        }
        SvgOptions options;
        options.width = width;
        std::vector<Element> lines;
        for (const Element& element : parse(to_svg(timeline, options))) {
            if (element.name == "text" && element.css() == "muted")
                lines.push_back(element);
        }
        return lines;
    };
    const auto in_new_lines = [&](double width) {
        std::size_t found = 0;
        double y = 0;
        for (const Element& text :
             legend(width, {SpanKind::compute, SpanKind::copy, SpanKind::source, SpanKind::wait})) {
            CHECK(text.number("x") < width - 20);
            if (y != 0 && text.number("y") == y + 20) {
                CHECK(text.number("x") <= 12 + 28);
                ++found;
            }
            y = text.number("y");
        }
        return found;
    };
    // What does not occur is not in it.
    CHECK(legend(2000, {SpanKind::compute}).size() + 3 ==
          legend(2000, {SpanKind::compute, SpanKind::copy, SpanKind::source, SpanKind::wait}).size());
    CHECK(in_new_lines(2000) == 0);
    CHECK(in_new_lines(240) > 0);
}

TEST_CASE("options and times out of range are refused") {
    const Timeline timeline = one_row({{0, 0, 0, 10}});
    const auto refused = [&](auto set) {
        SvgOptions options;
        set(options);
        return text_of([&] { to_svg(timeline, options); });
    };
    CHECK(contains(refused([](SvgOptions& o) { o.width = 100; }), "240 to 20000"));
    CHECK(contains(refused([](SvgOptions& o) { o.width = std::numeric_limits<double>::quiet_NaN(); }),
                   "width"));
    CHECK(contains(refused([](SvgOptions& o) { o.begin = 5, o.end = 5; }), "must end after its begin"));
    CHECK(contains(refused([](SvgOptions& o) { o.begin = 11; }), "must end after its begin"));
    CHECK(contains(refused([](SvgOptions& o) { o.end = std::numeric_limits<double>::quiet_NaN(); }), "axis"));
    CHECK(contains(refused([](SvgOptions& o) { o.end = 1e300; }), "axis"));
    CHECK(contains(text_of([&] { to_svg(one_row({{0, 0, 0, 2e15}})); }), "row 'encode'"));
    CHECK(contains(text_of([&] { write_svg(one_row({{0, 0, -1e300, 0}}), "x.svg"); }), "write_svg: "));
}

TEST_CASE("a file is replaced whole or not at all") {
    const Timeline timeline = one_row({{0, 0, 0, 10}});
    SvgOptions options;
    options.width = 500;
    check_files(to_svg(timeline, options),
                [&](const std::string& path) { write_svg(timeline, path, options); });
    check_files(to_svg({&timeline, &timeline}), [&](const std::string& path) {
        write_svg({&timeline, &timeline}, path);
    });
}

} // namespace report_svg
