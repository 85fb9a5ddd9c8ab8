/// \file
/// Trainings that stop at any time and go on later with the bits that they would have had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <common/options.hpp>
#include <common/safetensors.hpp>

namespace examples {

/// What `--checkpoint`, `--checkpoint-every` and `--resume` ask for.
struct CheckpointOptions {
    /// Where to write: each checkpoint over the one before, or, with "{step}" in the name, which becomes the number of
    /// steps, beside it. Empty for nowhere.
    std::string file;
    std::size_t every = 0; ///< steps from one to the next; 0: the last step's alone
    std::string resume;    ///< the checkpoint to go on from; empty for none
};

/// Adds the three; `options` must outlive the parsing.
void add_checkpoint_options(CommandLine& app, CheckpointOptions& options);

/// Refuses options that do not go together, once they are parsed.
/// \throws BadInput for `--checkpoint-every` without a file, and for `--checkpoint` of several `runs`: schedules or the like,
///         which `option` names and each of which trains anew
void require_one_checkpoint(const CheckpointOptions& options, std::size_t runs, const std::string& option);

/// All that the steps after `step` depend on, but for the data and the options.
struct TrainingState {
    std::size_t step = 0;      ///< steps that are done
    std::vector<float> losses; ///< one of each of them; no later step depends on them
    std::map<std::string, Tensor, std::less<>> tensors; ///< weights, velocities, running statistics

    /// Adds tensors with `name`, `shape` and `values`, which are float, under `prefix` and their names.
    template <class NamedTensors>
    void add(const std::string& prefix, const NamedTensors& named) {
        for (const auto& tensor : named)
            tensors[prefix + tensor.name] =
                Tensor::of<float>(tensor.shape, std::span<const float>(tensor.values));
    }

    /// The tensors that were added under `prefix`.
    template <class NamedTensor>
    [[nodiscard]] std::vector<NamedTensor> named(std::string_view prefix) const {
        std::vector<NamedTensor> found;
        for (const auto& entry : tensors) {
            const Tensor& tensor = entry.second;
            if (entry.first.starts_with(prefix))
                found.push_back({entry.first.substr(prefix.size()), tensor.shape, tensor.as<float>()});
        }
        return found;
    }
};

/// The FNV-1a hash of the number of steps and of all tensors, by their names, bit by bit; not of the losses. "0x" and 16
/// digits: equal for ranks, schedules and resumed runs that are to agree.
std::string hash_of(const TrainingState& state);

/// The line that a program prints of it at the end of a run: "weights 0x… after 30 steps".
std::string weights_line(const std::string& hash, std::size_t steps);

/// A training as its checkpoints describe it.
struct TrainingPlan {
    std::string program;             ///< whose checkpoints they are
    std::size_t steps = 0;           ///< all of them, warm-up included
    std::size_t steps_per_epoch = 0; ///< 0: there are no epochs
    /// What the results depend on, name and value, such as "batch" and "8". A checkpoint of other settings is refused, with
    /// the first that differs.
    std::vector<std::pair<std::string, std::string>> settings;
};

/// A training's checkpoints: the one that it goes on from, and those that it writes.
class Checkpoints {
public:
    /// None: the training begins with step 0, and writes nothing.
    Checkpoints() = default;

    /// Reads the checkpoint to go on from, if there is one. It has hashes of its weights and of its losses.
    /// \throws BadInput, naming the file, when it cannot be read, is not whole, belongs to another program or to other
    ///         settings, or is of the plan's last step or a later one
    Checkpoints(const CheckpointOptions& options, TrainingPlan plan);

    /// What the training goes on from; null when it begins anew.
    [[nodiscard]] const TrainingState* resumed() const { return resumed_ ? &*resumed_ : nullptr; }

    /// Steps that are done before the training's first.
    [[nodiscard]] std::size_t first_step() const { return resumed_ ? resumed_->step : 0; }

    /// Whether `write` is to be called when `step` steps are done, on all ranks.
    [[nodiscard]] bool is_due(std::size_t step) const;

    /// Those of one of several ranks, which all go on from the same. `write` calls `require_alive()`, which throws where another rank
    /// is gone, and results are undefined; then rank 0 writes.
    [[nodiscard]] Checkpoints for_rank(int rank, std::function<void()> require_alive) const;

    /// Writes a checkpoint, whole or not at all (see `write_whole_file`), on rank 0.
    /// \throws BadInput when it cannot be written
    void write(TrainingState state) const;

private:
    CheckpointOptions options_;
    TrainingPlan plan_;
    std::optional<TrainingState> resumed_;
    std::function<void()> require_alive_; // may be empty
    bool writes_ = true;
};

} // namespace examples
