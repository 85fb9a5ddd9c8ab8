#include <common/checkpoint.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <common/bad_input.hpp>
#include <common/fnv1a.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

// Metadata that is not of the settings.
constexpr const char* program_key = "checkpoint of";
constexpr const char* step_key = "step";
constexpr const char* epoch_key = "epoch";
constexpr const char* hash_key = "weights";
constexpr const char* losses_hash_key = "losses"; // apart from the weights', which runs print and compare
constexpr const char* losses_name = "losses";

std::string with_step(std::string file, std::size_t step) {
    constexpr std::string_view place = "{step}";
    const std::string number = std::to_string(step);
    for (std::size_t at = 0; (at = file.find(place, at)) != std::string::npos; at += number.size())
        file.replace(at, place.size(), number);
    return file;
}

bool is_setting(const std::string& key) {
    return key != program_key && key != step_key && key != epoch_key && key != hash_key &&
           key != losses_hash_key;
}

void require_program(const Safetensors& content, const std::string& program, const std::string& file) {
    const auto found = content.metadata.find(program_key);
    if (found == content.metadata.end())
        throw BadInput(file + ": is no checkpoint; expected one that " + program + " --checkpoint wrote");
    if (found->second != program)
        throw BadInput(file + ": is a checkpoint of " + on_one_line(found->second) + "; expected one of " +
                       program);
}

void require_settings(const Safetensors& content, const TrainingPlan& plan, const std::string& file) {
    for (const auto& [name, value] : plan.settings) {
        const auto found = content.metadata.find(name);
        if (found == content.metadata.end())
            throw BadInput(file + ": does not say its " + name + "; expected " + value);
        if (found->second != value) {
            throw BadInput(file + ": was trained with " + name + ' ' + on_one_line(found->second) +
                           "; expected " + value + ", as in this run");
        }
    }
    for (const auto& entry : content.metadata) {
        const auto is_it = [&](const auto& setting) { return setting.first == entry.first; };
        if (is_setting(entry.first) && std::none_of(plan.settings.begin(), plan.settings.end(), is_it)) {
            throw BadInput(file + ": was trained with " + on_one_line(entry.first + ' ' + entry.second) +
                           ", which this run has not; expected a checkpoint of the same settings");
        }
    }
}

std::string hash_of_losses(std::span<const float> losses) {
    Fnv1a hash;
    hash.add(std::span(reinterpret_cast<const std::uint8_t*>(losses.data()), losses.size_bytes()));
    return hash.text();
}

void require_hash(const Safetensors& content, const std::string& of, const std::string& hash,
                  const std::string& file) {
    const auto found = content.metadata.find(of);
    const std::string expected = found == content.metadata.end() ? "" : found->second;
    if (hash != expected) {
        throw BadInput(file + ": is damaged: its " + of + " hash to " + hash + "; expected " +
                       (expected.empty() ? "the file to say its hash" : on_one_line(expected)));
    }
}

TrainingState read_state(Safetensors content, const std::string& file) {
    TrainingState state;
    state.step = static_cast<std::size_t>(parse_whole_number(
        file + ": " + step_key, content.metadata[step_key], 1, std::numeric_limits<std::int64_t>::max()));
    if (const auto losses = content.tensors.find(losses_name); losses != content.tensors.end()) {
        state.losses = losses->second.as<float>();
        content.tensors.erase(losses);
    }
    if (state.losses.size() != state.step) {
        throw BadInput(file + ": holds " + counted(state.losses.size(), "loss") + "; expected " +
                       with_commas(state.step) + ", one of each step");
    }
    state.tensors = std::move(content.tensors);
    require_hash(content, hash_key, hash_of(state), file);
    require_hash(content, losses_hash_key, hash_of_losses(state.losses), file);
    return state;
}

} // namespace

void add_checkpoint_options(CommandLine& app, CheckpointOptions& options) {
    add_written_file(
        app, "--checkpoint", options.file,
        "write what is trained to a safetensors file, to go on from with --resume; {step} in its "
        "name becomes the number of steps");
    add_number(app, "--checkpoint-every", options.every, 1, 1'000'000'000,
               "steps from one checkpoint to the next (default: only the last step's is written)");
    add_option(app, "--resume", "FILE",
               "go on from a checkpoint, with the options that it was written with; --steps counts from the "
               "training's beginning",
               [&options](const std::string& text) {
                   if (text.empty())
                       throw BadInput("--resume: expected a file, not \"\"");
                   options.resume = text;
               });
}

void require_one_checkpoint(const CheckpointOptions& options, std::size_t runs, const std::string& option) {
    if (options.every > 0 && options.file.empty())
        throw BadInput("--checkpoint-every: expected --checkpoint FILE with it, to say where to write");
    if (!options.file.empty() && runs > 1)
        throw BadInput("--checkpoint: expected a single " + option + " with it, since each of the " +
                       std::to_string(runs) + " trains anew");
}

std::string hash_of(const TrainingState& state) {
    Fnv1a hash;
    hash.add(std::uint64_t{state.step});
    for (const auto& [name, tensor] : state.tensors) {
        hash.add(name);
        hash.add(std::uint64_t{tensor.bytes.size()});
        hash.add(tensor.bytes);
    }
    return hash.text();
}

std::string weights_line(const std::string& hash, std::size_t steps) {
    return "weights " + hash + " after " + counted(steps, "step");
}

Checkpoints::Checkpoints(const CheckpointOptions& options, TrainingPlan plan)
    : options_(options), plan_(std::move(plan)) {
    if (options_.resume.empty())
        return;
    Safetensors content = read_safetensors(options_.resume);
    require_program(content, plan_.program, options_.resume);
    require_settings(content, plan_, options_.resume);
    resumed_ = read_state(std::move(content), options_.resume);
    if (resumed_->step >= plan_.steps) {
        throw BadInput(options_.resume + ": holds step " + with_commas(resumed_->step) +
                       "; expected one before step " + with_commas(plan_.steps) + ", the last of this run");
    }
}

bool Checkpoints::is_due(std::size_t step) const {
    if (options_.file.empty() || step <= first_step())
        return false;
    return step == plan_.steps || (options_.every > 0 && step % options_.every == 0);
}

Checkpoints Checkpoints::for_rank(int rank, std::function<void()> require_alive) const {
    Checkpoints result = *this;
    result.require_alive_ = std::move(require_alive);
    result.writes_ = rank == 0;
    return result;
}

void Checkpoints::write(TrainingState state) const {
    if (require_alive_)
        require_alive_();
    if (!writes_)
        return;
    const std::string hash = hash_of(state);
    Safetensors content;
    content.tensors = std::move(state.tensors);
    content.tensors[losses_name] =
        Tensor::of<float>({state.losses.size()}, std::span<const float>(state.losses));
    content.metadata.insert(plan_.settings.begin(), plan_.settings.end());
    content.metadata[program_key] = plan_.program;
    content.metadata[step_key] = std::to_string(state.step);
    if (plan_.steps_per_epoch > 0)
        content.metadata[epoch_key] = std::to_string(state.step / plan_.steps_per_epoch);
    content.metadata[hash_key] = hash;
    content.metadata[losses_hash_key] = hash_of_losses(state.losses);
    write_safetensors(content, with_step(options_.file, state.step));
}

} // namespace examples
