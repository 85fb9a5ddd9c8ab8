#include <spectrometer/options.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/files.hpp>

namespace spectrometer {
namespace {

std::vector<double> parse_tones(const std::string& text) {
    std::vector<double> tones;
    const char* at = text.c_str();
    for (;;) {
        char* end = nullptr;
        const double tone = std::strtod(at, &end);
        if (end == at || !(std::abs(tone) <= 0.5) || (*end != ',' && *end != '\0')) {
            throw examples::BadInput(
                "--tones: expected frequencies from -0.5 to 0.5, with commas between them, not \"" + text +
                '"');
        }
        tones.push_back(tone);
        if (*end == '\0')
            return tones;
        at = end + 1;
    }
}

void require_ending(const std::string& option, const std::string& file, std::vector<std::string> endings) {
    for (const std::string& ending : endings) {
        if (file.empty() || file.ends_with(ending))
            return;
    }
    throw examples::BadInput(option + ": expected a file that ends in " + endings.front() +
                             (endings.size() > 1 ? " or " + endings.back() : "") + ", not \"" + file + '"');
}

/// What is read under one schedule would be gone under the next one, and afterwards.
void require_not_input(const std::string& option, const std::string& file, const std::string& input) {
    std::error_code not_there_yet;
    if (std::filesystem::equivalent(file, input, not_there_yet))
        throw examples::BadInput(option + ": expected another file than --input, whose samples are in " +
                                 file);
}

} // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Integrates the power spectrum of complex samples, from a file or generated: windowed transforms "
        "over blocks that overlap, added up over several blocks, and written to a file."};
    examples::add_run_options(app, options, "all");
    examples::add_option(app, "--input", "FILE", "interleaved samples (default: tones and noise)",
                         [&options](const std::string& text) {
                             (void)examples::size_of_file(text, "a file of samples");
                             options.input = text;
                         });
    examples::add_option(app, "--format", "int8|float32", "of a sample's two parts (default: int8)",
                         [&options](const std::string& text) {
                             options.format = examples::named<Format>(
                                 "--format", text, {{"int8", Format::int8}, {"float32", Format::float32}});
                         });
    examples::add_option(app, "--tones", "F,F...",
                         "frequencies of the generated tones, in cycles a sample, each 20 dB weaker than the "
                         "one before (default: 0.125,-0.3,0.31)",
                         [&options](const std::string& text) { options.tones = parse_tones(text); });
    examples::add_number(app, "--samples", options.samples, 1, std::int64_t{1} << 50,
                         "generated samples, or at most so many of the file (default: 50 blocks, or all)");
    examples::add_number(app, "--fft", options.fft, 2, 1 << 24,
                         "samples of a transform, an even number (default: 4,096)");
    examples::add_number(app, "--transforms", options.transforms, 1, 1 << 16,
                         "in a block, each half a transform behind the one before (default: 64)");
    examples::add_number(app, "--integrate", options.integrate, 1, 1 << 20,
                         "blocks added up to one spectrum (default: 16)");
    examples::add_written_file(app, "--output", options.output,
                               "write the spectra, FILE.npy or FILE.csv, a row each");
    examples::add_written_file(app, "--picture", options.picture, "draw the mean of them, FILE.svg");
    examples::add_timeline_options(app, options.timelines, false);

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    require_ending("--output", options.output, {".npy", ".csv"});
    require_ending("--picture", options.picture, {".svg"});
    if (!options.input.empty()) {
        require_not_input("--output", options.output, options.input);
        require_not_input("--picture", options.picture, options.input);
        require_not_input("--timeline", options.timelines.file, options.input);
        require_not_input("--json", options.json, options.input);
    }
    if (options.fft % 2 != 0)
        throw examples::BadInput("--fft: expected an even number, not \"" + std::to_string(options.fft) +
                                 '"');
    if (!options.input.empty() && app.was_given("--tones"))
        throw examples::BadInput("--tones: expected without --input, since they are for generated samples");
    return std::nullopt;
}

} // namespace spectrometer
