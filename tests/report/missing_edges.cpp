// Missing edges: from the race checker's findings to arrows in pictures, pages and traces.
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/report/html.hpp>
#include <sluice/report/perfetto.hpp>
#include <sluice/report/pipeline_report.hpp>
#include <sluice/report/svg.hpp>
#include <sluice/sluice.hpp>

#include "report/files.hpp"
#include "report/xml.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_missing_edges {

using namespace sluice;
using namespace sluice::test;

namespace {

const char* const sentence = "race on 'w': \"train\" writes it & nothing <orders> the two";

// Batch 0 of the first row lasts from 0 to 40, batch 1 of the second from 30 to 60.
Timeline two_rows() {
    Timeline timeline("two");
    timeline.add_row("encode", "host 0");
    timeline.add_row("train", "host 0");
    timeline.add({0, 0, 0, 40});
    timeline.add({0, 1, 50, 100});
    timeline.add({1, 0, 10, 20});
    timeline.add({1, 1, 30, 60});
    timeline.add_missing_edge({0, 0, 1, 1, sentence});
    return timeline;
}

struct Arrow {
    std::string title;
    double x1, y1, x2, y2;
};

std::vector<Arrow> arrows(const std::string& svg) {
    const std::vector<Element> elements = parse(svg);
    std::vector<Arrow> found;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (elements[i].css() != "head")
            continue;
        Arrow arrow{};
        std::string head = elements[i].attributes.at("d"), curve;
        for (std::size_t j = 0; j < elements.size(); ++j) {
            if (elements[j].parent != elements[i].parent)
                continue;
            if (elements[j].name == "title")
                arrow.title = elements[j].text;
            if (elements[j].css() == "edge")
                curve = elements[j].attributes.at("d");
        }
        REQUIRE(std::sscanf(curve.c_str(), "M%lf %lf", &arrow.x1, &arrow.y1) == 2);
        REQUIRE(std::sscanf(head.c_str(), "M%lf %lf", &arrow.x2, &arrow.y2) == 2);
        found.push_back(arrow);
    }
    return found;
}

// The rectangle whose title has `words`.
Element box(const std::vector<Element>& elements, const std::string& words) {
    for (const Element& element : elements) {
        if (element.name == "title" && contains(element.text, words))
            return elements[element.parent];
    }
    FAIL("no rectangle has the title " << words);
    return {};
}

} // namespace

TEST_CASE(
    "A missing edge is an arrow from the end of one span to the begin of the other, with its sentence") {
    const std::string svg = to_svg(two_rows());
    const std::vector<Element> elements = parse(svg);
    const std::vector<Arrow> all = arrows(svg);
    REQUIRE(all.size() == 1);
    CHECK(all[0].title == sentence);
    const Element from = box(elements, "encode, batch 0");
    const Element to = box(elements, "train, batch 1");
    CHECK(all[0].x1 == doctest::Approx(from.number("x") + from.number("width")));
    CHECK(all[0].y1 == doctest::Approx(from.number("y") + from.number("height") / 2));
    CHECK(all[0].x2 == doctest::Approx(to.number("x")));
    CHECK(all[0].y2 == doctest::Approx(to.number("y") + to.number("height") / 2));
    CHECK(contains(svg, "nothing orders the two</text>"));
    CHECK_FALSE(contains(svg, "is not in view"));
}

TEST_CASE("A missing edge of which a span is not in view is counted in a note") {
    SvgOptions options;
    options.end = 25;
    const std::string svg = to_svg(two_rows(), options);
    CHECK(arrows(svg).empty());
    CHECK(contains(svg, "Missing edges of which a span is not in view: 1."));
    CHECK(arrows(to_svg(Timeline("none"))).empty());
}

TEST_CASE("A row that has the batch twice, and waits for it: the work counts, its last end and first begin") {
    Timeline timeline = two_rows();
    timeline.add({0, 0, 41, 45});
    timeline.add({0, 0, 46, 49, SpanKind::wait});
    timeline.add({1, 1, 22, 29, SpanKind::wait});
    const std::string svg = to_svg(timeline);
    const std::vector<Arrow> all = arrows(svg);
    REQUIRE(all.size() == 1);
    const Element to = box(parse(svg), "train, batch 1, compute");
    CHECK(all[0].x2 == doctest::Approx(to.number("x")));
    const Element from = box(parse(svg), "begins at 41");
    CHECK(all[0].x1 == doctest::Approx(from.number("x") + from.number("width")));
}

TEST_CASE("Pages and traces have missing edges too") {
    Timeline timeline = two_rows();
    const std::string page = to_html(timeline);
    const std::string order = "<g class=\"order\" data-of=\"[";
    REQUIRE(contains(page, order));
    CHECK(contains(page, "\"><title>race on &#39;w&#39;: "));
    // The same heights as in a picture, which has the title above.
    const Arrow arrow = arrows(to_svg(timeline)).at(0);
    double from = 0, y1 = 0, to = 0, y2 = 0;
    const char* const numbers = page.c_str() + page.find(order) + order.size();
    REQUIRE(std::sscanf(numbers, "%lf,%lf,%lf,%lf]", &from, &y1, &to, &y2) == 4);
    CHECK(from == 40);
    CHECK(to == 30);
    CHECK(y2 - y1 == arrow.y2 - arrow.y1);
    // A fixed64 of field 47 (its tag takes two bytes), once at each end; 0x736C756963658000.
    const std::string flow("\xF9\x02\x00\x80\x65\x63\x69\x75\x6C\x73", 10);
    const std::string trace = to_perfetto(timeline);
    const std::size_t first = trace.find(flow);
    REQUIRE(first != std::string::npos);
    const std::size_t second = trace.find(flow, first + 1);
    REQUIRE(second != std::string::npos);
    CHECK(trace.find(flow, second + 1) == std::string::npos);
    CHECK(contains(trace, sentence));
    CHECK_FALSE(contains(to_html(Timeline()), order));
    CHECK(contains(
        text_of([&] {
            timeline.add_missing_edge({0, 0, 2, 0, ""});
        }),
        "Timeline::add_missing_edge: the edge is of row 2, and there are 2 rows; add the row first"));
}

TEST_CASE("A race is an edge where both of its stages are the pipeline's, first from the earlier one") {
    PipelineTimes times;
    times.stage_names = {"encode", "train"};
    const auto edges_of = [&](const char* first, const char* second, checked::Mistake mistake) {
        checked::Finding finding;
        finding.mistake = mistake;
        finding.message = "a race";
        finding.first.stage = first;
        finding.first.batch = 3;
        finding.second.stage = second;
        finding.second.batch = 4;
        return detail::pipeline_report::missing_edges(times, {finding});
    };
    using checked::Mistake;
    for (const char* const other : {"decode", "", "encode "}) {
        CHECK(edges_of(other, "train", Mistake::race).empty());
        CHECK(edges_of("encode", other, Mistake::race).empty());
    }
    CHECK(edges_of("encode", "train", Mistake::use_after_free).empty());
    const std::vector<MissingEdge> edges = edges_of("train", "encode", Mistake::race);
    REQUIRE(edges.size() == 1);
    CHECK(edges[0].from_row == 1);
    CHECK(edges[0].from_batch == 3);
    CHECK(edges[0].to_row == 0);
    CHECK(edges[0].to_batch == 4);
    CHECK(edges[0].text == "a race");

    // Met again: also where it was met last, and, where no time is noted of either, between batches as far apart.
    checked::Finding again;
    again.first.stage = "train";
    again.second.stage = "encode";
    again.first.batch = 3;
    again.second.batch = 4;
    again.first.latest_batch = 30;
    again.second.latest_batch = 31;
    again.count = 2;
    const auto pairs_with = [&](std::vector<std::pair<std::size_t, std::size_t>> noted) {
        times.stages.clear();
        for (const auto& [stage, batch] : noted)
            times.stages.push_back({stage, batch, 0, 1, 0});
        std::vector<std::pair<std::size_t, std::size_t>> batches;
        for (const MissingEdge& edge : detail::pipeline_report::missing_edges(times, {again}))
            batches.emplace_back(edge.from_batch, edge.to_batch);
        return batches;
    };
    using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
    CHECK(pairs_with({}) == Pairs{{3, 4}, {30, 31}});
    CHECK(pairs_with({{0, 9}, {1, 9}, {0, 10}, {1, 10}}) == Pairs{{3, 4}, {30, 31}, {9, 10}});
    CHECK(pairs_with({{1, 9}, {1, 10}}) == Pairs{{3, 4}, {30, 31}});
    CHECK(pairs_with({{1, 3}, {1, 9}, {0, 10}}) == Pairs{{3, 4}, {30, 31}, {9, 10}});
    CHECK(pairs_with({{0, 31}, {1, 9}, {0, 10}}) == Pairs{{3, 4}, {30, 31}, {9, 10}});
    CHECK(pairs_with({{1, 3}, {0, 4}, {1, 9}, {0, 10}}) == Pairs{{3, 4}, {30, 31}});
    CHECK(pairs_with({{1, 30}, {0, 31}, {1, 9}, {0, 10}}) == Pairs{{3, 4}, {30, 31}});
    // Also where the later work is on an earlier batch.
    again.first.batch = 5;
    again.second.batch = 3;
    CHECK(pairs_with({{1, 6}, {0, 4}}) == Pairs{{5, 3}, {30, 31}, {6, 4}});
    CHECK(pairs_with({{1, 2}, {0, 0}}) == Pairs{{5, 3}, {30, 31}, {2, 0}});
    CHECK(pairs_with({{1, 1}, {0, 0}}) == Pairs{{5, 3}, {30, 31}});
}

TEST_CASE("What the checker finds between a pipeline's stages is on its timeline") {
    using B = Checked<UncheckedHost>;
    checked::forget();
    const bool threw = checked::throw_mistakes(false);
    DeviceBuffer<float, B> shared(64);
    struct Slot {
        DeviceBuffer<float, B> values{64};
    };
    for (const int timed : {64, 3}) { // also where the first time is not noted any more
        checked::forget();
        Pipeline pipeline{
            Stages{Stage{"encode", [](BasicStreamRef<B> on, int, Slot& out) { fill(on, out.values, 1.0f); }}
                       .writes(shared),
                   Stage{"train", [](BasicStreamRef<B> on, Slot& in) { fill(on, in.values, 2.0f); }}.reads(
                       shared)},
            Slots{[](int) { return Slot{}; }},
            {.timed_batches = timed}};
        for (int batch = 0; batch < 32; ++batch)
            pipeline.submit(batch);
        pipeline.finish();
        const Timeline timeline = timeline_of(pipeline);
        REQUIRE_FALSE(timeline.missing_edges().empty());
        const MissingEdge& edge = timeline.missing_edges().front();
        CHECK(edge.from_row != edge.to_row);
        CHECK(edge.from_row + edge.to_row == 1);
        CHECK(contains(edge.text, "nothing orders the two. Missing edge: from stage '"));
        CHECK_FALSE(arrows(to_svg(timeline)).empty());
    }
    checked::throw_mistakes(threw);
    checked::forget();
}

} // namespace report_missing_edges
