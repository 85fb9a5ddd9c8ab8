/// \file
/// The program frozen_encoder as a user runs it, on the backend that BACKEND names.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <sys/wait.h>

#include "scratch.hpp"

using sluice_test::ScratchFolder;

namespace {

const std::string digits = " --data " SLUICE_DIGITS_DIR;
// Short, but long enough for losses to fall.
const std::string brief = " --batch 4 --steps 80 --warmup 2 --encoder-steps 60";

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

struct Outcome {
    int code = -1;
    std::string errors;
};

Outcome run(const std::filesystem::path& folder, const std::string& arguments) {
    const std::filesystem::path errors = folder / "errors";
    const std::string command =
        FROZEN_ENCODER " --backend " BACKEND + arguments + " >/dev/null 2>" + errors.string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(errors)};
}

nlohmann::json json_of(const std::filesystem::path& path) { return nlohmann::json::parse(text_of(path)); }

} // namespace

TEST_CASE("frozen_encoder learns digits, with the same bits under every schedule") {
    const ScratchFolder scratch;
    const auto file = [&](const char* name) { return (scratch.path() / name).string(); };
    const Outcome first =
        run(scratch.path(), digits + brief + " --json " + file("first.json") + " --picture " +
                                file("digits.png") + " --save-encoder " + file("encoder"));
    INFO(first.errors);
    REQUIRE(first.code == 0);
    CHECK(first.errors.empty());

    const nlohmann::json report = json_of(file("first.json"));
    CHECK(report.at("experiment") == "frozen_encoder");
    CHECK(report.at("backend") == BACKEND);
    CHECK(report.at("batch") == 4);
    CHECK(report.at("steps") == 80);
    CHECK(report.at("ink_pixel_accuracy").is_number());
    CHECK(report.at("mean_iou").is_number());
    REQUIRE(report.at("runs").size() == 3);
    CHECK(report.at("runs")[0].at("schedule") == "serial");
    CHECK(report.at("runs")[1].at("schedule") == "overlapped");
    CHECK(report.at("runs")[2].at("schedule") == "graphed");
    for (const nlohmann::json& schedule : report.at("runs")) {
        CHECK(schedule.at("identical_to_serial") == true);
        CHECK(schedule.at("loss_last").get<double>() < 0.9 * schedule.at("loss_first").get<double>());
        CHECK(schedule.at("steps_per_second").get<double>() > 0);
    }
    CHECK(std::filesystem::file_size(file("digits.png")) > 1000);

    SUBCASE("the saved encoder serves as well as the one just trained") {
        const Outcome second =
            run(scratch.path(), digits + brief + " --schedule serial --json " + file("second.json") +
                                    " --load-encoder " + file("encoder"));
        INFO(second.errors);
        REQUIRE(second.code == 0);
        CHECK(json_of(file("second.json")).at("runs")[0].at("loss_last") ==
              report.at("runs")[0].at("loss_last"));
    }
    SUBCASE("an encoder of other sizes is refused") {
        const Outcome second =
            run(scratch.path(), " --data synthetic --batch 1 --steps 1 --load-encoder " + file("encoder"));
        CHECK(second.code == 2);
        CHECK(second.errors.find("expected") != std::string::npos);
        CHECK(second.errors.find(file("encoder")) != std::string::npos);
    }
}

TEST_CASE("frozen_encoder runs the published workload") {
    const ScratchFolder scratch;
    const std::string json = (scratch.path() / "report.json").string();
    const Outcome outcome =
        run(scratch.path(), " --data synthetic --batch 1 --steps 2 --warmup 1 --workers 0 --json " + json);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const nlohmann::json report = json_of(json);
    CHECK(report.at("data") == "synthetic");
    for (const nlohmann::json& schedule : report.at("runs"))
        CHECK(schedule.at("identical_to_serial") == true);
    CHECK_FALSE(report.contains("mean_iou"));
    // Ten classes at random: the loss begins near their entropy.
    CHECK(report.at("runs")[0].at("loss_first").get<double>() == doctest::Approx(2.303).epsilon(0.02));
}

TEST_CASE("frozen_encoder says in one line what is wrong") {
    const ScratchFolder scratch;
    const auto refused = [&](const std::string& arguments, const std::string& expected) {
        const Outcome outcome = run(scratch.path(), arguments);
        INFO(arguments, ": ", outcome.errors);
        CHECK(outcome.code == 2);
        CHECK(outcome.errors.find(expected) != std::string::npos);
        CHECK(outcome.errors.find('\n') == outcome.errors.size() - 1);
    };
    refused(" --batch 0", "--batch");
    refused(" --schedule sideways", "serial, overlapped, graphed or all");
    refused(" --data " + (scratch.path() / "nowhere").string(), "--data");
    refused(" --data " + scratch.path().string(), "train-images");
    refused(" --picture " + (scratch.path() / "digits.png").string(), "--data DIR");
    refused(" --load-encoder " + (scratch.path() / "none").string() + " --batch 1", "none");
    refused(" --precision half", "tf32 or float32");
}
