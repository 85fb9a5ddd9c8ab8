/// \file
/// The program masked_giou as a user runs it.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "automatic.hpp"
#include "program.hpp"
#include "support/doctest.hpp"

namespace examples_masked_giou {

using sluice_test::backend;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

const std::string digits = " --data " + sluice_test::word(SLUICE_DIGITS_DIR);
// Small, but with rows that differ.
const std::string brief = " --batch 24 --boxes 12 --steps 3 --warmup 2";

const sluice_test::Program program(MASKED_GIOU);

/// The runs of one part, in their order.
std::vector<nlohmann::json> runs_of(const nlohmann::json& report, const std::string& part) {
    std::vector<nlohmann::json> runs;
    for (const nlohmann::json& run : report.at("runs")) {
        if (run.at("part") == part)
            runs.push_back(run);
    }
    return runs;
}

} // namespace

TEST_CASE("masked_giou gets the same mean from all six variants, launched and replayed") {
    for (const char* formula : {"article", "torchvision"}) {
        for (const char* type : {"float32", "bfloat16", "float16"}) {
            INFO(formula, ", ", type);
            const Outcome outcome =
                program.run(brief + " --part losses --formula " + formula + " --predictions " + type);
            INFO(outcome.errors);
            REQUIRE(outcome.code == 0);
            CHECK(outcome.errors.empty());
            CHECK(outcome.report.at("experiment") == "masked_giou");
            CHECK(outcome.report.at("backend") == backend);
            CHECK(outcome.report.at("batch") == 24);
            CHECK(outcome.report.at("formula") == formula);
            CHECK(outcome.report.at("predictions") == type);
            CHECK(outcome.report.at("losses_boxes").get<int>() > 24);

            const std::vector<nlohmann::json> losses = runs_of(outcome.report, "losses");
            REQUIRE(losses.size() == 2 * 2 * 6); // ways, passes, variants
            const double mean = losses[0].at("loss_first").get<double>();
            // Every corner is off by a quarter of a side at most.
            CHECK(mean > 0.2);
            CHECK(mean < 0.9);
            for (const nlohmann::json& loss : losses) {
                INFO(loss.at("variant"), ", ", loss.at("pass"), ", ", loss.at("schedule"));
                // The padded variant computes in float32.
                CHECK(loss.at("loss_first").get<double>() == doctest::Approx(mean).epsilon(1e-5));
                CHECK(loss.at("identical_to_serial") == true);
                CHECK(loss.at("step_microseconds").get<double>() > 0);
                if (loss.at("schedule") == "graphed") {
                    CHECK(loss.at("refusals") == 0);
                    CHECK(loss.at("captures") == 1);
                    CHECK(loss.at("replays") == 4); // all but the first, which runs by itself
                    CHECK(loss.at("nodes").get<int>() > 0);
                }
            }
            CHECK(losses.back().at("variant") == "ragged");
            CHECK(losses.back().at("nodes") == 1);
        }
    }
}

TEST_CASE("masked_giou gets 0 from a batch without boxes") {
    const Outcome outcome = program.run(" --part losses --batch 1 --boxes 1 --steps 1 --warmup 0 --seed 1");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    REQUIRE(outcome.report.at("losses_boxes") == 0);
    const std::vector<nlohmann::json> losses = runs_of(outcome.report, "losses");
    REQUIRE(losses.size() == 2 * 2 * 6);
    for (const nlohmann::json& loss : losses) {
        INFO(loss.at("variant"), ", ", loss.at("pass"), ", ", loss.at("schedule"));
        CHECK(loss.at("loss_first") == 0.0);
        CHECK(loss.at("identical_to_serial") == true);
    }
    // Nothing to copy row by row is nothing to capture, and said so.
    const std::vector<nlohmann::json> copies = runs_of(outcome.report, "copies");
    REQUIRE(copies.size() == 2 * 3);
    CHECK(copies[1].at("variant") == "separate");
    CHECK(copies[1].at("copies") == 0);
    CHECK(copies[1].at("refusals") == 1);
}

TEST_CASE("masked_giou copies targets separately, padded and packed") {
    const Outcome outcome = program.run(brief + " --part losses");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const std::vector<nlohmann::json> copies = runs_of(outcome.report, "copies");
    REQUIRE(copies.size() == 2 * 3);
    for (const nlohmann::json& copy : copies) {
        INFO(copy.at("variant"), ", ", copy.at("schedule"));
        CHECK(copy.at("identical_to_serial") == true);
        CHECK(copy.at("pack_microseconds").get<double>() > 0);
    }
    const int boxes = outcome.report.at("losses_boxes").get<int>();
    CHECK(copies[0].at("variant") == "separate");
    CHECK(copies[0].at("bytes") == 4 * boxes);
    CHECK(copies[0].at("copies").get<int>() > 1);
    CHECK(copies[0].at("copies").get<int>() <= 24);
    CHECK(copies[1].at("nodes") == copies[0].at("copies"));
    CHECK(copies[2].at("variant") == "padded");
    CHECK(copies[2].at("bytes") == 24 * 12 * 5);
    CHECK(copies[3].at("nodes") == 1);
    CHECK(copies[4].at("variant") == "packed");
    CHECK(copies[5].at("nodes") == 1);
}

TEST_CASE("masked_giou measures heavier work over rows filled to different degrees") {
    const Outcome outcome = program.run(brief + " --part work --most-work 6");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const std::vector<nlohmann::json> runs = runs_of(outcome.report, "work");
    const std::vector<int> works{1, 2, 4, 6};
    const std::vector<std::string> variants{"fused", "conditional", "ragged"};
    REQUIRE(runs.size() == 5 * works.size() * variants.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
        INFO(i);
        CHECK(runs[i].at("variant") == variants[i % 3]);
        CHECK(runs[i].at("work") == works[i / 3 % works.size()]);
        CHECK(runs[i].at("schedule") == "graphed");
        CHECK(runs[i].at("step_microseconds").get<double>() > 0);
        // The same work gives the same result, whatever it skips.
        CHECK(runs[i].at("loss_first").get<double>() ==
              doctest::Approx(runs[i - i % 3].at("loss_first").get<double>()).epsilon(1e-6));
    }
    CHECK(runs.back().at("fill") == 1.0);
}

TEST_CASE("masked_giou runs the detector forward in both precisions") {
    const Outcome outcome =
        program.run(" --part forward --batch 2 --boxes 5 --side 32 --hidden 24 --steps 2 --warmup 2");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const std::vector<nlohmann::json> runs = runs_of(outcome.report, "forward");
    REQUIRE(runs.size() == 4);
    CHECK(runs[0].at("variant") == "bfloat16");
    CHECK(runs[2].at("variant") == "tf32");
    for (const nlohmann::json& pass : runs) {
        CHECK(pass.at("identical_to_serial") == true);
        CHECK(pass.at("steps_per_second").get<double>() > 0);
    }
}

TEST_CASE("masked_giou trains a detector, with the same bits under every schedule") {
    const ScratchFolder scratch;
    const std::string picture = (scratch.path() / "boxes.png").string();
    const Outcome outcome =
        program.run(digits + " --batch 16 --steps 60 --warmup 2 --hidden 96 --seed 4 --picture " + picture);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());
    REQUIRE(outcome.report.at("runs").size() == 4);
    CHECK(outcome.report.at("runs")[0].at("schedule") == "serial");
    CHECK(outcome.report.at("runs")[1].at("schedule") == "overlapped");
    CHECK(outcome.report.at("runs")[2].at("schedule") == "graphed");
    CHECK(outcome.report.at("runs")[3].at("schedule") == "automatic");
    for (const nlohmann::json& schedule : outcome.report.at("runs")) {
        CHECK(schedule.at("part") == "train");
        CHECK(schedule.at("identical_to_serial") == true);
        CHECK(schedule.at("loss_last").get<double>() < 0.9 * schedule.at("loss_first").get<double>());
    }
    CHECK(outcome.report.at("held_out_boxes").get<int>() > 512);
    // A box of fixed place and size gets about 0.1.
    CHECK(outcome.report.at("mean_iou").get<double>() > 0.18);
    CHECK(outcome.report.at("mean_iou").get<double>() < 1.0);
    CHECK(std::filesystem::file_size(picture) > 1000);
}

TEST_CASE("masked_giou draws what ran when, in training and in single steps") {
    const ScratchFolder scratch;
    const std::filesystem::path file = scratch.path() / "runs.html";
    const std::string drawn = " --report --timeline " + file.string();
    const Outcome trained =
        program.run(digits + " --batch 4 --steps 12 --warmup 2 --hidden 16 --workers 2" + drawn);
    INFO(trained.errors);
    REQUIRE(trained.code == 0);
    CHECK(std::filesystem::file_size(file) > 5000);
    CHECK(trained.report.at("workers") == 2);
    REQUIRE(trained.report.at("timelines").size() == trained.report.at("runs").size());
    CHECK(trained.report.at("timelines")[1].at("title") == "train, overlapped");
    CHECK(trained.report.at("timelines")[1].at("batches") == 14);

    std::filesystem::remove(file);
    const Outcome single = program.run(
        " --part forward --batch 2 --boxes 12 --steps 3 --warmup 2 --side 16 --hidden 8 --precision tf32" +
        drawn);
    INFO(single.errors);
    REQUIRE(single.code == 0);
    CHECK(std::filesystem::file_size(file) > 5000);
    REQUIRE(single.report.at("timelines").size() == 2);
    CHECK(single.report.at("timelines")[0].at("title") == "forward, tf32, one by one");
    CHECK(single.report.at("timelines")[1].at("title") == "forward, tf32, as a graph");
}

TEST_CASE("masked_giou says in one line what is wrong") {
    const ScratchFolder scratch;
    program.check_refused(" --part half", "losses, work, forward, train or all");
    program.check_refused(" --part train", "--data DIR");
    program.check_refused(" --part work --report", "--report, --timeline: expected --part losses");
    program.check_refused(" --timeline runs.gif", "--timeline: expected a file that ends in .svg");
    program.check_refused(" --part losses" + digits, "expected synthetic");
    program.check_refused(" --formula mine", "article or torchvision");
    program.check_refused(" --predictions int8", "float32, bfloat16 or float16");
    program.check_refused(" --precision half", "bfloat16, tf32 or float32");
    program.check_refused(" --part losses --side 32", "--side: is for --part forward alone");
    program.check_refused(" --part work --formula article", "--formula: is for --part losses alone");
    program.check_refused(" --boxes 5" + digits, "--boxes: is for --part losses, work and forward alone");
    program.check_refused(" --workers 2", "--workers: is for --part train alone, which this does not run");
    program.check_refused(" --boxes 0", "--boxes");
    program.check_refused(" --boxes 257", "from 1 to 256");
    // Before the parts that do not need it have run.
    program.check_refused(" --side 40", "multiple of 16");
    program.check_refused(" --part forward --side 40", "multiple of 16");
    program.check_refused(" --picture " + (scratch.path() / "boxes.png").string(), "--data DIR");
    program.check_refused(" --schedule overlapped", "serial, graphed or all");
    program.check_refused(" --data " + scratch.path().string(), "train-images");
}

TEST_CASE("masked_giou's training can be graphed by Schedule::automatic" *
          doctest::skip(sluice_test::on_host())) {
    sluice_test::check_automatic_uses_graphs(program, digits + " --part train --batch 8 --steps 5000");
}

} // namespace examples_masked_giou
