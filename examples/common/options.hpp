/// \file
/// The options that every example takes, and how a program starts and ends.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <common/bad_input.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace CLI {
class App;
}

namespace examples {

/// What `--backend` asks for.
enum class BackendChoice : std::uint8_t { automatic, cuda, host };

/// A backend that a program runs on.
enum class BackendKind : std::uint8_t { cuda, host };

/// The options common to all examples. An option that was not given, and whose default depends on the example
/// or on its data, is empty: `options.batch.value_or(8)`.
struct CommonOptions {
    BackendChoice backend = BackendChoice::automatic;
    /// What to run, in this order. `all` begins with serial, which the others are compared with.
    std::vector<sluice::Schedule> schedules{sluice::Schedule::serial, sluice::Schedule::overlapped,
                                            sluice::Schedule::graphed, sluice::Schedule::automatic};
    std::optional<int> batch;      ///< images in a batch, at least 1
    std::optional<int> steps;      ///< timed steps, at least 1
    std::optional<int> warmup;     ///< steps before the timed ones, at least 0
    std::string data{"synthetic"}; ///< "synthetic", or an existing folder
    std::uint64_t seed = 1;
    std::string json; ///< where to write the report; empty for nowhere

    [[nodiscard]] bool synthetic() const { return data == "synthetic"; }
    /// For steps of a single stage: which ways of running them are asked for.
    [[nodiscard]] bool one_by_one() const;
    [[nodiscard]] bool as_graph() const;
};

/// What `--report`, `--kernels` and `--timeline` ask for.
struct TimelineOptions {
    bool report = false;  ///< whether to print a table for each run
    bool kernels = false; ///< whether to run each once more, and to print its kernels
    std::string file;     ///< where to draw the runs, below each other; empty for nowhere

    /// For `PipelineOptions::timed_batches`: as many as a picture shows well, or none.
    [[nodiscard]] int timed_batches() const { return report || kernels || !file.empty() ? 24 : 0; }
};

/// What `--help` says about the defaults that an example chooses.
struct DefaultTexts {
    std::string batch{};
    std::string steps{};
    std::string warmup{};
    std::string schedule = "all";
    /// Names that `--data` takes beside a folder, and what each stands for. Empty: "synthetic" for itself. The first one is
    /// the default.
    std::vector<std::pair<std::string, std::string>> data{};
};

/// A program's command line. It keeps CLI11, which takes long to compile, to one source file.
class CommandLine {
public:
    /// `description` is what `--help` begins with.
    explicit CommandLine(const std::string& description);
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;
    ~CommandLine();

    /// An option without a value, which sets `target`, which must outlive the parsing.
    void add_flag(const std::string& name, bool& target, const std::string& help);
    /// Whether an option was on the command line that was parsed.
    [[nodiscard]] bool was_given(const std::string& name) const;

    /// Notes that `option` names a file that is going to be written; `target`, with its name or empty, must outlive the parsing.
    void add_written(const std::string& option, const std::string& target) {
        written_.push_back({option, &target});
    }
    /// \throws BadInput when two options name one file, of which only what is written last would be left
    void require_written_apart() const;

    CLI::App& app() { return *app_; }

private:
    struct Written {
        std::string option;
        const std::string* file;
    };

    std::unique_ptr<CLI::App> app_;
    std::vector<Written> written_;
};

/// Adds those of the common options that any program has to `app`: `--backend`, `--schedule`, `--seed` and `--json`. `options`
/// must outlive the parsing. Values are checked when they are parsed, and a bad one throws BadInput with what was expected.
void add_run_options(CommandLine& app, CommonOptions& options, const std::string& default_schedule = "all");

/// Adds all of the common options, likewise.
void add_common_options(CommandLine& app, CommonOptions& options, const DefaultTexts& defaults);

/// Adds `--report`, `--timeline` and, for programs that record kernels, `--kernels`; `options` must outlive the parsing.
void add_timeline_options(CommandLine& app, TimelineOptions& options, bool with_kernels = true);

// For an example's own options. What they are told is checked when it is parsed, and BadInput names the
// option.

/// An option with a value, which `assign` gets as text. `type` stands for the value in `--help`.
void add_option(CommandLine& app, const std::string& name, const std::string& type, const std::string& help,
                std::function<void(const std::string&)> assign);

/// The name of a file that is going to be written.
void add_written_file(CommandLine& app, const std::string& name, std::string& target,
                      const std::string& help);

/// A whole number from `least` to `most`; `target` is of an integer's type, or an optional of one.
template <class Target>
void add_number(CommandLine& app, const std::string& name, Target& target, std::int64_t least,
                std::int64_t most, const std::string& help);

/// A whole number from `least` to `most`.
/// \throws BadInput, naming `option`, when `text` is anything else
std::int64_t parse_whole_number(const std::string& option, const std::string& text, std::int64_t least,
                                std::int64_t most);

/// The value of those that `option` takes whose name is `text`.
/// \throws BadInput, with all names, when there is none
template <class T>
T named(const std::string& option, const std::string& text,
        std::initializer_list<std::pair<const char*, T>> values);

/// \throws BadInput when `option` was given, and none of the `parts` that take it `runs`: it would be ignored, in silence
void require_part(const CommandLine& app, const std::string& option, const std::string& parts, bool runs);

/// \throws BadInput when a picture is asked for, but there are no images to show in it
void require_data_for_picture(const CommonOptions& options, const std::string& picture);

/// \throws BadInput when steps of a single stage are to run in no way but overlapped
void require_way_of_single_stage(const CommonOptions& options);

/// Parses the arguments of `main`. Empty when the program is to go on; otherwise its exit code: 0 after
/// `--help`, printed to `out`, and 2 after a wrong option, told in one line on `err`.
std::optional<int> parse_or_exit_code(CommandLine& app, int argc, const char* const* argv);
std::optional<int> parse_or_exit_code(CommandLine& app, int argc, const char* const* argv, std::ostream& out,
                                      std::ostream& err);

/// Runs `body`, which parses the arguments and returns the exit code. BadInput, also where it is nested in what a stage or a
/// source has failed with, becomes one line on `err` and exit code 2, any other exception one line and exit code 1, and so does
/// a body that succeeded whose output, on `out`, cannot be written. Use: `int main(int argc, char** argv) { return
/// examples::run_main(argc, argv, [&] { … return 0; }); }`
int run_main(int argc, const char* const* argv, const std::function<int()>& body);
int run_main(int argc, const char* const* argv, const std::function<int()>& body, std::ostream& out,
             std::ostream& err);

/// What a program found out about CUDA on this machine.
struct CudaProbe {
    bool built = false; ///< compiled with the CUDA backend
    int devices = 0;    ///< devices that can be used
    std::string reason; ///< why there are none, as the driver puts it; may be empty
};

/// The backend to run on: the one asked for, or for `automatic` CUDA if a device can be used.
/// \throws BadInput when CUDA was asked for and cannot be had
BackendKind choose_backend(BackendChoice choice, const CudaProbe& probe);

/// "cuda" or "host".
std::string to_string(BackendKind backend);

// ---------------------------------------------------------------------------------------------------------------

template <class Target>
void add_number(CommandLine& app, const std::string& name, Target& target, std::int64_t least,
                std::int64_t most, const std::string& help) {
    add_option(app, name, "N", help, [name, least, most, &target](const std::string& text) {
        const std::int64_t number = parse_whole_number(name, text, least, most);
        if constexpr (requires { typename Target::value_type; }) {
            target = static_cast<typename Target::value_type>(number);
        } else {
            target = static_cast<Target>(number);
        }
    });
}

template <class T>
T named(const std::string& option, const std::string& text,
        std::initializer_list<std::pair<const char*, T>> values) {
    std::string expected;
    for (auto value = values.begin(); value != values.end(); ++value) {
        if (text == value->first)
            return value->second;
        if (value != values.begin())
            expected += value + 1 == values.end() ? " or " : ", ";
        expected += value->first;
    }
    throw BadInput(option + ": expected " + expected + ", not \"" + text + '"');
}

} // namespace examples
