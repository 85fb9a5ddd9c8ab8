/// \file
/// Trainings that are cut off and go on from a checkpoint, as a user runs them.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <common/safetensors.hpp>

#include "program.hpp"
#include "support/doctest.hpp"

namespace sluice_test {

/// The steps that are done in a checkpoint.
inline int step_of(const std::string& checkpoint) {
    return std::stoi(examples::read_safetensors(checkpoint).metadata.at("step"));
}

/// The hashes of the weights that the runs of a program leave behind; checks that each has the losses of the last.
inline std::vector<std::string> hashes_of(const Program& program, const std::string& arguments) {
    const Outcome outcome = program.run(arguments + " --losses");
    INFO(arguments, ": ", outcome.errors);
    REQUIRE(outcome.code == 0);
    std::vector<std::string> hashes;
    for (const nlohmann::json& run : outcome.report.at("runs")) {
        hashes.push_back(run.at("weights"));
        CHECK(run.at("losses") == outcome.report.at("runs").back().at("losses"));
    }
    return hashes;
}

/// A training of `steps` steps that writes checkpoints leaves the bits of one that does not, and so does each that goes on
/// from one of them, at each of the steps `from`, which are multiples of `every`, under every schedule.
inline void check_resumed(const Program& program, const std::string& arguments, int every,
                          const std::vector<int>& from) {
    const ScratchFolder scratch;
    const std::string file = (scratch.path() / "at-").string();
    const std::vector<std::string> whole = hashes_of(program, arguments + " --schedule serial");
    const std::vector<std::string> schedules{"serial", "overlapped", "graphed"};
    for (const std::string& schedule : schedules) {
        CHECK(hashes_of(program, arguments + " --schedule " + schedule + " --checkpoint " + file + schedule +
                                     "-{step} --checkpoint-every " + std::to_string(every)) == whole);
    }
    for (const int step : from) {
        CAPTURE(step);
        // Any schedule's checkpoint serves any schedule, since they are the same.
        const std::string of_serial = file + "serial-" + std::to_string(step);
        for (const std::string& schedule : schedules)
            CHECK(contents(file + schedule + "-" + std::to_string(step)) == contents(of_serial));
        CHECK(step_of(of_serial) == step);
        CHECK(hashes_of(program, arguments + " --schedule serial,overlapped,graphed --resume " + of_serial) ==
              std::vector<std::string>(3, whole.front()));
    }
}

/// Kills a training at some step, goes on from the checkpoint that it leaves, under every schedule, and compares with a
/// training that is not disturbed. The learning rate must not depend on the number of steps.
inline void check_killed(const Program& program, const std::string& arguments, int warmup) {
    const ScratchFolder scratch;
    const std::string file = (scratch.path() / "checkpoint").string();
    const std::string base = arguments + " --warmup " + std::to_string(warmup);
    // From a run that is killed, goes on, and is killed again.
    int before = 0;
    for (const std::string schedule : {"graphed", "overlapped"}) {
        const std::string resume = before > 0 ? " --resume " + file : "";
        // A time that is not tied to the steps.
        const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        REQUIRE(program.kill_when(base + " --steps 1000000 --schedule " + schedule + " --checkpoint " + file +
                                      " --checkpoint-every 3" + resume,
                                  std::chrono::microseconds(now / 1000 % 20000),
                                  [&] { return std::filesystem::exists(file) && step_of(file) > before; }));
        CHECK(step_of(file) > before);
        CHECK(step_of(file) % 3 == 0);
        before = step_of(file);
    }
    const std::string steps = " --steps " + std::to_string(before + 8 - warmup);
    const std::vector<std::string> whole = hashes_of(program, base + steps + " --schedule serial");
    CHECK(hashes_of(program, base + steps + " --schedule serial,overlapped,graphed --resume " + file) ==
          std::vector<std::string>(3, whole.front()));
}

} // namespace sluice_test
