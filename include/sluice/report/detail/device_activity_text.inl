// Bodies of to_table and to_json, of device_activity.hpp.
#pragma once

#include <string_view>

#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::device_activity_text {

inline const char* name_of(ActivityKind kind) {
    switch (kind) {
    case ActivityKind::copy:
        return "copy";
    case ActivityKind::set:
        return "set";
    case ActivityKind::communication:
        return "communication";
    case ActivityKind::graph:
        return "graph";
    case ActivityKind::kernel:
        break;
    }
    return "kernel";
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

inline void add_right(std::string& line, const std::string& cell, std::size_t width) {
    line.append(cell.size() < width ? width - cell.size() : 1, ' ');
    line += cell;
}

inline std::string head_of(const ActivityReport& report) {
    namespace table = timeline_table;
    std::string head;
    if (!report.title.empty())
        head += timeline_text::shortened(report.title, table::line_columns) + '\n';
    const table::TimeUnit unit = table::unit_for(report.wall);
    head += table::four_digits(report.wall / unit.microseconds) + ' ' + unit.name + ", " +
            table::count(report.count) + " kernels and copies\n";
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
        head += table::wrapped(table::count(report.dropped) +
                               " records were lost, because there was no room for them.") +
                '\n';
    if (report.silent_graphs > 0) {
        head +=
            table::wrapped("Of " + table::count(report.silent_graphs) +
                           " launches of graphs nothing was recorded: begin to record before the graphs are "
                           "instantiated.") +
            '\n';
    }
    return head;
}

inline std::string causes_of(const ActivityReport& report) {
    namespace table = timeline_table;
    const table::TimeUnit unit = table::unit_for(report.wall);
    std::string text = "time by cause ";
    add_right(text, unit.name, 8);
    add_right(text, "%", 8);
    text += '\n';
    const auto add = [&](const char* name, double time) {
        std::string line;
        table::add_left(line, name, 14);
        add_right(line, table::four_digits(time / unit.microseconds), 8);
        add_right(line, percent(report.wall > 0 ? time / report.wall : 0), 8);
        text += line + '\n';
    };
    add("kernel", report.causes.kernel);
    add("copy", report.causes.copy);
    add("set", report.causes.set);
    add("communication", report.causes.communication);
    add("runtime", report.causes.runtime);
    add("source", report.causes.source);
    add("other", report.causes.other);
    return text;
}

/// Whether there are shares of stages by events.
inline bool has_noted(const ActivityReport& report) {
    for (const StageActivity& stage : report.stages) {
        if (stage.noted_share > 0)
            return true;
    }
    return false;
}

inline std::string stages_of(const ActivityReport& report) {
    namespace table = timeline_table;
    const bool noted = has_noted(report);
    std::string text = "stage             activities  running %  first to last %";
    text += noted ? "  by events %\n" : "\n";
    for (const StageActivity& stage : report.stages) {
        std::string line;
        table::add_left(line, stage.name, 16);
        add_right(line, table::count(stage.activities), 12);
        add_right(line, percent(stage.share), 11);
        add_right(line, percent(stage.at_work_share), 17);
        if (noted)
            add_right(line, percent(stage.noted_share), 13);
        text += line + '\n';
    }
    std::string line;
    table::add_left(line, "two or more", 16);
    add_right(line, "", 12);
    add_right(line, percent(report.overlap), 11);
    add_right(line, percent(report.at_work_overlap), 17);
    if (noted)
        add_right(line, percent(report.noted_overlap), 13);
    return text + line + '\n';
}

inline std::string kernels_of(const ActivityReport& report, std::size_t most) {
    namespace table = timeline_table;
    double longest = 0;
    for (const KernelTotal& kernel : report.kernels)
        longest = (std::max)(longest, kernel.total);
    const table::TimeUnit unit = table::unit_for(longest);
    constexpr std::size_t stage_columns = 8;
    const bool with_code = report.tensor_core_unknown < 1;
    const std::size_t name_columns = with_code ? 31 : 36;
    std::string text;
    const auto add = [&](const std::string& stage, const std::string& name, const std::string& code,
                         const std::string& count, const std::string& total, const std::string& mean,
                         const std::string& share) {
        std::string line;
        table::add_left(line, stage, stage_columns);
        line += ' ';
        table::add_left(line, name, name_columns);
        if (with_code)
            add_right(line, code, 5);
        add_right(line, count, 8);
        add_right(line, total, 9);
        add_right(line, mean, 10);
        add_right(line, share, 7);
        text += line + '\n';
    };
    add("stage", "kernel", "TC", "count", std::string("total ") + unit.name, "mean us", "%");
    std::size_t of_stage = 0;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < report.kernels.size(); ++i) {
        const KernelTotal& kernel = report.kernels[i];
        of_stage = i > 0 && report.kernels[i - 1].stage == kernel.stage ? of_stage + 1 : 0;
        if (of_stage >= most) {
            ++left_out;
            continue;
        }
        add(of_stage > 0           ? ""
            : kernel.stage.empty() ? "-"
                                   : kernel.stage,
            short_name(kernel.name), text_of(kernel.tensor_cores), table::count(kernel.count),
            table::four_digits(kernel.total / unit.microseconds), table::four_digits(kernel.mean),
            percent(kernel.share));
    }
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
    const TimeByCause& causes = report.causes;
    json.object({{"kernel_us", causes.kernel},
                 {"copy_us", causes.copy},
                 {"set_us", causes.set},
                 {"communication_us", causes.communication},
                 {"runtime_us", causes.runtime},
                 {"source_us", causes.source},
                 {"other_us", causes.other}},
                "causes");
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
