#include <resnet18/options.hpp>

#include <numeric>

#include <common/bad_input.hpp>
#include <common/processes.hpp>

namespace resnet18 {
namespace {

std::string data_folder(const char* name) { return std::string(RESNET18_DATA_DIR "/") + name; }

std::vector<int> parse_rungs(const std::string& text) {
    std::vector<int> rungs;
    if (text == "all") {
        rungs.resize(last_rung + 1);
        std::iota(rungs.begin(), rungs.end(), 0);
        return rungs;
    }
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        try {
            rungs.push_back(static_cast<int>(
                examples::parse_whole_number("--rung", text.substr(begin, end - begin), 0, last_rung)));
        } catch (const examples::BadInput&) {
            throw examples::BadInput("--rung: expected all, or numbers from 0 to " +
                                     std::to_string(last_rung) + " with commas between them, not \"" + text +
                                     '"');
        }
        begin = end + 1;
    }
    return rungs;
}

void add_network_options(examples::CommandLine& app, Options& options) {
    examples::add_option(
        app, "--network", "full|narrow",
        "torchvision's network on images of 224x224, or one with an eighth of the channels on "
        "images of 40x40 (default: full; on the CPU narrow)",
        [&options](const std::string& text) {
            options.size =
                examples::named<Size>("--network", text, {{"full", Size::full}, {"narrow", Size::narrow}});
        });
    examples::add_option(app, "--precision", "tf32|float16",
                         "what a GPU computes in (default: tf32 on rungs 0 to 5 and for inference, float16 "
                         "above); the CPU computes in float32",
                         [&options](const std::string& text) {
                             options.precision = examples::named<Precision>(
                                 "--precision", text,
                                 {{"tf32", Precision::tf32}, {"float16", Precision::float16}});
                         });
    examples::add_number(
        app, "--stored-channels", options.stored_channels, 3, 8,
        "channels that a pixel takes in the network's input, of which 3 are used (default: 4; "
        "of the narrow network 8; on the CPU 3)");
    examples::add_option(
        app, "--algorithms", "heuristic|autotune",
        "whether cuDNN's algorithms are its first choice, or the fastest in a trial when the "
        "program starts (default: autotune)",
        [&options](const std::string& text) {
            options.algorithms = examples::named<nn::Algorithms>(
                "--algorithms", text,
                {{"heuristic", nn::Algorithms::heuristic}, {"autotune", nn::Algorithms::autotune}});
        });
    examples::add_written_file(app, "--plans", options.plan_file,
                               "keep what was chosen there, and take it from there");
    app.add_flag("--fuse-statistics", options.fuse_statistics,
                 "from rung 7 on, let convolutions sum what batch normalisations need, where cuDNN can");
}

void check_together(const examples::CommandLine& app, const Options& options) {
    const auto refuse = [&](const char* name, const char* why) {
        if (app.was_given(name))
            throw examples::BadInput(std::string(name) + ": expected no " + why);
    };
    if (options.epochs)
        refuse("--steps", "--epochs with it, since either says how long to train");
    if (options.inference) {
        for (const char* name :
             {"--rung", "--epochs", "--images", "--rate", "--workers", "--alone", "--losses", "--save-start",
              "--kernels", "--fuse-statistics", "--checkpoint", "--checkpoint-every", "--resume"})
            refuse(name, "--inference with it, which trains on nothing");
        if (options.has_schedules)
            examples::require_way_of_single_stage(options);
    }
    if (!options.save_start.empty() && options.rungs.size() > 1)
        throw examples::BadInput("--save-start: expected --rung with one number, since rungs differ in their "
                                 "batches");
    examples::require_one_checkpoint(options.checkpoints, options.rungs.size(), "--rung");
    examples::require_one_checkpoint(options.checkpoints,
                                     options.has_schedules ? options.schedules.size() : 1, "--schedule");
    if (!options.checkpoints.resume.empty() && options.rungs.size() > 1)
        throw examples::BadInput("--resume: expected --rung with one number, the checkpoint's");
}

/// Refuses what one GPU alone can do.
void check_ranks(const examples::CommandLine& app, const Options& options) {
    for (const char* name : {"--alone", "--inference", "--save-start", "--kernels"}) {
        if (app.was_given(name))
            throw examples::BadInput(std::string(name) + ": is for one GPU, not for several");
    }
    for (const sluice::Schedule schedule : options.schedules) {
        if (schedule == sluice::Schedule::automatic && options.schedules.size() == 1)
            throw examples::BadInput("--schedule: expected serial, overlapped or graphed with several ranks, "
                                     "not automatic: they choose nothing by themselves");
    }
}

} // namespace

std::string digits_folder() { return data_folder("digits"); }

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Trains ResNet-18 on images that a source feeds, and climbs a ladder of nine rungs, each of which "
        "makes the input or the step cheaper. Tells of each how fast it is and what bounds it. With "
        "--inference it measures inference, launch by launch and as a graph."};
    examples::add_common_options(
        app, options,
        {.batch = "by the rung: 32, 512 or 1024; of the narrow network 16 or 32; of "
                  "inference 1 and 16",
         .steps = "2 epochs, above 64 images a batch 6; of inference 1,000; on the "
                  "CPU 4 epochs of one rung, or 1 of each, or 5 inferences",
         .warmup = "enough for each slot to have been captured; 2 on the CPU",
         .schedule = "the rung's own: serial on 0 and 1, graphed on 7 and 8, otherwise overlapped",
         .data = {
             {"random", "synthetic"}, {"digits", digits_folder()}, {"tiles", data_folder("photographs")}}});
    examples::add_option(app, "--rung", "N|all",
                         "which rungs to climb: one, several with commas between them, or all (default: all)",
                         [&options](const std::string& text) { options.rungs = parse_rungs(text); });
    examples::add_number(app, "--epochs", options.epochs, 1, 1'000'000, "timed epochs, instead of --steps");
    examples::add_number(app, "--images", options.images, 2, 1'000'000'000,
                         "take so many images of the data at most, also of held-out ones (default: all)");
    examples::add_option(app, "--rate", "published|falling",
                         "the learning rate: 0.001, or from 0.05 to 0 (default: falling, on random images "
                         "published)",
                         [&options](const std::string& text) {
                             options.rate_falls = examples::named<bool>(
                                 "--rate", text, {{"published", false}, {"falling", true}});
                         });
    examples::add_number(app, "--workers", options.workers, 0, 256,
                         "threads that load from rung 1 on; 0: the training thread does (default: 8; on the "
                         "CPU by the machine)");
    add_network_options(app, options);
    app.add_flag("--alone", options.alone,
                 "also time each rung's training on one batch that is on the device already");
    app.add_flag("--inference", options.inference,
                 "measure inference with the batch normalisations folded, instead of climbing");
    app.add_flag("--losses", options.losses, "put the losses of all steps into the JSON report");
    examples::add_written_file(app, "--save-start", options.save_start,
                               "write the first weights, the images and their order to a safetensors file");
    examples::add_checkpoint_options(app, options.checkpoints);
    examples::add_number(app, "--gpus", options.gpus, 1, 64,
                         "GPUs that train one network together, each on a share of the images (default: 1)");
    examples::add_number(app, "--bucket", options.bucket_megabytes, 0, 1024,
                         "with --gpus: MB of gradients, at least, that are averaged at a time (default: 4)");
    examples::add_timeline_options(app, options.timelines);

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    options.has_schedules = app.was_given("--schedule");
    options.has_data = app.was_given("--data");
    if (options.rungs.empty())
        options.rungs = parse_rungs("all");
    check_together(app, options);
    const examples::Processes processes = examples::prepare_for_ranks(options.gpus);
    options.processes = processes.ranks;
    examples::require_several_ranks(app, "--bucket", options.ranks());
    if (options.ranks() > 1)
        check_ranks(app, options);
    if (processes.rank != 0) { // the first one reports, what ran when on all ranks, too
        options.json.clear();
    }
    return std::nullopt;
}

} // namespace resnet18
