#include <common/report.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include <common/files.hpp>

namespace examples {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Row = std::array<std::string, 6>;

constexpr const char* accuracy_name = "ink_pixel_accuracy";
constexpr const char* iou_name = "mean_iou";
constexpr const char* timelines_name = "timelines";

void add_extra(OrderedJson& object, const ReportValues& values) {
    for (const auto& [name, value] : values) {
        // The names of the optional members are taken even where there is no value of theirs.
        if (object.contains(name) || name == accuracy_name || name == iou_name || name == timelines_name)
            throw std::invalid_argument("a report holds \"" + name + "\" twice");
        std::visit([&object, &key = name](const auto& held) { object[key] = held; }, value);
    }
}

OrderedJson to_json(const RunResult& run) {
    OrderedJson object;
    object["schedule"] = run.schedule;
    object["steps_per_second"] = run.steps_per_second;
    object["step_microseconds"] = run.step_microseconds;
    object["loss_first"] = run.loss_first;
    object["loss_last"] = run.loss_last;
    object["identical_to_serial"] = nullptr;
    if (run.identical_to_serial)
        object["identical_to_serial"] = *run.identical_to_serial;
    add_extra(object, run.extra);
    if (!run.notes.empty())
        object["notes"] = run.notes;
    return object;
}

std::string formatted(const char* format, double number) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, number);
    return text.data();
}

Row row_of(const RunResult& run, const RunResult* serial) {
    Row row{run.schedule,
            formatted("%.1f", run.steps_per_second),
            "-",
            formatted("%.6g", run.loss_first),
            formatted("%.6g", run.loss_last),
            "-"};
    if (serial != nullptr && serial->steps_per_second > 0) {
        row[2] = formatted("%.2f", run.steps_per_second / serial->steps_per_second) + "x";
    }
    if (run.identical_to_serial)
        row[5] = *run.identical_to_serial ? "yes" : "no";
    return row;
}

} // namespace

std::string json_text(const Report& report) {
    OrderedJson object;
    object["experiment"] = report.experiment;
    object["backend"] = report.backend;
    object["device"] = report.device;
    object["data"] = report.data;
    object["batch"] = report.batch;
    object["steps"] = report.steps;
    object["runs"] = OrderedJson::array();
    for (const RunResult& run : report.runs)
        object["runs"].push_back(to_json(run));
    if (report.ink_pixel_accuracy)
        object[accuracy_name] = *report.ink_pixel_accuracy;
    if (report.mean_iou)
        object[iou_name] = *report.mean_iou;
    for (const std::string& timeline : report.timelines)
        object[timelines_name].push_back(OrderedJson::parse(timeline));
    add_extra(object, report.extra);
    // A path or a device name may hold bytes that are not UTF-8.
    return object.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

void write_json(const Report& report, const std::filesystem::path& path) {
    write_whole_file(path, json_text(report));
}

void print_table(const Report& report, std::ostream& out) {
    const auto serial = std::find_if(report.runs.begin(), report.runs.end(),
                                     [](const RunResult& run) { return run.schedule == "serial"; });
    const RunResult* baseline = serial == report.runs.end() ? nullptr : &*serial;
    std::vector<Row> rows{
        {"schedule", "steps/s", "speed-up", "first loss", "last loss", "same bits as serial"}};
    for (const RunResult& run : report.runs)
        rows.push_back(row_of(run, baseline));

    std::array<std::size_t, std::tuple_size_v<Row>> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string padding(widths[i] - row[i].size(), ' ');
            // The first column is text, the others line up on the right.
            line += i == 0 ? row[i] + padding : "  " + padding + row[i];
        }
        out << line << '\n';
    }
    for (const RunResult& run : report.runs) {
        for (const std::string& note : run.notes)
            out << run.schedule << ": " << note << '\n';
    }
}

} // namespace examples
