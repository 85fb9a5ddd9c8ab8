#include <common/options.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <new>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

constexpr std::int64_t largest_batch = 65536;
constexpr std::int64_t largest_steps = 1'000'000'000;

std::string program_name(int argc, const char* const* argv) {
    if (argc < 1 || argv == nullptr || argv[0] == nullptr)
        return "example";
    return std::filesystem::path{argv[0]}.filename().string();
}

[[noreturn]] void reject(const std::string& option, const std::string& expected, const std::string& text) {
    throw BadInput(option + ": expected " + expected + ", not \"" + text + '"');
}

/// The whole of `text` as a number.
template <class Number>
std::optional<Number> number_from(const std::string& text) {
    Number number{};
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stopped != end)
        return std::nullopt;
    return number;
}

BackendChoice parse_backend(const std::string& text) {
    return named<BackendChoice>(
        "--backend", text,
        {{"auto", BackendChoice::automatic}, {"cuda", BackendChoice::cuda}, {"host", BackendChoice::host}});
}

std::vector<sluice::Schedule> parse_schedules(const std::string& text) {
    using Schedules = std::vector<sluice::Schedule>;
    constexpr auto serial = sluice::Schedule::serial;
    constexpr auto overlapped = sluice::Schedule::overlapped;
    constexpr auto graphed = sluice::Schedule::graphed;
    constexpr auto automatic = sluice::Schedule::automatic;
    Schedules schedules;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const Schedules more = named<Schedules>("--schedule", text.substr(begin, end - begin),
                                                {{"serial", Schedules{serial}},
                                                 {"overlapped", Schedules{overlapped}},
                                                 {"graphed", Schedules{graphed}},
                                                 {"automatic", Schedules{automatic}},
                                                 {"all", Schedules{serial, overlapped, graphed, automatic}}});
        schedules.insert(schedules.end(), more.begin(), more.end());
        begin = end + 1;
    }
    return schedules;
}

std::uint64_t parse_seed(const std::string& text) {
    const std::optional<std::uint64_t> seed = number_from<std::uint64_t>(text);
    if (!seed)
        reject("--seed", "a whole number from 0 to 18,446,744,073,709,551,615", text);
    return *seed;
}

using NamedData = std::vector<std::pair<std::string, std::string>>;

/// The names, with `separator` between them.
std::string names_of(const NamedData& data, const char* separator) {
    std::string names;
    for (const auto& [name, meaning] : data)
        names += (names.empty() ? "" : separator) + name;
    return names;
}

std::string parse_data(const std::string& text, const NamedData& data) {
    for (const auto& [name, meaning] : data) {
        if (text == name)
            return meaning;
    }
    std::error_code ignored;
    if (!std::filesystem::is_directory(text, ignored))
        reject("--data", names_of(data, ", ") + " or an existing folder of IDX files", text);
    return text;
}

/// What BadInput says that `error` is, or that is nested in it: what a stage or a source throws arrives in an error that names
/// them, which says nothing about the file. Empty where it is another error.
std::optional<std::string> bad_input_in(const std::exception& error) {
    if (dynamic_cast<const BadInput*>(&error) != nullptr)
        return error.what();
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception& inner) {
        return bad_input_in(inner);
    } catch (...) {
        return std::nullopt;
    }
    return std::nullopt;
}

/// CLI11's own words, made into a sentence where they are too terse for one.
std::string described(const CLI::App& app, const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const std::vector<std::string> extras = app.remaining(true);
        if (!extras.empty()) {
            const std::string kind = extras.front().starts_with("-") ? "option " : "argument ";
            return "unknown " + kind + '"' + extras.front() + "\"; --help lists the options";
        }
    }
    const std::string text = error.what();
    const std::string option = text.substr(0, text.find(':'));
    if (option.starts_with("-")) {
        if (text.ends_with(" missing"))
            return option + ": expected a value after it";
        // "At Most" or "At most", by CLI11's version.
        if (text.find("ost 1 required but received") != std::string::npos)
            return option + ": expected once, but given several times";
    }
    return text;
}

/// Whether two names, which may be empty, are of one file, which need not be there yet. Devices and pipes take from several.
bool is_one_file(const std::string& one, const std::string& other) {
    namespace fs = std::filesystem;
    if (one.empty() || other.empty())
        return false;
    std::error_code ignored;
    const fs::path path = fs::weakly_canonical(fs::absolute(one), ignored);
    const bool is_device = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
    return !is_device && !path.empty() && path == fs::weakly_canonical(fs::absolute(other), ignored);
}

bool contains(const std::vector<sluice::Schedule>& schedules, sluice::Schedule schedule) {
    return std::find(schedules.begin(), schedules.end(), schedule) != schedules.end();
}

/// What `--help` says about an option whose default is in `text`.
std::string with_default(const std::string& help, const std::string& text) {
    return help + (text.empty() ? "" : " (default: " + text + ")");
}

} // namespace

bool CommonOptions::one_by_one() const { return contains(schedules, sluice::Schedule::serial); }
bool CommonOptions::as_graph() const { return contains(schedules, sluice::Schedule::graphed); }

CommandLine::CommandLine(const std::string& description) : app_(std::make_unique<CLI::App>(description)) {}
CommandLine::~CommandLine() = default;

void CommandLine::add_flag(const std::string& name, bool& target, const std::string& help) {
    app_->add_flag(name, target, help);
}

void CommandLine::require_written_apart() const {
    for (std::size_t i = 0; i < written_.size(); ++i) {
        for (std::size_t before = 0; before < i; ++before) {
            if (is_one_file(*written_[i].file, *written_[before].file))
                reject(written_[i].option, "another file than " + written_[before].option + " writes",
                       *written_[i].file);
        }
    }
}

bool CommandLine::was_given(const std::string& name) const { return app_->count(name) > 0; }

std::int64_t parse_whole_number(const std::string& option, const std::string& text, std::int64_t least,
                                std::int64_t most) {
    const std::optional<std::int64_t> number = number_from<std::int64_t>(text);
    if (!number || *number < least || *number > most) {
        const auto shown = [](std::int64_t value) {
            return value < 0 ? std::to_string(value) : with_commas(static_cast<std::uint64_t>(value));
        };
        reject(option, "a whole number from " + shown(least) + " to " + shown(most), text);
    }
    return *number;
}

void add_option(CommandLine& app, const std::string& name, const std::string& type, const std::string& help,
                std::function<void(const std::string&)> assign) {
    app.app().add_option_function<std::string>(name, std::move(assign), help)->type_name(type);
}

void add_written_file(CommandLine& app, const std::string& name, std::string& target,
                      const std::string& help) {
    add_option(app, name, "FILE", help, [&target](const std::string& text) {
        require_writable_place(text);
        target = text;
    });
    app.add_written(name, target);
}

void require_part(const CommandLine& app, const std::string& option, const std::string& parts, bool runs) {
    if (app.was_given(option) && !runs)
        throw BadInput(option + ": is for " + parts + " alone, which this does not run");
}

void require_data_for_picture(const CommonOptions& options, const std::string& picture) {
    if (options.synthetic() && !picture.empty())
        throw BadInput("--picture: expected --data DIR with it, since random data has nothing to show");
}

void require_way_of_single_stage(const CommonOptions& options) {
    if (!options.one_by_one() && !options.as_graph()) {
        throw BadInput(
            "--schedule: expected serial, graphed or all, since a single stage has nothing to overlap with");
    }
}

void add_run_options(CommandLine& app, CommonOptions& options, const std::string& default_schedule) {
    add_option(app, "--backend", "auto|cuda|host",
               "what to run on; auto takes the GPU if there is one (default: auto)",
               [&options](const std::string& text) { options.backend = parse_backend(text); });
    add_option(
        app, "--schedule", "serial|overlapped|graphed|automatic|all",
        with_default(
            "which schedules to run, one after another: one, or several with commas between them, or all",
            default_schedule),
        [&options](const std::string& text) { options.schedules = parse_schedules(text); });
    add_option(app, "--seed", "N", "seed of all random numbers (default: 1)",
               [&options](const std::string& text) { options.seed = parse_seed(text); });
    add_written_file(app, "--json", options.json, "also write the report to FILE, as one JSON object");
}

void add_common_options(CommandLine& app, CommonOptions& options, const DefaultTexts& defaults) {
    add_run_options(app, options, defaults.schedule);
    add_number(app, "--batch", options.batch, 1, largest_batch,
               with_default("images in a batch", defaults.batch));
    add_number(app, "--steps", options.steps, 1, largest_steps, with_default("timed steps", defaults.steps));
    add_number(app, "--warmup", options.warmup, 0, largest_steps,
               with_default("steps before the timed ones", defaults.warmup));
    const NamedData data = defaults.data.empty() ? NamedData{{options.data, options.data}} : defaults.data;
    options.data = data.front().second;
    add_option(
        app, "--data", names_of(data, "|") + "|DIR",
        "random data of the published sizes, or a folder of IDX files (default: " + data.front().first + ')',
        [&options, data](const std::string& text) { options.data = parse_data(text, data); });
}

void add_timeline_options(CommandLine& app, TimelineOptions& options, bool with_kernels) {
    app.add_flag("--report", options.report,
                 "print what each stage cost, what overlapped and what set the pace");
    if (with_kernels) {
        app.add_flag("--kernels", options.kernels,
                     "run each once more with CUPTI, and print its kernels and what the time went into");
    }
    add_option(
        app, "--timeline", "FILE", "draw the last batches of each run: FILE.svg, FILE.html or FILE.pftrace",
        [&options](const std::string& text) {
            const std::string_view name = text;
            if (!name.ends_with(".svg") && !name.ends_with(".html") && !name.ends_with(".pftrace"))
                reject("--timeline", "a file that ends in .svg, .html or .pftrace (for Perfetto)", text);
            require_writable_place(text);
            options.file = text;
        });
    app.add_written("--timeline", options.file);
}

std::optional<int> parse_or_exit_code(CommandLine& line, int argc, const char* const* argv) {
    return parse_or_exit_code(line, argc, argv, std::cout, std::cerr);
}

std::optional<int> parse_or_exit_code(CommandLine& line, int argc, const char* const* argv, std::ostream& out,
                                      std::ostream& err) {
    CLI::App& app = line.app();
    const std::string name = program_name(argc, argv);
    if (app.get_name().empty())
        app.name(name);
    try {
        app.parse(argc, argv);
        line.require_written_apart();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        // --help and --version arrive as errors of exit code 0.
        if (error.get_exit_code() == 0)
            return app.exit(error, out, err);
        err << name << ": " << on_one_line(described(app, error)) << '\n';
    } catch (const BadInput& error) {
        err << name << ": " << on_one_line(error.what()) << '\n';
    }
    return 2;
}

int run_main(int argc, const char* const* argv, const std::function<int()>& body) {
    return run_main(argc, argv, body, std::cout, std::cerr);
}

int run_main(int argc, const char* const* argv, const std::function<int()>& body, std::ostream& out,
             std::ostream& err) {
    const std::string name = program_name(argc, argv);
    try {
        const int code = body();
        // A stream notes that it has failed, and says nothing. Some of it may only be written now.
        if (code == 0 && !out.flush()) {
            err << name
                << ": standard output cannot be written, and part of what was to be printed is missing\n";
            return 1;
        }
        return code;
    } catch (const std::bad_alloc&) {
        err << name << ": the host has not enough memory for this; a smaller --batch needs less\n";
    } catch (const std::exception& error) {
        if (const auto bad_input = bad_input_in(error)) {
            err << name << ": " << on_one_line(*bad_input) << '\n';
            return 2;
        }
        err << name << ": " << on_one_line(error.what()) << '\n';
    } catch (...) {
        err << name << ": stopped by an error of unknown type\n";
    }
    return 1;
}

BackendKind choose_backend(BackendChoice choice, const CudaProbe& probe) {
    const bool usable = probe.built && probe.devices > 0;
    if (choice == BackendChoice::host)
        return BackendKind::host;
    if (choice == BackendChoice::automatic)
        return usable ? BackendKind::cuda : BackendKind::host;
    if (!probe.built) {
        throw BadInput(
            "--backend cuda: this program was built without CUDA; use --backend host, or build it with nvcc");
    }
    if (!usable) {
        const std::string reason = probe.reason.empty() ? "" : " (" + probe.reason + ")";
        throw BadInput("--backend cuda: no CUDA device can be used on this machine" + reason +
                       "; use --backend host or auto");
    }
    return BackendKind::cuda;
}

std::string to_string(BackendKind backend) { return backend == BackendKind::cuda ? "cuda" : "host"; }

} // namespace examples
