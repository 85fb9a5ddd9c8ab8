/// \file
/// The program spectrometer as a user runs it.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "program.hpp"
#include "support/doctest.hpp"

namespace examples_spectrometer {

using sluice_test::Bytes;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

const sluice_test::Program program(SPECTROMETER);

constexpr std::size_t fft = 48, hop = fft / 2, transforms = 6, block = hop * transforms;
constexpr std::size_t blocks = 10, every = 4;
const std::string brief = " --fft 48 --transforms 6 --integrate 4";

// Parts of so many samples, from -100 to 100.
std::vector<int> parts(std::size_t samples) {
    std::vector<int> parts;
    std::uint32_t state = 12345;
    for (std::size_t i = 0; i < 2 * samples; ++i) {
        state = state * 1664525 + 1013904223;
        parts.push_back(static_cast<int>(state >> 24) * 200 / 255 - 100);
    }
    return parts;
}

template <class T>
Bytes file_of(const std::vector<int>& parts, T scale) {
    Bytes bytes;
    for (const int part : parts) {
        const T value = static_cast<T>(static_cast<T>(part) * scale);
        const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
        bytes.insert(bytes.end(), begin, begin + sizeof value);
    }
    return bytes;
}

// One spectrum's power: of the pieces that end in the blocks `begin` to `end`, by the formula, in double precision.
std::vector<double> power_of(const std::vector<int>& parts, std::size_t begin, std::size_t end) {
    std::vector<double> power(fft, 0);
    std::size_t pieces = 0;
    for (std::size_t last = begin * block + hop; last <= end * block; last += hop) {
        if (last < fft)
            continue;
        ++pieces;
        for (std::size_t bin = 0; bin < fft; ++bin) {
            const double frequency = static_cast<double>(bin) / fft - 0.5;
            std::complex<double> sum = 0;
            for (std::size_t i = 0; i < fft; ++i) {
                const std::size_t at = 2 * (last - fft + i);
                const double weight =
                    (1 - std::cos(2 * std::numbers::pi * static_cast<double>(i) / fft)) / fft;
                sum += weight * std::complex<double>(parts[at] / 128.0, parts[at + 1] / 128.0) *
                       std::polar(1.0, -2 * std::numbers::pi * frequency * static_cast<double>(i));
            }
            power[bin] += std::norm(sum);
        }
    }
    for (double& value : power)
        value /= static_cast<double>(pieces);
    return power;
}

std::vector<float> spectra_of(const Bytes& npy, std::size_t rows) {
    const std::string header(npy.begin(), npy.begin() + 128);
    CHECK(header.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(header[8] == 118);
    CHECK(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) +
                      ", 48), }") == 10);
    CHECK(header.back() == '\n');
    std::vector<float> values(rows * fft);
    REQUIRE(npy.size() == 128 + values.size() * sizeof(float));
    std::memcpy(values.data(), npy.data() + 128, values.size() * sizeof(float));
    return values;
}

} // namespace

TEST_CASE("spectrometer finds a tone, with the same bits under each schedule") {
    for (const char* format : {"int8", "float32"}) {
        CAPTURE(format);
        const Outcome outcome = program.run(
            " --fft 64 --transforms 8 --integrate 4 --samples 25600 --tones -0.25,0.125 --format " +
            std::string(format));
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        const nlohmann::json& report = outcome.report;
        CHECK(report.at("backend") == sluice_test::backend);
        CHECK(report.at("batch") == 256);
        CHECK(report.at("steps") == 100);
        CHECK(report.at("strongest_frequency") == -0.25);
        CHECK(std::abs(report.at("strongest_decibels").get<double>() - 20 * std::log10(0.5)) < 0.05);
        REQUIRE(report.at("runs").size() == 4);
        for (const nlohmann::json& run : report.at("runs")) {
            CHECK(run.at("identical_to_serial") == true);
            CHECK(run.at("spectra") == 25);
            if (run.at("schedule") == "graphed")
                CHECK(run.at("replays").get<int>() > 100);
        }
    }
}

TEST_CASE("spectrometer takes the spectra that the formula gives, the last one of fewer blocks") {
    const std::vector<int> samples = parts(blocks * block + 5); // the last five are left out
    const ScratchFolder scratch;
    const std::string bytes = scratch.file("int8", file_of<std::int8_t>(samples, 1));
    const std::string floats = scratch.file("float32", file_of<float>(samples, 1.0F / 128));
    for (const char* schedule : {"serial", "overlapped", "graphed"}) {
        for (const std::string& input : {bytes + " --format int8", floats + " --format float32"}) {
            INFO(schedule, " ", input);
            const std::string output = scratch.path() / "spectra.npy";
            const Outcome outcome =
                program.run(brief + " --schedule " + schedule + " --output " + output + " --input " + input);
            INFO(outcome.errors);
            REQUIRE(outcome.code == 0);
            const std::vector<float> spectra = spectra_of(sluice_test::contents(output), 3);
            double worst = 0;
            for (std::size_t row = 0; row < 3; ++row) {
                const std::vector<double> expected =
                    power_of(samples, every * row, std::min(every * (row + 1), blocks));
                for (std::size_t bin = 0; bin < fft; ++bin)
                    worst = std::max(worst, std::abs(double{spectra[row * fft + bin]} / expected[bin] - 1));
            }
            CHECK(worst < 1e-4);
        }
    }
}

TEST_CASE("spectrometer integrates many blocks under graphed without a refused graph") {
    const Outcome outcome =
        program.run(" --fft 48 --transforms 2 --integrate 100 --samples 24000 --schedule graphed");
    CHECK(outcome.errors.empty());
    REQUIRE(outcome.code == 0);
    CHECK(outcome.report.at("runs")[0].at("spectra") == 5);
    CHECK(outcome.report.at("runs")[0].at("replays").get<int>() > 900);
}

TEST_CASE("spectrometer writes the same numbers as text, and draws") {
    const ScratchFolder scratch;
    const std::string npy = scratch.path() / "a.npy", csv = scratch.path() / "a.csv",
                      svg = scratch.path() / "a.svg";
    const std::string run = brief + " --samples 1000 --schedule overlapped --output ";
    REQUIRE(program.run(run + npy).code == 0);
    REQUIRE(program
                .run(run + csv + " --picture " + svg + " --report --timeline " +
                     (scratch.path() / "t.svg").string())
                .code == 0);
    const std::vector<float> spectra = spectra_of(sluice_test::contents(npy), 2); // 6 blocks
    const Bytes text = sluice_test::contents(csv);
    std::istringstream lines(std::string(text.begin(), text.end()));
    std::string line, number;
    for (std::size_t row = 0; std::getline(lines, line); ++row) {
        REQUIRE(row < 3);
        std::istringstream numbers(line);
        for (std::size_t bin = 0; bin < fft; ++bin) {
            REQUIRE(std::getline(numbers, number, ','));
            if (row == 0)
                CHECK(std::stod(number) == doctest::Approx(static_cast<double>(bin) / fft - 0.5));
            else
                CHECK(std::stof(number) == spectra[(row - 1) * fft + bin]);
        }
        CHECK_FALSE(std::getline(numbers, number, ','));
    }
    const Bytes picture = sluice_test::contents(svg);
    const std::string drawn(picture.begin(), picture.end());
    const std::size_t points = drawn.find("points=\"");
    REQUIRE(points != std::string::npos);
    CHECK(std::count(drawn.begin() + static_cast<std::ptrdiff_t>(points), drawn.end(), ',') == fft);
    CHECK(drawn.find("nan") == std::string::npos);
    CHECK(drawn.ends_with("</svg>\n"));
    CHECK(std::filesystem::file_size(scratch.path() / "t.svg") > 500);
}

TEST_CASE("spectrometer refuses samples without a power, with and without a picture") {
    const ScratchFolder scratch;
    const std::string picture = " --picture " + (scratch.path() / "a.svg").string();
    for (const auto& [value, name] : {std::pair{std::numeric_limits<float>::infinity(), "inf"},
                                      {-std::numeric_limits<float>::infinity(), "-inf"},
                                      {std::numeric_limits<float>::quiet_NaN(), "nan"},
                                      {1e30F, "1e+30"}}) { // its square is no float32
        Bytes bytes = file_of<float>(parts(blocks * block), 1.0F / 128);
        std::memcpy(&bytes[(2 * 150 + 1) * sizeof value], &value, sizeof value);
        const std::string input = scratch.file("samples", bytes);
        for (const std::string& more : {std::string(), picture}) {
            program.check_refused(brief + " --schedule overlapped --format float32 --input " + input + more,
                                  input + ": sample 150: expected numbers from -1e12 to 1e12, found " + name);
        }
    }
}

TEST_CASE("a run that ends early leaves the spectra of the run before, and nothing beside them") {
    const ScratchFolder scratch;
    Bytes bytes = file_of<float>(parts(blocks * block), 1.0F / 128);
    const float none = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(&bytes[2 * (blocks * block - 1) * sizeof none], &none, sizeof none); // in the last block
    const std::string input = scratch.file("samples", bytes);
    for (const std::string name : {"a.npy", "a.csv"}) {
        const Bytes before{'o', 'l', 'd'};
        const std::string output = scratch.file(name, before);
        program.check_refused(brief + " --schedule serial --format float32 --input " + input + " --output " +
                                  output,
                              input + ": sample 1,439: expected numbers from -1e12 to 1e12, found nan");
        CHECK(sluice_test::contents(output) == before);
        std::filesystem::remove(output);
        CHECK(scratch.files() == 1);
    }
}

TEST_CASE("spectrometer says that its spectra cannot be written") {
    if (!std::filesystem::exists("/dev/full"))
        return;
    const ScratchFolder scratch;
    const std::string link = scratch.path() / "full.npy";
    std::filesystem::create_symlink("/dev/full", link);
    program.check_refused(brief + " --samples 1000 --output " + link,
                          link + ": cannot be written: No space left on device");
}

TEST_CASE("spectrometer says that its output cannot be written") {
    const char* const full = "/dev/full";
    if (!std::filesystem::exists(full))
        return;
    for (const std::string& arguments : {brief + " --samples 1000", std::string(" --help")}) {
        const Outcome outcome = program.run(arguments, full);
        CHECK(outcome.code == 1);
        CHECK(outcome.errors == "spectrometer: standard output cannot be written, and part of what was to be "
                                "printed is missing\n");
    }
}

TEST_CASE("spectrometer writes to no file whose samples it reads") {
    const ScratchFolder scratch;
    const Bytes samples = file_of<std::int8_t>(parts(blocks * block), 1);
    for (const auto& [option, name] : {std::pair{"--output", "a.csv"},
                                       {"--output", "a.npy"},
                                       {"--picture", "a.svg"},
                                       {"--timeline", "a.html"}}) {
        const std::string input = scratch.file(name, samples);
        const std::string link = scratch.path() / (std::string("link_") + name);
        std::filesystem::create_symlink(input, link);
        for (const std::string& written : {input, link}) {
            program.check_refused(brief + " --input " + input + ' ' + option + ' ' + written,
                                  std::string(option) +
                                      ": expected another file than --input, whose samples are in " +
                                      written);
        }
        CHECK(sluice_test::contents(input) == samples);
        std::filesystem::remove(link);
    }
}

TEST_CASE("spectrometer refuses what it cannot do in one sentence") {
    const ScratchFolder scratch;
    const std::string little = scratch.file("little", Bytes(287)); // 143 samples
    program.check_refused(
        brief + " --input " + little,
        "expected at least 144 samples, which a block has with this --fft and these --transforms, found 143");
    program.check_refused(brief + " --samples 100", "found 100");
    program.check_refused(" --input " + (scratch.path() / "none").string(), "none");
    program.check_refused(" --fft 63", "--fft: expected an even number, not \"63\"");
    program.check_refused(" --integrate 0", "--integrate: expected a whole number from 1 to");
    program.check_refused(" --format int16", "--format: expected int8 or float32, not \"int16\"");
    program.check_refused(" --tones 0.1,0.6", "--tones: expected frequencies from -0.5 to 0.5");
    program.check_refused(" --tones 0.1,", "--tones: expected frequencies");
    program.check_refused(" --tones 0.1 --input " + little, "--tones: expected without --input");
    program.check_refused(" --output a.txt",
                          "--output: expected a file that ends in .npy or .csv, not \"a.txt\"");
    program.check_refused(" --picture a.png", "--picture: expected a file that ends in .svg, not \"a.png\"");
    program.check_refused(" --batch 4", "unknown option \"--batch\"");
}

} // namespace examples_spectrometer
