#include <masked_giou/options.hpp>

#include <common/bad_input.hpp>

namespace masked_giou {
namespace {

void check_together(const Options& options) {
    if (options.part == "train" && options.synthetic())
        throw examples::BadInput("--part train: expected --data DIR with it, since it learns to find digits");
    if (options.part != "train" && options.part != "all" && !options.synthetic()) {
        throw examples::BadInput("--data: expected synthetic for --part " + options.part + ", not \"" +
                                 options.data + "\", since only training looks at images");
    }
    if (options.wants("forward") && options.side && *options.side % 16 != 0) {
        throw examples::BadInput("--side: expected a multiple of 16, not \"" + std::to_string(*options.side) +
                                 '"');
    }
    if (options.part == "work" && options.timelines.timed_batches() > 0) {
        throw examples::BadInput(
            "--report, --timeline: expected --part losses, forward, train or all with them, not "
            "work, which runs hundreds of short measurements");
    }
    examples::require_data_for_picture(options, options.picture);
    if (!options.wants("train"))
        examples::require_way_of_single_stage(options);
}

/// Refuses options that none of the parts that run takes.
void check_parts(const examples::CommandLine& app, const Options& options) {
    const bool losses = options.wants("losses"), work = options.wants("work");
    const bool forward = options.wants("forward"), train = options.wants("train");
    for (const char* name : {"--formula", "--predictions"})
        examples::require_part(app, name, "--part losses", losses);
    examples::require_part(app, "--most-work", "--part work", work);
    examples::require_part(app, "--side", "--part forward", forward);
    examples::require_part(app, "--boxes", "--part losses, work and forward", losses || work || forward);
    for (const char* name : {"--precision", "--hidden"})
        examples::require_part(app, name, "--part forward and train", forward || train);
    examples::require_part(app, "--workers", "--part train", train);
}

} // namespace

bool Options::wants(const char* name) const {
    if (part != "all")
        return part == name;
    return (std::string(name) == "train") != synthetic();
}

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Generalised intersection over union of predicted boxes, of which most are padding: the loss "
        "in six ways, with the copy of targets that each needs; the work per box at which skipping "
        "the padding pays; a detector's forward pass. With --data DIR the detector learns to find "
        "handwritten digits."};
    examples::add_common_options(
        app, options,
        {.batch = "1,024 for losses; other parts: what the backend does in a moment, or 32 on digits",
         .steps = "20 to 100 on a GPU, fewer on the CPU; on digits 20,000, or 1,000",
         .warmup = "10, or fewer"});

    examples::add_option(
        app, "--part", "losses|work|forward|train|all",
        "what to run; all is training with --data DIR, and the others without (default: all)",
        [&options](const std::string& text) {
            options.part = examples::named<const char*>("--part", text,
                                                        {{"losses", "losses"},
                                                         {"work", "work"},
                                                         {"forward", "forward"},
                                                         {"train", "train"},
                                                         {"all", "all"}});
        });
    examples::add_option(app, "--formula", "article|torchvision",
                         "of the losses; training follows torchvision's (default: article)",
                         [&options](const std::string& text) {
                             options.formula = examples::named<Formula>(
                                 "--formula", text,
                                 {{"article", Formula::article}, {"torchvision", Formula::torchvision}});
                         });
    examples::add_option(
        app, "--predictions", "float32|bfloat16|float16",
        "type of the losses' predictions (default: float32)", [&options](const std::string& text) {
            options.predictions = examples::named<PredictionType>("--predictions", text,
                                                                  {{"float32", PredictionType::float32},
                                                                   {"bfloat16", PredictionType::bfloat16},
                                                                   {"float16", PredictionType::float16}});
        });
    examples::add_option(app, "--precision", "bfloat16|tf32|float32",
                         "how a GPU multiplies (default: bfloat16 for the forward pass, tf32 for training)",
                         [&options](const std::string& text) {
                             options.precision =
                                 examples::named<nn::Precision>("--precision", text,
                                                                {{"bfloat16", nn::Precision::bfloat16},
                                                                 {"tf32", nn::Precision::tf32},
                                                                 {"float32", nn::Precision::float32}});
                         });
    examples::add_number(
        app, "--boxes", options.boxes, 1, 256,
        "boxes predicted for an image, at most 256 (default: 256; fewer for work on the CPU)");
    examples::add_number(app, "--side", options.side, 1, 4096,
                         "pixels of an image's side in the forward pass (default: 256, or 64 on the CPU)");
    examples::add_number(
        app, "--hidden", options.hidden, 1, 1 << 20,
        "features between the detector's linear layers (default: 16,384 in the forward pass, or 256)");
    examples::add_number(app, "--most-work", options.most_work, 1, 1 << 20,
                         "repetitions of the formula a box, at most (default: 4,096, or 64 on the CPU)");
    examples::add_number(
        app, "--workers", options.workers, 0, 256,
        "threads that compose and pack batches; 0: the main thread does (default: by the machine, 1 to 8)");
    examples::add_timeline_options(app, options.timelines, false);
    examples::add_written_file(
        app, "--picture", options.picture,
        "write held-out canvases with true and found boxes, as PNG (needs --data DIR)");

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    check_together(options);
    check_parts(app, options);
    return std::nullopt;
}

std::string to_string(Formula formula) { return formula == Formula::article ? "article" : "torchvision"; }

std::string to_string(PredictionType type) {
    switch (type) {
    case PredictionType::bfloat16:
        return "bfloat16";
    case PredictionType::float16:
        return "float16";
    case PredictionType::float32:
        break;
    }
    return "float32";
}

std::string to_string(nn::Precision precision) {
    switch (precision) {
    case nn::Precision::bfloat16:
        return "bfloat16";
    case nn::Precision::tf32:
        return "tf32";
    case nn::Precision::float32:
        break;
    }
    return "float32";
}

} // namespace masked_giou
