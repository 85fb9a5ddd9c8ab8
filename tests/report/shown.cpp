// Whole reports of made-up runs, as they were looked at: tests/data/reports has them, their numbers worked out by hand. A change of
// how reports look writes them anew, `SLUICE_TEST_WRITE_REPORTS=1 test_report`; look at what has changed.
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report.hpp>

#include "support/doctest.hpp"

namespace report_shown {

using namespace sluice;

namespace {

void check_shown(const std::string& name, const std::string& text) {
    const std::string path = std::string(SLUICE_TEST_DATA_DIR) + "/reports/" + name;
    if (std::getenv("SLUICE_TEST_WRITE_REPORTS") != nullptr)
        std::ofstream(path, std::ios::binary) << text;
    std::ifstream in(path, std::ios::binary);
    const std::string wanted{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (text == wanted)
        return;
    std::size_t at = 0;
    while (at < text.size() && at < wanted.size() && text[at] == wanted[at])
        ++at;
    const auto line_of = [&](const std::string& of) {
        const std::size_t begin = at == 0 ? 0 : of.rfind('\n', at - 1) + 1;
        return of.substr(begin, of.find('\n', begin) - begin);
    };
    FAIL(name, " has the line\n", line_of(text), "\nand is to have\n", line_of(wanted));
}

/// Without what stands between two marks, which is the same in all.
std::string without(std::string text, const std::string& begin, const std::string& end) {
    for (std::size_t at = text.find(begin); at != std::string::npos;
         at = text.find(begin, at + begin.size())) {
        at += begin.size();
        text.erase(at, text.find(end, at) - at);
    }
    return text;
}
std::string without_styles(const std::string& text) {
    const std::string constant = detail::drawing::svg_style;
    std::string shown = text;
    for (std::size_t at = shown.find(constant); at != std::string::npos; at = shown.find(constant))
        shown.erase(at, constant.size());
    return shown;
}

SvgOptions options_with(double width, const char* caption) {
    SvgOptions options;
    options.width = width;
    options.caption = caption;
    return options;
}

/// With 1088 pixels, 122 of them for names and 16 at the right, a microsecond takes 9.5 pixels.
Timeline steps() {
    Timeline timeline("Steps");
    const std::size_t encode = timeline.add_row("a", "GPU 0"), load = timeline.add_row("load", "GPU 0"),
                      fill = timeline.add_row("fill", "CPU");
    timeline.add({encode, 0, 0, 40});
    timeline.add({encode, 1, 30, 70});
    timeline.add({encode, 10, 70.2, 70.25});
    timeline.add({load, 1, 0, 25, SpanKind::copy});
    timeline.add({load, 2, 25, 25.2, SpanKind::wait});
    timeline.add({fill, 2, 50, 75, SpanKind::source});
    timeline.add({fill, 3, 75, 100, SpanKind::wait});
    const std::size_t power = timeline.add_counter("power", "W");
    timeline.add_value(power, 0, 100);
    timeline.add_value(power, 40, 300);
    timeline.add_value(power, 80, 200);
    timeline.add_missing_edge({load, 1, encode, 1, "load and a: nothing orders them"});
    return timeline;
}

/// With the second one, 35 us on 201 pixels. Narrow spans, an edge that is not seen, a counter below 0.
std::pair<Timeline, Timeline> two_runs() {
    Timeline first("First & last"), second;
    first.add_row("a much too long name");
    first.add_row("b", "CPU");
    first.add_row("c");
    first.add({0, 7, 0, 10});
    first.add({0, 8, 10, 10.01});
    first.add({0, 9, 10.02, 10.03});
    first.add({0, 9, 10.3, 10.31});
    first.add({1, 3, 20, 30, SpanKind::copy});
    first.add({1, 5, 0, 1, SpanKind::copy});
    first.add({1, 4, 2, 4, SpanKind::wait});
    first.add({2, 4, 12, 16, SpanKind::source});
    first.add_missing_edge({1, 99, 0, 7, "there is no such batch"});
    first.add_missing_edge({2, 4, 1, 3, "y < z"});
    first.add_missing_edge({1, 5, 1, 3, "on one row"});
    first.set_latencies({10, 20, 30});
    second.add_row("only");
    second.add({0, 1, 35, 40});
    second.set_latencies({5});
    const std::size_t heat = second.add_counter("temp");
    second.add_value(heat, 10, -1);
    second.add_value(heat, 20, 3);
    second.add_counter("none", "B");
    return {std::move(first), std::move(second)};
}

DeviceActivity activity(ActivityKind kind, double begin, double end, std::uint32_t name, std::uint32_t stage,
                        std::uint32_t stream) {
    DeviceActivity made;
    made.kind = kind;
    made.begin = 1000 + begin;
    made.end = 1000 + end;
    made.name = name;
    made.stage = stage;
    made.stream = stream;
    return made;
}

DeviceActivities activities() {
    DeviceActivities all;
    all.names = {"void ns::gemm<float, (Kind)2>(float const*, int)",
                 "relu(float*)",
                 "copy, host to device",
                 "fill",
                 "ncclAllReduce",
                 "cudaLaunchKernel"};
    all.tensor_cores = {TensorCores::present, TensorCores::absent};
    all.stages = {"a", "load"};
    constexpr std::uint32_t none = DeviceActivity::unknown;
    all.activities = {activity(ActivityKind::kernel, 2, 22, 0, 0, 7),
                      activity(ActivityKind::kernel, 22, 26, 1, 0, 7),
                      activity(ActivityKind::kernel, 31, 55, 0, 0, 7),
                      activity(ActivityKind::copy, 3, 13, 2, 1, 8),
                      activity(ActivityKind::copy, 24, 29, 2, 1, 8),
                      activity(ActivityKind::set, 56, 58, 3, none, 9),
                      activity(ActivityKind::communication, 60, 66, 4, none, 10)};
    for (std::size_t i = 0; i < all.activities.size(); ++i)
        all.activities[i].batch = i < 2 || i == 3 ? 0 : 1;
    all.activities[3].bytes = 4096;
    all.activities[4].bytes = 2048;
    all.activities[5].bytes = 512;
    all.calls = {{1068, 1071, 1, 5}, {1070, 1073, 2, 5}};
    all.dropped = 3;
    all.silent_graphs = 2;
    return all;
}

} // namespace

TEST_CASE("shown: pictures") {
    check_shown("wide.svg", without_styles(to_svg(steps(), options_with(1088, "What it shows."))));
    const auto [first, second] = two_runs();
    SvgOptions part = options_with(310, "One.\nTwo.");
    part.begin = 5;
    part.merge_above = 3;
    check_shown("narrow.svg", without_styles(to_svg({&first, &second}, part)));
    check_shown("empty.svg", without_styles(to_svg(std::vector<const Timeline*>{})));

    // 104 spans at the same time, of which the last five share a lane; and two that begin where others end.
    Timeline crowd;
    crowd.add_row("all");
    crowd.add_row("few");
    for (std::size_t batch = 0; batch < 104; ++batch)
        crowd.add({0, batch, static_cast<double>(batch) / 2,
                   batch == 101 ? 120.0 : 100.0 + static_cast<double>(batch % 2)});
    for (std::size_t batch = 0; batch < 6; ++batch)
        crowd.add({1, batch, 0, 50});
    crowd.add({1, 6, 50, 100});
    crowd.add({1, 7, 49, 100});
    check_shown("crowd.svg", without_styles(to_svg(crowd)));

    // Narrow spans that are merged with narrow ones alone, and steps of a counter within half a pixel; a pixel is 0.1 us.
    Timeline narrow;
    narrow.add_row("x");
    narrow.add_row("nothing");
    narrow.add({0, 0, 0, 0.01});
    narrow.add({0, 1, 0.02, 0.03});
    narrow.add({0, 2, 0.03, 0.04});
    narrow.add({0, 3, 0.04, 10});
    narrow.add({0, 4, 10, 10.01});
    narrow.add({0, 5, 10.05, 10.06});
    narrow.add({0, 6, 20, 87.2});
    const std::size_t counter = narrow.add_counter("c");
    for (const auto& [time, value] : {std::pair{0.0, 0.5},
                                      {1.0, 0.25},
                                      {1.01, 0.75},
                                      {2.0, 0.4},
                                      {2.01, 0.9},
                                      {2.02, 0.1},
                                      {2.03, 0.2},
                                      {2.06, 0.3}})
        narrow.add_value(counter, time, value);
    SvgOptions merging;
    merging.merge_above = 0;
    check_shown("merged.svg", without_styles(to_svg(narrow, merging)));

    // What lasts no time has an axis all the same, long enough to tell its ticks apart.
    for (const auto& [name, time] :
         {std::pair{"instant.svg", 2e9}, {"instant_early.svg", 5e7}, {"instant_before.svg", -2e9}}) {
        Timeline instants;
        instants.add_row("marks");
        instants.add({0, 0, time, time});
        check_shown(name, without_styles(to_svg(instants)));
    }
    merging.begin = merging.end = 5;
    CHECK_THROWS_AS((void)to_svg(narrow, merging), Error);

    // Times up to 1e15 us.
    Timeline far;
    far.add_row("all");
    far.add({0, 0, -1e15, 1e15});
    far.add_value(far.add_counter("c"), -1e15, 1);
    far.add_value(0, 1e15, 2);
    CHECK_NOTHROW((void)to_svg(far));
    for (const double time : {-1.1e15, 1.1e15}) {
        Timeline span = far, value = far;
        span.add({0, 1, time, time});
        value.add_value(0, time, 1);
        CHECK_THROWS_AS((void)to_svg(span), Error);
        CHECK_THROWS_AS((void)to_svg(value), Error);
    }
}

TEST_CASE("shown: pages") {
    HtmlOptions options;
    options.text = "As it\nis: <b>";
    options.tables = {
        {"Mine", {"name", "count", "share"}, {{"x", "12", "-"}, {"y & z", "-3.5 %"}, {"", "", ""}}},
        {"", {"a"}, {}}};
    const auto page = [&](const std::vector<const Timeline*>& timelines) {
        return without_styles(
            without(without(to_html(timelines, options), "<script>", "</script>"), "<style>\n", "</style>"));
    };
    const Timeline one = steps();
    check_shown("page.html", page({&one}));
    const auto [first, second] = two_runs();
    options.title = "Both";
    check_shown("page_of_two.html", page({&first, &second}));
}

TEST_CASE("shown: numbers of timelines") {
    const auto [first, second] = two_runs();
    const TimelineReport one = report_of(steps()), before = report_of(first), after = report_of(second);
    check_shown("timelines.txt", to_table(one) + '\n' + to_table(before) + '\n' + to_table(after) + '\n' +
                                     to_table(report_of(Timeline())) + '\n' +
                                     comparison_sentence(compare(before, after)) + '\n');
    // Short names, or long ones, of rows without a unit.
    std::string narrow;
    for (const std::string& name : {std::string("x"), std::string(60, 'y')}) {
        Timeline timeline;
        timeline.add_row(name);
        timeline.add({0, 0, 0, 1});
        narrow += to_table(report_of(timeline)) + '\n';
    }
    // Rows of one name, told apart by their units, of which 12 columns are shown.
    Timeline twins;
    twins.add_row("train", "the second GPU");
    twins.add_row("train", "GPU 1");
    twins.add({0, 0, 0, 9});
    twins.add({1, 0, 0, 8});
    narrow += to_table(report_of(twins));
    check_shown("narrow_tables.txt", narrow);
    check_shown("timelines.json", to_json(one) + '\n' + to_json(before) + '\n' + to_json(after) + '\n');
}

TEST_CASE("shown: what devices did") {
    Timeline timeline = steps();
    timeline.set_clock_zero(1000);
    const DeviceActivities all = activities();
    const ActivityReport within =
        report_of(all, {.title = "Within", .timeline = &timeline, .slowdown = 1.25});
    const ActivityReport alone = report_of(all);
    check_shown("activities.txt", to_table(within) + '\n' + to_table(alone, 1));
    check_shown("activities.json", to_json(within) + '\n' + to_json(alone) + '\n');
    DeviceActivities one;
    one.names = {"only"};
    one.activities = {activity(ActivityKind::kernel, 0, 3, 0, DeviceActivity::unknown, 7)};
    check_shown("activity.txt",
                to_table(report_of(one)) + '\n' + to_table(report_of(one, {.slowdown = 0.5})));
    std::string tables;
    std::vector<HtmlTable> shown = tables_of(within);
    DeviceActivities instant;
    instant.names = {"mark"};
    instant.activities = {activity(ActivityKind::kernel, 1, 1, 0, DeviceActivity::unknown, 7)};
    for (HtmlTable& table : tables_of(report_of(instant)))
        shown.push_back(std::move(table));
    for (const HtmlTable& table : shown) {
        tables += table.title + '\n';
        for (const std::string& head : table.heads)
            tables += head + '|';
        for (const std::vector<std::string>& row : table.rows) {
            tables += '\n';
            for (const std::string& cell : row)
                tables += cell + '|';
        }
        tables += '\n';
    }
    check_shown("kernel_tables.txt", tables);
    add_rows(timeline, all);
    check_shown("rows.json", to_json(report_of(timeline)) + '\n');
}

TEST_CASE("shown: a trace") {
    std::string text;
    const std::string trace = to_perfetto(steps());
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const auto byte = static_cast<unsigned char>(trace[i]);
        text += "0123456789abcdef"[byte / 16];
        text += "0123456789abcdef"[byte % 16];
        text += i % 32 == 31 ? "\n" : "";
    }
    check_shown("trace.txt", text + '\n');
}

TEST_CASE("shown: a pipeline's plan") {
    PipelineDescription plan;
    plan.backend = "cuda";
    plan.schedule = Schedule::graphed;
    plan.graphs = GraphedWork::steps;
    plan.steps_per_graph = 4;
    plan.slots = 3;
    plan.in_flight = 6;
    plan.stages.resize(4);
    StageDescription& load = plan.stages[0];
    load = {.name = "load \"fast\"",
            .unit = "GPU 0",
            .lanes = 2,
            .streams = {0, 1},
            .priority = -1,
            .multiprocessors = 8};
    load.reads_batch = load.has_output = true;
    load.slot_bytes = 24;
    load.device_bytes = 3072;
    load.pinned_bytes = 1536;
    StageDescription& encode = plan.stages[1];
    encode = {.name = "encode", .unit = "GPU 1", .streams = {2}, .external_stream = true, .reads = {0}};
    encode.window = 5;
    encode.batches_a_run = 2;
    encode.every = 2;
    encode.device_bytes = encode.pinned_bytes = 1;
    encode.has_output = true;
    encode.waits = {{0, false, 0}, {2, true, 1}};
    StageDescription& change = plan.stages[2];
    change = {.name = "change",
              .unit = "GPU 1",
              .streams = {2},
              .graphed = false,
              .reads = {1},
              .in_place = true,
              .has_output = true};
    change.multiprocessors = 1;
    StageDescription& write = plan.stages[3];
    write = {.name = "write", .unit = "CPU", .is_cpu = true, .lanes = 3, .reads = {0, 2}};
    write.waits = {{0, true, 0}};
    std::string text = to_json(plan) + '\n' + to_dot(plan);
    plan.graphs = GraphedWork::stages;
    plan.slots = 1;
    write.lanes = 1;
    text += to_dot(plan);
    plan.graphs = GraphedWork::none;
    plan.schedule = Schedule::serial;
    text += to_json(plan) + '\n' + to_dot(plan);
    check_shown("plan.txt", text);
}

TEST_CASE("shown: advice") {
    Advice advice;
    advice.trials.resize(3);
    advice.trials[0] = {.schedule = Schedule::overlapped, .slots = 2, .workers = 1};
    advice.trials[0].predicted = 120;
    advice.trials[0].measured = 123;
    advice.trials[1] = {.schedule = Schedule::graphed, .graph_each_stage = true, .slots = 3, .workers = 2};
    advice.trials[1].predicted = 15'000;
    advice.trials[2] = {.schedule = Schedule::serial, .slots = 2, .workers = 0};
    advice.trials[2].measured = 250;
    advice.best = advice.trials[0];
    advice.first.sentence = "the loop bounds this.";
    advice.bound.sentence = "a stage bounds this.";
    advice.share = "It could have a share of the device.";
    detail::advice::say(advice);
    check_shown("advice.txt", to_table(advice));
}

} // namespace report_shown
