#include <frozen_encoder/options.hpp>

#include <common/bad_input.hpp>
#include <common/processes.hpp>

namespace frozen_encoder {
namespace {

/// Refuses what one GPU alone can do.
void check_ranks(const examples::CommandLine& app, const Options& options) {
    for (const char* name : {"--decoder-device", "--only", "--save-start", "--save-encoder", "--kernels"}) {
        if (app.was_given(name))
            throw examples::BadInput(std::string(name) + ": is for one GPU, not for several");
    }
    if (options.schedules == std::vector{sluice::Schedule::automatic}) {
        throw examples::BadInput(
            "--schedule: expected serial, overlapped or graphed with several ranks, not automatic: "
            "ranks choose nothing by themselves");
    }
    if (options.gemm.algorithms == nn::Algorithms::autotune &&
        options.exchange != nn::RankExchange::gradients) {
        throw examples::BadInput(
            "--algorithms: expected heuristic unless ranks exchange gradients alone, not autotune: "
            "each would time its own GPU, and might multiply in another way than the others");
    }
}

nn::RankExchange exchange_named(const std::string& text) {
    if (text == "shards")
        return nn::RankExchange::shards;
    if (text == "factors")
        return nn::RankExchange::factors;
    if (text == "gradients")
        return nn::RankExchange::gradients;
    throw examples::BadInput("--exchange: expected shards, factors or gradients, not \"" + text + "\"");
}

} // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Trains a decoder on the features of a frozen encoder, one stage of a pipeline each, and "
        "measures what "
        "overlapping them, and replaying them as graphs, gains. With --data DIR it learns to "
        "segment handwritten digits."};
    examples::add_common_options(app, options,
                                 {.batch = "8", .steps = "100, or 1,500 on digits", .warmup = "10"});

    nn::add_gemm_options(app, options.gemm, nn::Rounding::of_frozen_weights);
    examples::add_number(app, "--encoder-steps", options.encoder_steps, 0, 1'000'000'000,
                         "steps of training the encoder on classification first (default: 1,500)");
    examples::add_number(
        app, "--workers", options.workers, 0, 256,
        "threads that fill batches; 0: the main thread does (default: by the machine, 1 to 8; 1 "
        "for random images, which are filled once)");
    examples::add_option(app, "--load-encoder", "FILE",
                         "take the encoder from a safetensors file instead of training it",
                         [&options](const std::string& text) {
                             if (text.empty())
                                 throw examples::BadInput("--load-encoder: expected a file, not \"\"");
                             options.load_encoder = text;
                         });
    examples::add_written_file(app, "--save-encoder", options.save_encoder,
                               "write the encoder to a safetensors file");
    examples::add_written_file(app, "--save-start", options.save_start,
                               "write both networks' first weights and all batches to a safetensors file");
    examples::add_number(app, "--image", options.image, 1, 1 << 15,
                         "pixels of a synthetic image's side (default: 256)");
    examples::add_number(app, "--depth", options.depth, 1, 8, "halvings of a synthetic image (default: 8)");
    examples::add_number(app, "--decoder-device", options.placement.decoder_device, 0, 1 << 10,
                         "the GPU that trains the decoder, of synthetic data (default: the encoder's, 0)");
    examples::add_option(app, "--only", "encoder|decoder",
                         "leave out the other network's work, of synthetic data, to see what one takes alone",
                         [&options](const std::string& text) {
                             if (text != "encoder" && text != "decoder")
                                 throw examples::BadInput("--only: expected encoder or decoder, not \"" +
                                                          text + "\"");
                             options.placement.only = text == "encoder" ? Network::encoder : Network::decoder;
                         });
    examples::add_checkpoint_options(app, options.checkpoints);
    examples::add_number(app, "--gpus", options.gpus, 1, 64,
                         "GPUs that train one decoder together, each on batches of its own (default: 1)");
    examples::add_option(app, "--exchange", "shards|factors|gradients",
                         "with --gpus: what layers of few rows exchange (default: what takes least time)",
                         [&options](const std::string& text) { options.exchange = exchange_named(text); });
    examples::add_timeline_options(app, options.timelines);
    app.add_flag("--losses", options.losses, "put the losses of all steps into the JSON report");
    examples::add_written_file(
        app, "--picture", options.picture,
        "write held-out images, labels and predictions side by side, as PNG (needs --data DIR)");

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    examples::require_data_for_picture(options, options.picture);
    examples::require_one_checkpoint(options.checkpoints, options.schedules.size(), "--schedule");
    if (!options.synthetic()) {
        for (const char* name : {"--image", "--depth", "--decoder-device", "--only"}) {
            if (app.was_given(name))
                throw examples::BadInput(std::string(name) + ": is for synthetic data, not for --data DIR");
        }
    }
    examples::require_part(app, "--encoder-steps", "--data DIR", !options.synthetic());
    const examples::Processes processes = examples::prepare_for_ranks(options.gpus);
    options.processes = processes.ranks;
    examples::require_several_ranks(app, "--exchange", options.ranks());
    if (options.ranks() > 1)
        check_ranks(app, options);
    if (processes.rank != 0) { // the first one reports, what ran when on all ranks, too
        options.json.clear();
        options.picture.clear();
    }
    const int blocks = 1 << options.depth;
    if (options.image % blocks != 0) {
        throw examples::BadInput("--image: expected a multiple of " + std::to_string(blocks) +
                                 ", so that the side can "
                                 "be halved --depth " +
                                 std::to_string(options.depth) + " times, not " +
                                 std::to_string(options.image));
    }
    return std::nullopt;
}

} // namespace frozen_encoder
