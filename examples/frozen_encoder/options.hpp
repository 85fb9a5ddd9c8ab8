/// \file
/// What `frozen_encoder` can be told.
#pragma once

#include <optional>
#include <string>

#include <common/checkpoint.hpp>
#include <common/options.hpp>
#include <common/workers.hpp>
#include <nn/gemm/gemm_options.hpp>
#include <nn/models/rank_exchange.hpp>

namespace frozen_encoder {

enum class Network { both, encoder, decoder };

/// Where the networks run, and which.
struct Placement {
    int decoder_device = -1;      ///< the decoder's GPU; -1: the encoder's
    Network only = Network::both; ///< the other one's work is left out, to see what this one takes by itself
};

/// The common options, and those of this experiment.
struct Options : examples::CommonOptions {
    nn::GemmSettings gemm;
    int encoder_steps = 1500;   ///< steps of training the encoder on classification, before it is frozen
    std::string load_encoder;   ///< a safetensors file to take the encoder from; empty for none
    std::string save_encoder;   ///< where to write the encoder; empty for nowhere
    std::string picture;        ///< where to write predictions as PNG; empty for nowhere
    std::string save_start;     ///< where to write the first weights and the batches; empty for nowhere
    std::optional<int> workers; ///< threads that fill batches; by the machine where it is empty
    int image = 256;            ///< pixels of a synthetic image's side
    int depth = 8;              ///< halvings of a synthetic image
    Placement placement;
    examples::CheckpointOptions checkpoints;
    examples::TimelineOptions timelines;
    int gpus = 1;      ///< ranks of this process that train together, each on a device of its own
    int processes = 1; ///< that mpirun has started, each of one rank; one of both is 1
    nn::RankExchange exchange = nn::RankExchange::automatic; ///< with several: of the decoder's first layers
    bool losses = false; ///< whether the report holds the losses of all steps

    /// Those that train together.
    [[nodiscard]] int ranks() const { return gpus * processes; }
    /// The threads that fill batches. One is enough for random images, which are filled once.
    [[nodiscard]] int worker_count(bool on_host) const {
        const int others = examples::other_threads(on_host, 4);
        return workers.value_or(synthetic() ? 1 : examples::workers_for_machine(others));
    }
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

} // namespace frozen_encoder
