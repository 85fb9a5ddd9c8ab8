/// \file
/// What `masked_giou` can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <common/options.hpp>
#include <nn/gemm/gemm.hpp>

namespace masked_giou {

/// The type of predictions in the losses.
enum class PredictionType : std::uint8_t { float32, bfloat16, float16 };

/// Which formula the losses follow.
enum class Formula : std::uint8_t { article, torchvision };

/// The common options, and those of this experiment. Empty where the default depends on the part and the
/// backend.
struct Options : examples::CommonOptions {
    std::string part = "all"; ///< losses, work, forward, train or all
    Formula formula = Formula::article;
    PredictionType predictions = PredictionType::float32;
    std::optional<nn::Precision> precision; ///< how the detector multiplies
    std::optional<std::size_t> boxes;       ///< predicted for an image
    std::optional<std::size_t> side;        ///< pixels of an image's side, in the forward pass
    std::optional<std::size_t> hidden;      ///< features between the detector's linear layers
    std::optional<std::size_t> most_work;   ///< of the heavier-loop study
    std::string picture;                    ///< where to write predictions as PNG; empty for nowhere
    std::optional<int> workers;             ///< threads that fill batches; by the machine where it is empty
    examples::TimelineOptions timelines;

    /// `all` is every part that the data serves: training for digits, the others for random data.
    [[nodiscard]] bool wants(const char* name) const;
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

std::string to_string(Formula formula);
std::string to_string(PredictionType type);
std::string to_string(nn::Precision precision);

} // namespace masked_giou
