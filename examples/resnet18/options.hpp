/// \file
/// What `resnet18` can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/checkpoint.hpp>
#include <common/options.hpp>
#include <nn/gemm/gemm.hpp>
#include <resnet18/rungs.hpp>

namespace resnet18 {

/// Which ResNet-18.
enum class Size : std::uint8_t {
    full,   ///< torchvision's, on images of 224×224
    narrow, ///< with an eighth of the channels, on images of 40×40
};

/// The common options, and those of this experiment.
struct Options : examples::CommonOptions {
    std::vector<int> rungs;             ///< what to climb, in this order
    bool has_schedules = false;         ///< whether the rungs run under `schedules` instead of their own
    bool has_data = false;              ///< whether `data` was given
    std::optional<Size> size;           ///< full on a device, narrow on the CPU
    std::optional<Precision> precision; ///< of all rungs, instead of their own
    std::optional<int> epochs;          ///< timed, instead of `steps`
    std::optional<std::size_t> images;  ///< how many of the data; all where it is empty
    std::optional<bool> rate_falls;     ///< from a high one; otherwise the published one; both by the data
    std::optional<int> workers;         ///< threads that load, from rung 1 on
    std::optional<std::size_t> stored_channels;
    nn::Algorithms algorithms = nn::Algorithms::autotune;
    std::string plan_file; ///< where cuDNN's plans are kept; empty for nowhere
    bool fuse_statistics = false;
    bool alone = false;     ///< also trains on one batch that is on the device already
    bool inference = false; ///< measures inference instead of climbing
    int gpus = 1;           ///< ranks of this process that train together, each on a device of its own
    std::size_t bucket_megabytes = 4; ///< of gradients that ranks average at a time, at least
    int processes = 1;                ///< that mpirun has started, each of one rank; one of both is 1
    bool losses = false;              ///< whether the report holds the losses of all steps
    std::string save_start; ///< where to write first weights, images and their order; empty for nowhere
    examples::CheckpointOptions checkpoints;
    examples::TimelineOptions timelines;

    /// Those that train together.
    [[nodiscard]] int ranks() const { return gpus * processes; }
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

/// The folder of the digits that come with the examples.
std::string digits_folder();

} // namespace resnet18
