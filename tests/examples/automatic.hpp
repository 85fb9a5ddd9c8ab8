/// \file
/// What Schedule::automatic finds in a program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "program.hpp"
#include "support/doctest.hpp"

namespace sluice_test {

/// Checks that `automatic` can use graphs in all runs of `program` with `arguments`: the same work is captured alike each
/// time, down to the bytes of kernels' arguments.
inline void check_automatic_uses_graphs(const Program& program, const std::string& arguments) {
    INFO(arguments);
    const Outcome outcome = program.run(arguments + " --schedule automatic");
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    std::size_t chosen = 0;
    for (const nlohmann::json& run : outcome.report.at("runs")) {
        if (run.value("schedule", "") != "automatic")
            continue;
        for (const nlohmann::json& line : run.at("notes")) {
            const std::string note = line.get<std::string>();
            INFO(note);
            chosen += note.find("was chosen after") != std::string::npos ? 1U : 0U;
            CHECK(note.find("cannot be used") == std::string::npos);
        }
    }
    CHECK(chosen > 0);
}

} // namespace sluice_test
