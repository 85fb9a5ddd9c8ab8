/// \file
/// The program graph_replay as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"
#include "support/doctest.hpp"

namespace examples_graph_replay {

using sluice_test::backend;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

const std::string brief = " --steps 5 --warmup 2";

const sluice_test::Program program(GRAPH_REPLAY);

} // namespace

TEST_CASE("graph_replay captures each step once and gets the same bits from replays") {
    const Outcome outcome = program.run(brief + " --batch 4 --inputs 96 --outputs 10 --chain 7");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());

    const nlohmann::json& report = outcome.report;
    CHECK(report.at("experiment") == "graph_replay");
    CHECK(report.at("backend") == backend);
    CHECK(report.at("batch") == 4);
    CHECK(report.at("steps") == 5);
    const std::vector<std::string> parts{"linear", "chain:7", "loop/unroll:1", "loop/unroll:8", "rate"};
    REQUIRE(report.at("runs").size() == 2 * parts.size());
    for (std::size_t part = 0; part < parts.size(); ++part) {
        INFO(parts[part]);
        const nlohmann::json& serial = report.at("runs")[2 * part];
        const nlohmann::json& graphed = report.at("runs")[2 * part + 1];
        CHECK(serial.at("schedule") == "serial");
        CHECK(serial.at("part") == parts[part]);
        CHECK(graphed.at("schedule") == "graphed");
        CHECK(graphed.at("part") == parts[part]);
        CHECK(graphed.at("identical_to_serial") == true);
        CHECK(graphed.at("refusals") == 0);
        CHECK(graphed.at("captures") == 1);
        CHECK(graphed.at("replays") == 6); // all steps but the first, which runs by itself
        CHECK(graphed.at("nodes").get<int>() > 0);
        CHECK(graphed.at("step_microseconds").get<double>() > 0);
    }
    CHECK(report.at("runs")[3].at("nodes") == 7);
}

TEST_CASE("graph_replay runs the parts and schedules that it is asked for") {
    const Outcome outcome = program.run(brief + " --batch 4 --part rate --schedule graphed");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    REQUIRE(outcome.report.at("runs").size() == 1);
    CHECK(outcome.report.at("runs")[0].at("schedule") == "graphed");
    CHECK(outcome.report.at("runs")[0].at("identical_to_serial").is_null());
    CHECK(outcome.report.at("runs")[0].at("loss_last").is_null());
}

TEST_CASE("graph_replay draws when steps were enqueued and when they ran") {
    const ScratchFolder scratch;
    for (const char* name : {"steps.svg", "steps.html", "steps.pftrace"}) {
        const std::filesystem::path file = scratch.path() / name;
        const Outcome outcome =
            program.run(brief + " --part chain --chain 7 --report --timeline " + file.string());
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        CHECK(std::filesystem::file_size(file) > 500);
        const nlohmann::json& timelines = outcome.report.at("timelines");
        REQUIRE(timelines.size() == 2);
        CHECK(timelines[0].at("title") == "chain:7, one by one");
        CHECK(timelines[1].at("title") == "chain:7, as a graph");
        for (const nlohmann::json& timeline : timelines) {
            REQUIRE(timeline.at("rows").size() == 2);
            CHECK(timeline.at("rows")[0].at("name") == "enqueue");
            CHECK(timeline.at("rows")[1].at("name") == "step");
            for (const nlohmann::json& row : timeline.at("rows")) {
                CHECK(row.at("spans") == 5); // the timed steps
                CHECK(row.at("busy_us").get<double>() > 0);
            }
        }
    }
    CHECK_FALSE(program.run(brief + " --part chain --chain 7").report.contains("timelines"));
    const Outcome many =
        program.run(" --part chain --chain 2 --steps 60 --warmup 2 --schedule serial --report");
    REQUIRE(many.code == 0);
    CHECK(many.report.at("timelines")[0].at("batches") == 24); // the last ones
}

TEST_CASE("graph_replay says in one line what is wrong") {
    const ScratchFolder scratch;
    program.check_refused(" --part half", "linear, chain, loop, rate or all");
    program.check_refused(" --chain 0", "--chain");
    program.check_refused(" --part rate --chain 5",
                          "--chain: is for --part chain alone, which this does not run");
    program.check_refused(" --part chain --inputs 5", "--inputs: is for --part linear alone");
    program.check_refused(" --part loop --precision tf32",
                          "--precision: is for --part linear and rate alone");
    program.check_refused(" --inputs many", "--inputs");
    program.check_refused(" --schedule overlapped", "serial, graphed or all");
    program.check_refused(" --precision half", "tf32 or float32");
    program.check_refused(" --data " + scratch.path().string(), "expected synthetic");
    program.check_refused(" --graphs", "--graphs");
}

} // namespace examples_graph_replay
