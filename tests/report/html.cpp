// Pages of timelines: that they need nothing else, that their data are the spans, and that they are laid out as pictures are. No
// browser runs here.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sluice/report/html.hpp>
#include <sluice/report/svg.hpp>

#include "report/files.hpp"
#include "report/page_data.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_html {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a page's data are the spans, by lanes") {
    std::mt19937 random(5);
    Timeline timeline("random");
    timeline.add_row("a", "CPU");
    timeline.add_row("b", "GPU");
    timeline.add_row("c", "CPU");
    using Key = std::tuple<std::string, double, double, double, double>;
    std::vector<Key> expected;
    for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t row = random() % 3;
        const double begin = static_cast<double>(random() % 1'000'000) / 1000 - 200;
        const double duration = static_cast<double>(random() % 20'000) / 1000;
        const std::size_t kind = random() % 4;
        timeline.add({row, i, begin, begin + duration, static_cast<SpanKind>(kind)});
        expected.emplace_back(timeline.rows()[row].name, i, kind, begin, duration);
    }
    const std::string page = to_html(timeline);
    const std::string view = unescaped(between(page, "<div id=\"view\" data-of=\"", "\""));
    const Json range = JsonReader(view).read();
    CHECK(range.at("first").number == doctest::Approx(timeline.begin()));
    CHECK(range.at("last").number == doctest::Approx(timeline.end()));
    std::vector<Key> found;
    std::string order;
    double bottom = 0;
    for (const Json& row : data_of(page, "spans")) {
        order += row.at("unit").text + ":" + row.at("name").text + ' ';
        CHECK(row.at("top").number >= bottom);
        bottom = row.at("top").number + row.at("height").number;
        CHECK(row.at("height").number >= row.at("lanes").number * row.at("lane").number);
        CHECK(row.at("crowded").number == 0);
        std::vector<double> ends(static_cast<std::size_t>(row.at("lanes").number), -1e9);
        const std::vector<Json>& numbers = row.at("spans").items;
        REQUIRE(numbers.size() % 5 == 0);
        for (std::size_t i = 0; i < numbers.size(); i += 5) {
            found.emplace_back(row.at("name").text, numbers[i + 1].number, numbers[i + 2].number,
                               numbers[i + 3].number, numbers[i + 4].number);
            double& end = ends.at(static_cast<std::size_t>(numbers[i].number));
            CHECK(numbers[i + 3].number >= end - 1e-6);
            end = numbers[i + 3].number + numbers[i + 4].number;
        }
    }
    CHECK(order == "CPU:a CPU:c GPU:b ");
    REQUIRE(found.size() == expected.size());
    const auto by_batch = [](const Key& a, const Key& b) { return std::get<1>(a) < std::get<1>(b); };
    std::sort(found.begin(), found.end(), by_batch);
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::get<0>(found[i]) == std::get<0>(expected[i]));
        CHECK(std::get<2>(found[i]) == std::get<2>(expected[i]));
        CHECK(std::get<3>(found[i]) == doctest::Approx(std::get<3>(expected[i])).epsilon(1e-9));
        CHECK(std::get<4>(found[i]) == doctest::Approx(std::get<4>(expected[i])).epsilon(1e-9));
    }
}

TEST_CASE("a page's times have three decimals of a microsecond") {
    Timeline timeline;
    timeline.add({.row = timeline.add_row("row"), .begin = 0.12344, .end = 1.50012});
    const auto rows = data_of(to_html(timeline), "spans");
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("spans").items[3].number == 0.123);
    CHECK(rows[0].at("spans").items[4].number == 1.377);
}

TEST_CASE("names and text break out of nothing") {
    const std::string evil = "</script><script>alert(1)</script><!-- \\\" ' & \n\x01 \xFF \u2028";
    const std::string shown =
        "</script><script>alert(1)</script><!-- \\\" ' & \n\xEF\xBF\xBD \xEF\xBF\xBD \u2028";
    Timeline timeline(evil);
    timeline.add_row(evil, evil);
    HtmlOptions options;
    options.title = evil;
    options.text = evil + "</pre>";
    options.tables = {{evil, {evil}, {{evil}}}};
    timeline.add_counter(evil, evil);
    const std::string page = to_html(timeline, options);
    CHECK(count(page, "</script>") == 1);
    CHECK(count(page, "<script") == 1);
    CHECK(count(page, "<!--") == 0);
    CHECK(count(page, "</pre>") == 1);
    CHECK(data_of(page, "spans").at(0).at("name").text == shown);
    CHECK(data_of(page, "spans").at(0).at("unit").text == shown);
    CHECK(data_of(page, "counter").at(0).at("name").text == shown);
    CHECK(contains(page, "<h1>&lt;/script&gt;&lt;script&gt;alert(1)"));
    CHECK(contains(between(page, "<pre id=\"report\">", "</pre>"), "&amp; \n\xEF\xBF\xBD"));
}

TEST_CASE("a page loads nothing") {
    Timeline timeline("one");
    timeline.add_row("row");
    timeline.add({0, 0, 0, 1});
    const std::string page = to_html(timeline);
    for (const char* part :
         {"http:", "https:", " src=", "<link", "@import", "url(", "fetch(", "import ", "eval("})
        CHECK_FALSE(contains(page, part));
    CHECK(contains(page, "default-src 'none'"));
    CHECK(contains(page, "width=device-width"));
    CHECK(contains(page, "prefers-color-scheme:dark"));
    // Drawn names go through textContent.
    CHECK_FALSE(contains(page, "innerHTML"));
    for (const char* input :
         {"wheel", "pointerdown", "pointermove", "dblclick", "keydown", "ArrowLeft", "'+'"})
        CHECK(contains(page, input));
}

TEST_CASE("a page's rows are where a picture has them") {
    Timeline timeline("run");
    for (const char* unit : {"CPU", "GPU 0", ""}) {
        const std::size_t row = timeline.add_row(std::string("row of ") + unit, unit);
        for (std::size_t batch = 0; batch < 9; ++batch)
            timeline.add({row, batch, 10.0 * static_cast<double>(batch),
                          10.0 * static_cast<double>(batch) + 25, static_cast<SpanKind>(batch % 4)});
    }
    timeline.add_value(timeline.add_counter("memory", "B"), 20, 1 << 20);
    HtmlOptions titled;
    titled.title = "another"; // or the timeline's is not above its rows
    const std::string page = to_html(timeline, titled);
    const std::string picture = to_svg(timeline);
    const auto part_of = [](const std::string& text, const std::string& begin, const std::string& end) {
        std::string parts;
        for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1))
            parts += text.substr(at, text.find(end, at) - at) + '\n';
        return parts;
    };
    // Names, and what colours and patterns mean.
    CHECK(count(page, "<text x=\"12\"") > 7);
    std::string names = part_of(picture, "<text x=\"12\"", "</text>");
    names.resize(names.rfind('\n', names.find("class=\"muted\">time, ")));
    const std::string on_page = part_of(page, "<text x=\"12\"", "</text>");
    CHECK(on_page.substr(0, names.size()) == names);
    CHECK(part_of(page, ".c0{", "</defs>") == part_of(picture, ".c0{", "</defs>"));
    // Each lane of the picture is one of the page.
    REQUIRE(data_of(page, "spans").size() == 3);
    for (const Json& row : data_of(page, "spans")) {
        for (double lane = 0; lane < row.at("lanes").number; ++lane) {
            CAPTURE(lane);
            const double y = row.at("top").number + 3 + lane * (row.at("lane").number + 1);
            CHECK(contains(picture, " y=\"" + detail::numbers::trimmed(y) + '"'));
        }
    }
}

TEST_CASE("two timelines stand on one page") {
    Timeline before("before");
    Timeline after("after");
    before.add_row("row");
    after.add_row("row");
    const std::string page = to_html({&before, &after});
    CHECK(between(page, "<title>", "</title>") == "before, after");
    const std::vector<Json> rows = data_of(page, "spans");
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].at("top").number > rows[0].at("top").number);
    CHECK(contains(page, "class=\"title\">after</text>"));
    CHECK_FALSE(contains(to_html(after), "class=\"title\"")); // the heading says it
    HtmlOptions options;
    options.title = "both";
    CHECK(between(to_html({&before, &after}, options), "<h1>", "</h1>") == "both");
    CHECK(contains(text_of([&] { to_html({&before, nullptr}); }), "to_html: a timeline's pointer is null"));
}

TEST_CASE("a page without timelines or text is a page") {
    CHECK(between(to_html(Timeline()), "<h1>", "</h1>") == "Timeline");
    CHECK(data_of(to_html(std::vector<const Timeline*>{}), "spans").empty());
    CHECK_FALSE(contains(to_html(Timeline()), "<pre id=\"report\">"));
}

TEST_CASE("a page shows the report's numbers, and two pages' differences") {
    Timeline before("before");
    Timeline after("after <1>");
    for (Timeline* timeline : {&before, &after}) {
        const std::size_t row = timeline->add_row("encode", "GPU 0");
        const double duration = timeline == &before ? 90 : 45;
        for (std::size_t batch = 0; batch < 4; ++batch) {
            const double begin = 100 * static_cast<double>(batch);
            timeline->add({.row = row, .batch = batch, .begin = begin, .end = begin + duration});
        }
    }
    after.add_row("new");
    before.add_value(before.add_counter("memory", "B"), 0, 2048);
    const std::string one = to_html(before);
    CHECK(contains(one, "<p class=\"pace\">encode set the pace: it was busy 92 % of the time.</p>"));
    CHECK(contains(one, "<tr><td>encode</td><td>GPU 0</td><td class=\"n\">4</td><td class=\"n\">92.3</td>"));
    CHECK(contains(one, "<small>%</small>"));
    CHECK_FALSE(contains(one, "<small></small>"));
    CHECK(count(one, "<span class=\"item\">") == 3); // of the legend
    CHECK(count(one, "<p class=\"fact\">") == 3);
    CHECK(contains(one, "<p class=\"fact\">memory: peak 2 KiB, mean 2 KiB</p>"));
    CHECK_FALSE(contains(one, "comparison\""));
    CHECK_FALSE(contains(one, "<h2>Reports</h2>"));
    const std::string two = to_html({&before, &after});
    const std::string comparison = between(two, "<section id=\"comparison\">", "</section>");
    CHECK(
        contains(comparison, "after &lt;1&gt; is 1 x as fast as before: 10000 batches/s instead of 10000."));
    CHECK(contains(comparison,
                   "<td>encode</td><td>GPU 0</td><td class=\"n\">90 \u00b5s</td>"
                   "<td class=\"n\">45 \u00b5s</td><td class=\"n\">2 x</td><td class=\"n\">92.3</td>"
                   "<td class=\"n\">52.2</td><td class=\"n\">-40.1</td><td class=\"n\">11111</td>"
                   "<td class=\"n\">22222</td>"));
    CHECK(contains(comparison, "<td>new</td><td></td><td class=\"n\">-</td><td class=\"n\">0 \u00b5s</td>"
                               "<td class=\"n\">-</td><td class=\"n\">-</td><td class=\"n\">0.0</td>"
                               "<td class=\"n\">-</td><td class=\"n\">-</td><td class=\"n\">-</td></tr>"));
    CHECK(contains(two, "<h2>Reports</h2>"));
    CHECK(count(two, "<section class=\"report\">") == 2);
    CHECK(contains(two, "<section class=\"report\">\n<h3>before</h3>"));
    CHECK(contains(two, "<section class=\"report\">\n<h3>after &lt;1&gt;</h3>"));
    CHECK_FALSE(contains(to_html({&before, &after, &after}), "comparison\""));
}

TEST_CASE("rates of less than one a second have their number in a comparison") {
    Timeline slow("slow");
    const std::size_t row = slow.add_row("encode");
    for (std::size_t batch = 0; batch < 4; ++batch) {
        const double begin = 4e6 * static_cast<double>(batch);
        slow.add({.row = row, .batch = batch, .begin = begin, .end = begin + 2.5e6});
    }
    CHECK(contains(to_html({&slow, &slow}), "<td class=\"n\">0.4</td><td class=\"n\">0.4</td></tr>"));
}

TEST_CASE("a page's tables are the user's, with columns of numbers at the right") {
    Timeline timeline;
    HtmlOptions options;
    options.tables = {{"Kernels", {"kernel", "calls"}, {{"gemm", "3"}, {"conv", "-"}, {"loss"}}}};
    const std::string page = to_html(timeline, options);
    CHECK(contains(page, "<h2>Kernels</h2>"));
    CHECK(contains(
        page, "<tr><td>conv</td><td class=\"n\">-</td></tr>\n<tr><td>loss</td><td class=\"n\"></td></tr>"));
    CHECK(contains(page, "<th scope=\"col\"><button type=\"button\">kernel</button></th>"));
    options.tables[0].rows[1].push_back("one more");
    CHECK(text_of([&] { to_html(timeline, options); }) ==
          "to_html: row 1 of the table 'Kernels' has 3 cells, and the table has 2 columns");
}

TEST_CASE("a page's data are the counters' steps") {
    Timeline timeline;
    timeline.add({.row = timeline.add_row("row"), .begin = 0, .end = 90});
    const std::size_t counter = timeline.add_counter("memory", "B");
    timeline.add_value(counter, 20.12345, 1e10);
    timeline.add_value(counter, -3, 0.25);
    timeline.add_counter("empty");
    const std::string page = to_html(timeline);
    const std::vector<Json> counters = data_of(page, "counter");
    REQUIRE(counters.size() == 2);
    const Json& first = counters[0];
    CHECK(first.at("name").text == "memory");
    CHECK(first.at("end").number == 90);
    const std::vector<Json>& steps = first.at("steps").items;
    REQUIRE(steps.size() == 6);
    // The first one holds already where the axis begins. Of 40 pixels the scale takes 35.
    CHECK(steps[0].number == 0);
    CHECK(steps[1].number == first.at("base").number);
    CHECK(steps[2].text == "0.25 B");
    CHECK(steps[3].number == 20.123);
    CHECK(steps[4].number == first.at("base").number - 35);
    CHECK(steps[5].text == "9.313 GiB");
    CHECK(counters[1].at("steps").items.empty());
    CHECK(contains(page, ">0 to 9.313 GiB</text>"));
    CHECK(contains(page, ">no values</text>"));
}

TEST_CASE("a row has at most 100 lanes on a page") {
    Timeline timeline;
    timeline.add_row("crowd");
    for (std::size_t i = 0; i < 300; ++i)
        timeline.add({0, i, static_cast<double>(i), 1000});
    const Json row = data_of(to_html(timeline), "spans").at(0);
    CHECK(row.at("lanes").number == 100);
    CHECK(row.at("crowded").number == 1);
    CHECK(row.at("spans").items.size() == 300 * 5);
    CHECK(row.at("spans").items[299 * 5].number == 99);
}

TEST_CASE("times that no axis can show are refused") {
    Timeline timeline;
    timeline.add_row("row");
    timeline.add({0, 0, 0, 2e15});
    CHECK(contains(text_of([&] { to_html(timeline); }), "to_html: a span on row 'row'"));
    CHECK(contains(text_of([&] { write_html(timeline, "x"); }), "write_html: a span on row 'row'"));
}

TEST_CASE("a page is replaced whole or not at all") {
    Timeline timeline("run");
    timeline.add_row("encode", "GPU 0");
    timeline.add({0, 0, 0, 1});
    HtmlOptions options;
    options.text = "report";
    check_files(to_html(timeline, options),
                [&](const std::string& path) { write_html(timeline, path, options); });
    check_files(to_html({&timeline, &timeline}), [&](const std::string& path) {
        write_html({&timeline, &timeline}, path);
    });
}

} // namespace report_html
