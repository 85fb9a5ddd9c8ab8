/// \file
/// The program gpu_augment as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "automatic.hpp"
#include "program.hpp"
#include "support/doctest.hpp"

namespace examples_gpu_augment {

using sluice_test::backend;
using sluice_test::Bytes;
using sluice_test::on_host;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

const std::string digits = " --data " + sluice_test::word(SLUICE_DIGITS_DIR);
// Small, with more steps than there are slots, so that graphs are replayed.
const std::string brief = " --side 32 --batch 6 --steps 12 --warmup 10 --workers 2";

const sluice_test::Program program(GPU_AUGMENT);

/// The trainings with images augmented at `place`, in their order.
std::vector<nlohmann::json> trainings(const nlohmann::json& report, const std::string& place) {
    std::vector<nlohmann::json> runs;
    for (const nlohmann::json& run : report.at("runs")) {
        if (run.at("part") == "train" && run.at("augment") == place)
            runs.push_back(run);
    }
    return runs;
}

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

} // namespace

TEST_CASE(
    "gpu_augment trains to the same bits serially, on two streams and as graphs, wherever it augments") {
    const Outcome outcome = program.run(brief);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());
    CHECK(outcome.report.at("experiment") == "gpu_augment");
    CHECK(outcome.report.at("backend") == backend);
    CHECK(outcome.report.at("batch") == 6);
    CHECK(outcome.report.at("steps") == 12);
    for (const char* place : {"none", "cpu", "device"}) {
        INFO(place);
        const std::vector<nlohmann::json> runs = trainings(outcome.report, place);
        REQUIRE(runs.size() == 4);
        CHECK(runs[0].at("schedule") == "serial");
        CHECK(runs[1].at("schedule") == "overlapped");
        CHECK(runs[2].at("schedule") == "graphed");
        CHECK(runs[3].at("schedule") == "automatic");
        for (const nlohmann::json& run : runs) {
            CHECK(run.at("identical_to_serial") == true);
            CHECK(run.at("results") == runs[0].at("results"));
            CHECK(run.at("steps_per_second").get<double>() > 0);
            CHECK(run.at("batch") == 6);
        }
    }
    const nlohmann::json cpu = trainings(outcome.report, "cpu")[0];
    const nlohmann::json device = trainings(outcome.report, "device")[0];
    CHECK(trainings(outcome.report, "none")[0].at("results") != device.at("results"));
    // Ten classes at random: the loss begins near their entropy.
    CHECK(device.at("loss_first").get<double>() == doctest::Approx(2.303).epsilon(0.2));
    // Both draw the same augmentation, and one backend gives it the same bits on a stream and on a worker's thread.
    CHECK(cpu.at("loss_first").get<double>() ==
          doctest::Approx(device.at("loss_first").get<double>()).epsilon(1e-3));
    if (on_host())
        CHECK(cpu.at("results") == device.at("results"));
    // The parts of a step by themselves.
    std::multiset<std::string> parts;
    for (const nlohmann::json& run : outcome.report.at("runs")) {
        if (run.at("part") != "train") {
            parts.insert(run.at("part").get<std::string>() + " " + run.at("augment").get<std::string>());
            CHECK(run.at("step_microseconds").get<double>() > 0);
        }
    }
    CHECK(parts == std::multiset<std::string>{"augment cpu", "augment device", "copy device"});
}

TEST_CASE("gpu_augment gets the same pixels from any number of workers, and others from another seed") {
    for (const char* place : {"cpu", "device"}) {
        const std::string options =
            std::string(" --side 32 --batch 3 --steps 9 --warmup 1 --schedule overlapped --augment ") + place;
        std::set<std::string> results;
        for (const int workers : {0, 1, 3}) {
            const Outcome outcome = program.run(options + " --workers " + std::to_string(workers));
            INFO(outcome.errors);
            REQUIRE(outcome.code == 0);
            const nlohmann::json run = trainings(outcome.report, place).at(0);
            CHECK(run.at("workers") == workers);
            results.insert(run.at("results").get<std::string>());
        }
        CHECK(results.size() == 1);
        const Outcome other = program.run(options + " --seed 2");
        REQUIRE(other.code == 0);
        results.insert(trainings(other.report, place).at(0).at("results").get<std::string>());
        CHECK(results.size() == 2);
    }
}

TEST_CASE("gpu_augment runs one batch size after another") {
    const Outcome outcome = program.run(
        " --sweep --side 16 --batch 16 --steps 2 --warmup 1 --augment device --schedule overlapped");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const std::vector<nlohmann::json> runs = trainings(outcome.report, "device");
    REQUIRE(runs.size() == 2);
    CHECK(runs[0].at("batch") == 8);
    CHECK(runs[1].at("batch") == 16);
    CHECK(runs[1].at("identical_to_serial").is_null());
}

TEST_CASE("gpu_augment keeps the report of a sweep that is interrupted") {
    // Steps enough that what is written at the end is not there when it is looked for.
    const nlohmann::json report = program.report_at(
        "16 images", " --sweep --side 16 --batch 16 --steps 100 --augment device --schedule overlapped");
    REQUIRE(report.is_object());
    const std::vector<nlohmann::json> runs = trainings(report, "device");
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].at("batch") == 8);
    CHECK(report.at("runs").size() == 3); // its parts, too
}

TEST_CASE("gpu_augment learns digits, with augmentation and without") {
    const Outcome outcome = program.run(digits + " --batch 32 --steps 80 --schedule serial");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());
    for (const char* place : {"none", "device"}) {
        const std::vector<nlohmann::json> runs = trainings(outcome.report, place);
        REQUIRE(runs.size() == 1);
        CHECK(runs[0].at("loss_last").get<double>() < 0.7 * runs[0].at("loss_first").get<double>());
        // One in ten by chance.
        CHECK(runs[0].at("held_out_accuracy").get<double>() > 0.4);
    }
    CHECK(trainings(outcome.report, "cpu").empty());
}

// That schedules agree shows sooner than that losses fall.
TEST_CASE("gpu_augment trains on digits to the same bits under every schedule") {
    const Outcome outcome = program.run(digits + " --batch 32 --steps 20 --schedule all");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());
    for (const char* place : {"none", "device"}) {
        const std::vector<nlohmann::json> runs = trainings(outcome.report, place);
        REQUIRE(runs.size() == 4);
        for (const nlohmann::json& run : runs) {
            CHECK(run.at("identical_to_serial") == true);
            CHECK(run.at("held_out_accuracy") == runs[0].at("held_out_accuracy"));
        }
    }
    CHECK(trainings(outcome.report, "cpu").empty());
}

TEST_CASE("gpu_augment draws photographs before and after") {
    const ScratchFolder scratch;
    const std::string sheet = (scratch.path() / "sheet.png").string();
    const std::string named = " --photographs " + sluice_test::word(SLUICE_PHOTOGRAPHS_DIR);
    // Those that come with the examples are found from any folder.
    const std::string elsewhere = "cd " + sluice_test::word(scratch.path()) + " &&";
    const sluice_test::Program there(GPU_AUGMENT, "", elsewhere);
    for (const Outcome& outcome :
         {program.run(" --contact-sheet " + sheet + named), there.run(" --contact-sheet " + sheet)}) {
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        CHECK(outcome.report.at("runs").empty());
        CHECK(std::filesystem::file_size(sheet) > 100'000);
    }

    for (const char* ignored : {"--sweep", "--batch 8", "--steps 2", "--augment device", "--schedule serial",
                                "--workers 2", "--side 32", "--report", "--precision tf32"}) {
        const std::string text = ignored;
        program.check_refused(" --contact-sheet " + sheet + ' ' + text,
                              text.substr(0, text.find(' ')) + ": expected no --contact-sheet with it");
    }
    program.check_refused(named, "--photographs: expected --contact-sheet with it");
}

TEST_CASE("gpu_augment says in one line what is wrong") {
    program.check_refused(" --augment gpu", "none, cpu, device or all");
    if (on_host())
        program.check_refused(" --kernels", "--kernels: expected --backend cuda");
    program.check_refused(" --batch 0", "--batch");
    program.check_refused(" --side 8", "from 16 to 256");
    program.check_refused(" --side 48", "power of two");
    program.check_refused(" --side 32" + digits, "no --data DIR");
    program.check_refused(" --sweep" + digits, "no --data DIR");
    program.check_refused(" --sweep --batch 4", "at least 8");
    program.check_refused(" --precision half", "tf32 or float32");
    program.check_refused(" --precision bfloat16", "--precision: expected tf32 or float32, not \"bfloat16\"");
    program.check_refused(" --algorithms best", "heuristic or autotune");
    program.check_refused(" --workers -1", "--workers");
    program.check_refused(" --schedule sideways", "serial, overlapped, graphed, automatic or all");

    const ScratchFolder scratch;
    program.check_refused(" --data " + scratch.path().string(), "train-images");
    const std::string sheet = " --contact-sheet " + (scratch.path() / "sheet.png").string();
    const std::string folder = " --photographs " + scratch.path().string();
    program.check_refused(" --contact-sheet /nowhere/sheet.png", "no folder");
    program.check_refused(sheet + " --photographs " + (scratch.path() / "none").string(),
                          "expected a folder");
    program.check_refused(sheet + folder, "holds no photograph");
    const auto refuses = [&](const std::string& header, std::size_t pixel_bytes,
                             const std::string& expected) {
        Bytes bytes = bytes_of(header);
        bytes.resize(bytes.size() + pixel_bytes, 7);
        (void)scratch.file("photograph.ppm", bytes);
        program.check_refused(sheet + folder, expected);
    };
    refuses("P3\n1 1\n255\n7 7 7\n", 0, "does not begin with \"P6\"");
    refuses("P6\n4 4\n255\n", 47, "holds 58 bytes; expected 59");
    refuses("P6\n4 4\n65535\n", 96, "greatest value is 65,535");
    refuses("P6\n3 4\n255\n", 36, "cannot be augmented");
    CHECK(scratch.files() == 1); // no sheet
}

TEST_CASE("gpu_augment can be graphed by Schedule::automatic" * doctest::skip(sluice_test::on_host())) {
    sluice_test::check_automatic_uses_graphs(program, " --augment device --batch 8 --steps 5000");
}

} // namespace examples_gpu_augment
