/// \file
/// What `graph_replay` can be told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <common/options.hpp>
#include <nn/gemm/gemm.hpp>

namespace graph_replay {

/// The common options, and those of this experiment.
struct Options : examples::CommonOptions {
    std::string part = "all"; ///< linear, chain, loop, rate or all
    nn::Precision precision = nn::Precision::tf32;
    std::size_t inputs = 150'528; ///< of the linear model: an image of 3×224×224
    std::size_t outputs = 1'000;
    std::vector<std::size_t> chains{10, 100, 1'000}; ///< kernels in each chain
    examples::TimelineOptions timelines;

    [[nodiscard]] bool wants(const char* name) const { return part == "all" || part == name; }
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

} // namespace graph_replay
