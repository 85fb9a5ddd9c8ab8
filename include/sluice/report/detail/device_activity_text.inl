// Bodies of to_table and to_json, of device_activity.hpp.
#pragma once

#include <string_view>
#include <utility>

#include <sluice/report/detail/json_writer.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::device_activity_text {

inline const char* name_of(ActivityKind kind) {
    constexpr const char* names[] = {"kernel", "copy", "set", "communication", "graph"};
    return kind <= ActivityKind::graph ? names[static_cast<std::size_t>(kind)] : names[0];
}

/// A kernel's name without what a reader does not need: "void ", the arguments of the function, and anonymous namespaces.
inline std::string short_name(std::string_view name) {
    std::string result;
    for (std::size_t at = 0; at < name.size();) {
        constexpr std::string_view hidden[] = {"void ", "(anonymous namespace)::", "<unnamed>::"};
        std::size_t skipped = 0;
        for (const std::string_view text : hidden) {
            if (name.substr(at).starts_with(text) && (text != "void " || at == 0))
                skipped = text.size();
        }
        if (skipped == 0)
            result += name[at];
        at += skipped > 0 ? skipped : 1;
    }
    // The arguments are in the last parentheses that stand outside of all angle brackets.
    std::size_t depth = 0;
    for (std::size_t at = result.size(); at > 0; --at) {
        const char c = result[at - 1];
        const bool arrow = at > 1 && c == '>' && result[at - 2] == '-';
        if (c == ')' || (c == '>' && !arrow))
            ++depth;
        if ((c == '(' || c == '<') && depth > 0 && --depth == 0) {
            if (c == '(' && at > 1)
                result.resize(at - 1);
            break;
        }
    }
    return result;
}

using numbers::percent;

/// A cell of a table of kernels.
inline const char* text_of(TensorCores code) {
    return code == TensorCores::present ? "yes" : code == TensorCores::absent ? "no" : "-";
}

/// The causes with their names.
inline std::vector<std::pair<const char*, double>> named(const TimeByCause& time) {
    return {{"kernel", time.kernel},   {"copy", time.copy},
            {"set", time.set},         {"communication", time.communication},
            {"runtime", time.runtime}, {"source", time.source},
            {"other", time.other}};
}

inline std::string head_of(const ActivityReport& report) {
    namespace table = timeline_table;
    std::string head;
    if (!report.title.empty())
        head += timeline_text::shortened(report.title, table::line_columns) + '\n';
    const table::TimeUnit unit = table::unit_for(report.wall);
    head += table::four_digits(report.wall / unit.microseconds) + ' ' + unit.name + ", " +
            table::count(report.count) + (report.count == 1 ? " kernel or copy\n" : " kernels and copies\n");
    head += "device: " + percent(report.device.compute_only) + " % compute only, " +
            percent(report.device.copy_only) + " % copy only, " + percent(report.device.both) + " % both, " +
            percent(report.device.neither) + " % neither\n";
    if (report.tensor_core_unknown < 1) {
        const std::string unknown = report.tensor_core_unknown > 0
                                        ? "; of " + percent(report.tensor_core_unknown) + " % it is not known"
                                        : "";
        head +=
            table::wrapped("Tensor Cores: kernels that use them took " + percent(report.tensor_core_share) +
                           " % of all kernels' time" + unknown + '.') +
            '\n';
    }
    if (report.slowdown > 0) {
        head +=
            table::wrapped("A step took " + table::fixed(report.slowdown, 3) +
                           " x as long while this was recorded; the times below are not corrected for it.") +
            '\n';
    }
    if (report.dropped > 0)
        head += table::wrapped(detail::counted_were(table::count(report.dropped), "record") +
                               " lost, because there was no room for them.") +
                '\n';
    if (report.silent_graphs > 0) {
        head += table::wrapped("Of " + detail::counted(table::count(report.silent_graphs), "launch") +
                               " of graphs nothing was recorded: begin to record before the graphs are "
                               "instantiated.") +
                '\n';
    }
    return head;
}

inline std::string causes_of(const ActivityReport& report) {
    namespace table = timeline_table;
    const table::TimeUnit unit = table::unit_for(report.wall);
    TextTable lines({14}, {8, 8});
    lines.add({"time by cause", unit.name, "%"});
    for (const auto& [name, time] : named(report.causes))
        lines.add({name, table::four_digits(time / unit.microseconds),
                   percent(report.wall > 0 ? time / report.wall : 0)});
    return lines.text();
}

inline std::string stages_of(const ActivityReport& report) {
    bool noted = false; // by events
    for (const StageActivity& stage : report.stages)
        noted = noted || stage.noted_share > 0;
    TextTable lines({16},
                    noted ? std::vector<std::size_t>{12, 11, 17, 13} : std::vector<std::size_t>{12, 11, 17});
    lines.add({"stage", "activities", "running %", "first to last %", "by events %"});
    for (const StageActivity& stage : report.stages)
        lines.add({stage.name, timeline_table::count(stage.activities), percent(stage.share),
                   percent(stage.at_work_share), percent(stage.noted_share)});
    lines.add({"two or more", "", percent(report.overlap), percent(report.at_work_overlap),
               percent(report.noted_overlap)});
    return lines.text();
}

inline std::string kernels_of(const ActivityReport& report, std::size_t most) {
    namespace table = timeline_table;
    double longest = 0;
    for (const KernelTotal& kernel : report.kernels)
        longest = (std::max)(longest, kernel.total);
    const table::TimeUnit unit = table::unit_for(longest);
    const bool with_code = report.tensor_core_unknown < 1;
    TextTable lines({8, with_code ? std::size_t{31} : 36}, with_code
                                                               ? std::vector<std::size_t>{5, 8, 9, 10, 7}
                                                               : std::vector<std::size_t>{8, 9, 10, 7});
    const auto add = [&](std::vector<std::string> cells) {
        if (!with_code)
            cells.erase(cells.begin() + 2);
        lines.add(cells);
    };
    add({"stage", "kernel", "TC", "count", std::string("total ") + unit.name, "mean us", "%"});
    std::size_t of_stage = 0;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < report.kernels.size(); ++i) {
        const KernelTotal& kernel = report.kernels[i];
        of_stage = i > 0 && report.kernels[i - 1].stage == kernel.stage ? of_stage + 1 : 0;
        if (of_stage >= most) {
            ++left_out;
            continue;
        }
        const std::string stage = kernel.stage.empty() ? "-" : kernel.stage;
        add({of_stage > 0 ? "" : stage, short_name(kernel.name), text_of(kernel.tensor_cores),
             table::count(kernel.count), table::four_digits(kernel.total / unit.microseconds),
             table::four_digits(kernel.mean), percent(kernel.share)});
    }
    std::string text = lines.text();
    if (left_out > 0)
        text += "and " + table::count(left_out) + " more names\n";
    if (with_code)
        text += "TC: has instructions of Tensor Cores\n";
    return text;
}

} // namespace detail::device_activity_text

inline std::string to_table(const ActivityReport& report, std::size_t most) {
    namespace parts = detail::device_activity_text;
    std::string table = parts::head_of(report) + '\n' + parts::causes_of(report);
    if (!report.stages.empty())
        table += '\n' + parts::stages_of(report);
    if (!report.kernels.empty())
        table += '\n' + parts::kernels_of(report, most);
    return table;
}

inline std::string to_json(const ActivityReport& report) {
    namespace parts = detail::device_activity_text;
    using Json = detail::JsonWriter;
    Json json;
    json.open('{');
    json.members({{"title", report.title},
                  {"begin_us", report.begin},
                  {"end_us", report.end},
                  {"wall_us", report.wall},
                  {"slowdown", report.slowdown},
                  {"count", report.count}});
    detail::timeline_json::add_device(json, report.device);
    json.members({{"busy_share", report.busy_share},
                  {"overlap", report.overlap},
                  {"at_work_overlap", report.at_work_overlap},
                  {"noted_overlap", report.noted_overlap}});
    json.open('{', "causes");
    for (const auto& [name, time] : parts::named(report.causes))
        json.members({{name + std::string("_us"), time}});
    json.close('}');
    json.open('[', "stages");
    for (const StageActivity& stage : report.stages)
        json.object({{"name", stage.name},
                     {"activities", stage.activities},
                     {"busy_us", stage.busy},
                     {"share", stage.share},
                     {"at_work_us", stage.at_work},
                     {"at_work_share", stage.at_work_share},
                     {"noted_share", stage.noted_share}});
    json.close(']');
    json.open('[', "kernels");
    for (const KernelTotal& kernel : report.kernels) {
        const bool known = kernel.tensor_cores != TensorCores::unknown;
        json.object({{"name", kernel.name},
                     {"stage", kernel.stage},
                     {"kind", parts::name_of(kernel.kind)},
                     {"count", kernel.count},
                     {"total_us", kernel.total},
                     {"mean_us", kernel.mean},
                     {"share", kernel.share},
                     {"bytes", static_cast<std::size_t>(kernel.bytes)},
                     {"tensor_cores", known ? Json::Value(kernel.tensor_cores == TensorCores::present)
                                            : Json::Value::null()}});
    }
    json.close(']');
    json.members({{"tensor_core_share", report.tensor_core_share},
                  {"tensor_core_unknown", report.tensor_core_unknown},
                  {"dropped", report.dropped},
                  {"silent_graphs", report.silent_graphs}});
    json.close('}');
    return std::move(json).text();
}

} // namespace sluice
