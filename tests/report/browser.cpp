// Pictures and pages as a browser shows them: nothing is cut, empty or covered, and all spans are drawn.
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <sluice/report/html.hpp>
#include <sluice/report/svg.hpp>

#include "report/browser_probe.hpp"
#include "report/files.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_browser {

using namespace sluice;
using namespace sluice::test;

namespace {

/// What a probe wrote.
struct Found {
    std::vector<std::string> problems;
    std::map<std::string, std::string> values;

    std::string at(const std::string& name) const {
        const auto value = values.find(name);
        return value == values.end() ? "" : value->second;
    }
};

/// A page, and how wide its window is.
struct View {
    std::string page;
    int width;
};

std::string quoted(const std::string& text) {
    std::string out;
    for (const char c : text)
        out += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}

/// The document that Chromium has made of a page with frames for `views`, and what their probes wrote copied to its end. One
/// start of Chromium serves all of them, and a frame may be narrower than its windows can be.
std::string rendered(const std::vector<View>& views, bool dark) {
    const Folder folder("sluice_browser_");
    std::ofstream out(folder.file("page.html"), std::ios::binary);
    out << "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light "
           "dark\">"
           "</head><body style=\"margin:0\">\n";
    for (const View& view : views)
        out << "<iframe style=\"border:0;display:block\" height=\"3000\" width=\"" << view.width
            << "\" srcdoc=\"" << quoted(view.page) << "\"></iframe>\n";
    out << "<script>addEventListener('load', () => { for (const frame of "
           "document.querySelectorAll('iframe')) {"
           "const copy = document.createElement('pre');"
           "copy.textContent = frame.contentDocument.getElementById('probe')?.textContent ?? '';"
           "document.body.append('here', copy); } });</script></body></html>\n";
    out.close();
    const std::string command =
        std::string("\"") + SLUICE_TEST_CHROMIUM +
        "\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
        "--disable-extensions" +
        " --disable-background-networking --hide-scrollbars --user-data-dir=\"" + folder.file("profile") +
        "\" --window-size=1300,900 --blink-settings=preferredColorScheme=" + (dark ? "0" : "1") +
        " --dump-dom \"file://" + folder.file("page.html") + "\" > \"" + folder.file("dom.html") +
        "\" 2> \"" + folder.file("log") + '"';
    if (std::system(command.c_str()) != 0)
        MESSAGE(contents(folder.file("log")));
    return contents(folder.file("dom.html"));
}

/// Whether Chromium starts at all; says so where it does not.
bool browser_starts() {
    static const bool starts = contains(rendered({{"", 500}}, false), "here<pre>");
    if (!starts)
        MESSAGE("skipped: Chromium does not start here");
    return starts;
}

Found read(const std::string& probe) {
    Found found;
    std::istringstream lines(probe);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(": ");
        REQUIRE(colon != std::string::npos);
        if (line.substr(0, colon) == "problem")
            found.problems.push_back(line.substr(colon + 2));
        else
            found.values[line.substr(0, colon)] = line.substr(colon + 2);
    }
    if (found.at("looked") != "1")
        found.problems.push_back("the page was not looked at to its end");
    return found;
}

/// What the views' probes found.
std::vector<Found> look(const std::vector<View>& views, bool dark) {
    const std::string shown = rendered(views, dark);
    const std::string mark = "here<pre>";
    std::vector<Found> found;
    for (std::size_t at = shown.find(mark); at != std::string::npos; at = shown.find(mark, at + 1)) {
        const std::size_t begin = at + mark.size();
        found.push_back(read(shown.substr(begin, shown.find("</pre>", begin) - begin)));
    }
    REQUIRE(found.size() == views.size());
    return found;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

std::string probed_page(const std::string& page) {
    const std::string probe = std::string("<script>") + probe_common + probe_page + "</script></body>";
    return replaced(replaced(page, "<head>", std::string("<head>") + probe_before), "</body>", probe);
}

std::string probed_picture(const std::string& picture) {
    return std::string("<!DOCTYPE html><html><head><meta charset=\"utf-8\">"
                       "<meta name=\"color-scheme\" content=\"light dark\">") +
           probe_before + "</head><body style=\"margin:0\"><script type=\"text/plain\" id=\"source\">" +
           picture + "</script>" + picture + "<script>" + probe_common + probe_picture +
           "</script></body></html>";
}

constexpr std::size_t batches = 12;
constexpr std::size_t spans = batches * 4;

/// Spans of all kinds, some of which overlap, two counters, and an edge that is missing.
Timeline run(const std::string& title, double apart) {
    Timeline timeline(title);
    timeline.add_row("source", "CPU");
    timeline.add_row("encode, a long name of a row", "GPU 0");
    timeline.add_row("train", "GPU 0");
    const std::size_t memory = timeline.add_counter("memory", "B");
    const std::size_t power = timeline.add_counter("power", "W");
    for (std::size_t batch = 0; batch < batches; ++batch) {
        const double at = apart * static_cast<double>(batch);
        timeline.add({0, batch, at, at + 0.4 * apart, SpanKind::source});
        timeline.add({0, batch, at + 0.4 * apart, at + 0.9 * apart, SpanKind::wait});
        timeline.add({1, batch, at, at + 1.2 * apart, SpanKind::copy}); // into the next one
        timeline.add({2, batch, at + 1.2 * apart, at + 1.9 * apart});
        timeline.add_value(memory, at, 1e9 + 1e8 * static_cast<double>(batch % 3));
        timeline.add_value(power, at, 200 + static_cast<double>(batch));
    }
    timeline.add_missing_edge({1, 3, 2, 5, "race: nothing orders the two"});
    return timeline;
}

std::string page_of_two() {
    const Timeline before = run("before", 1000);
    const Timeline after = run("after", 700);
    HtmlOptions options;
    options.title = "An experiment";
    options.text = "what was run\non which machine";
    options.tables = {{"Kernels", {"kernel", "calls"}, {{"gemm", "3"}, {"conv", "1,000"}, {"loss", "20"}}}};
    return to_html({&before, &after}, options);
}

std::string picture_of_two(double width) {
    const Timeline before = run("before", 1000);
    const Timeline after = run("after", 700);
    SvgOptions options;
    options.width = width;
    options.caption =
        "Two runs of an experiment, one before and one after a change, and both on one axis of time.";
    return to_svg({&before, &after}, options);
}

void check_page(const Found& found) {
    CHECK(found.at("drawn") == "10"); // three rows and two counters of each
    CHECK(std::stoi("0" + found.at("ticks")) > 2);
    CHECK(std::stoi("0" + found.at("texts")) > 100);
    CHECK(found.at("tip") == "source (CPU) | batch 0, source | begins at 0 \u00b5s | lasts 400 \u00b5s");
    CHECK(found.at("counter") == "memory | 1.118 GiB | from 11 ms on");
    CHECK(found.at("zoomed") == "1");
    CHECK(found.at("redrawn") == "1");
    CHECK(found.at("back") == "1");
    CHECK(found.at("wheel") == "1");
    CHECK(found.at("dragged") == "1");
    CHECK(found.at("double") == "1");
    CHECK(found.at("sorted") == "conv loss gemm");
    CHECK(found.at("again") == "gemm loss conv");
    CHECK(found.at("text") == "conv gemm loss");
    CHECK(found.at("aria") == "1");
    CHECK(found.at("arrows") == "2 race: nothing orders the two");
}

void check_picture(const Found& found, const std::string& width) {
    CHECK(found.at("picture") == width);
    CHECK(found.at("lines") == "4");
    CHECK(std::stoi("0" + found.at("texts")) > 20);
}

} // namespace

TEST_CASE("a page and a picture are whole at two widths, in light and in dark") {
    if (!browser_starts())
        return;
    const std::string page = probed_page(page_of_two());
    for (const bool dark : {false, true}) {
        CAPTURE(dark);
        const std::vector<Found> all = look({{page, 400},
                                             {page, 1200},
                                             {probed_picture(picture_of_two(400)), 400},
                                             {probed_picture(picture_of_two(1200)), 1200}},
                                            dark);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string width = i % 2 == 0 ? "400" : "1200";
            CAPTURE(i);
            for (const std::string& problem : all[i].problems)
                FAIL_CHECK(problem);
            CHECK(all[i].at("width") == width);
            CHECK(all[i].at("dark") == (dark ? "1" : "0"));
            CHECK(all[i].at("spans") == std::to_string(2 * spans));
            if (i < 2)
                check_page(all[i]);
            else
                check_picture(all[i], width);
        }
    }
}

TEST_CASE("what is broken is found") {
    if (!browser_starts())
        return;
    const std::string page = probed_page(page_of_two());
    const std::string picture = picture_of_two(400);
    const std::vector<Found> found =
        look({{replaced(page, "const ticksOf =", "const otherTicks ="), 1200},
              {replaced(page, ".scroll{overflow-x:auto", ".scroll{overflow-x:visible"), 400},
              {replaced(page, "addSpan(span, from,", "if (span.batch !== 3) addSpan(span, from,"), 1200},
              {replaced(page, "--muted:#57606a", "--muted:#d7d0da"), 400},
              {replaced(page, ".muted{fill:#57606a}", ".muted{fill:#d7d0da}"), 400},
              {replaced(page, "node.getComputedTextLength() <= room", "true"), 400},
              {probed_picture(replaced(picture, "</style>", "text{font-size:24px!important}</style>")), 400},
              {probed_picture(replaced(picture, ".c0{", ".c00{")), 400}},
             false);
    const auto problem = [&](std::size_t i) { return found[i].problems.empty() ? "" : found[i].problems[0]; };
    CHECK(contains(problem(0), "error: Uncaught ReferenceError"));
    CHECK(contains(problem(1), "the page is "));
    CHECK(found[2].at("spans") == std::to_string(2 * (spans - 4)));
    CHECK(contains(problem(3), "contrast "));
    CHECK(contains(problem(4), "contrast "));
    CHECK(contains(problem(5), "covered: "));
    CHECK_FALSE(found[6].problems.empty());
    CHECK(contains(problem(7), "without its colour: train, batch 0"));
}

} // namespace report_browser
