/// \file
/// What an example reports: a table for people, one JSON object for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace examples {

/// A further value under a name of its own.
using ReportValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;
using ReportValues = std::vector<std::pair<std::string, ReportValue>>;

/// What one schedule gave.
struct RunResult {
    std::string schedule;
    double steps_per_second = 0;
    double step_microseconds = 0;
    double loss_first = 0;
    double loss_last = 0;
    /// Whether all results equal the serial run's bit by bit. Empty, null in JSON, when serial was not run.
    std::optional<bool> identical_to_serial;
    ReportValues extra; ///< further members of this run
    std::vector<std::string>
        notes; ///< what is to be said of it, a sentence each; left out of the JSON when empty
};

/// What one call of an example gave. The members before the last have the same names in every example's JSON.
struct Report {
    std::string experiment;
    std::string backend;
    std::string device;
    std::string data;
    std::int64_t batch = 0;
    std::int64_t steps = 0;
    std::vector<RunResult> runs;
    std::optional<double> ink_pixel_accuracy; ///< left out of the JSON when empty
    std::optional<double> mean_iou;           ///< left out of the JSON when empty
    std::vector<std::string> timelines;       ///< of `--report`, each a JSON object; left out when empty
    ReportValues extra;                       ///< further members
};

/// The report as indented JSON, members in the order above. A number that is not finite becomes null.
/// \throws std::invalid_argument when an extra value takes the name of another member
std::string json_text(const Report& report);

/// Writes `json_text` to a file, whole or not at all.
/// \throws BadInput when it cannot be written
void write_json(const Report& report, const std::filesystem::path& path);

/// Prints the runs as a table: schedule, steps per second, speed-up over serial, first and last loss, and
/// whether the results have the same bits as serial's. A dash stands for what is not known without a serial
/// run. Below come the runs' notes.
void print_table(const Report& report, std::ostream& out);

} // namespace examples
