#include <gpu_augment/options.hpp>

#include <bit>

#include <common/bad_input.hpp>

namespace gpu_augment {
namespace {

/// A contact sheet is drawn of photographs, with nothing trained.
void check_contact_sheet(const examples::CommandLine& app, const Options& options) {
    if (options.contact_sheet.empty()) {
        if (app.was_given("--photographs"))
            throw examples::BadInput("--photographs: expected --contact-sheet with it, which shows them");
        return;
    }
    for (const char* name :
         {"--schedule", "--batch", "--steps", "--warmup", "--data", "--augment", "--precision",
          "--algorithms", "--side", "--workers", "--sweep", "--report", "--kernels", "--timeline"}) {
        if (app.was_given(name)) {
            throw examples::BadInput(std::string(name) +
                                     ": expected no --contact-sheet with it, which trains on nothing");
        }
    }
}

void check_together(const Options& options) {
    if (!options.synthetic() && options.sweep)
        throw examples::BadInput("--sweep: expected no --data DIR with it, since it is about random images");
    if (!options.synthetic() && options.side)
        throw examples::BadInput(
            "--side: expected no --data DIR with it, since digits have a side of their own");
    if (options.sweep && options.batch && *options.batch < smallest_of_sweep) {
        throw examples::BadInput("--sweep: expected a --batch of at least " +
                                 std::to_string(smallest_of_sweep) + " to end with, not \"" +
                                 std::to_string(*options.batch) + '"');
    }
    if (options.timelines.timed_batches() > 0 && options.sweep)
        throw examples::BadInput("--report, --kernels, --timeline: expected no --sweep with them, since they "
                                 "are about the trainings of one batch size");
    if (options.side && !std::has_single_bit(*options.side)) {
        throw examples::BadInput("--side: expected a power of two, not \"" + std::to_string(*options.side) +
                                 '"');
    }
}

} // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Trains a classifier on images that are augmented, each in its own way: on the CPU by "
        "the loader's workers, on the GPU in the training's stream (serial), in a stream of its own "
        "(overlapped), and as graphs. Tells what each costs, beside training and augmentation alone. "
        "With --data DIR it learns to name handwritten digits, with and without augmentation, overlapped "
        "unless --schedule says otherwise."};
    examples::add_common_options(app, options,
                                 {.batch = "32; 64 on digits; 4 on the CPU",
                                  .steps = "300; on digits 6,000; on random images on the CPU 5",
                                  .warmup =
                                      "enough for each slot to have been captured; on random images on the "
                                      "CPU 2"});
    examples::add_option(
        app, "--augment", "none|cpu|device|all",
        "where images are augmented; none is training alone (default: all; on digits none and device)",
        [&options](const std::string& text) {
            using Placements = std::vector<Placement>;
            options.placements =
                examples::named<Placements>("--augment", text,
                                            {{"none", Placements{Placement::none}},
                                             {"cpu", Placements{Placement::cpu}},
                                             {"device", Placements{Placement::device}},
                                             {"all", {Placement::none, Placement::cpu, Placement::device}}});
        });
    nn::add_gemm_options(app, options.gemm);
    examples::add_number(app, "--side", options.side, 16, 256,
                         "pixels of a random image's side, a power of two (default: 256)");
    examples::add_number(
        app, "--workers", options.workers, 0, 256,
        "threads that fill batches; 0: the main thread does (default: by the machine, 1 to 8 to "
        "augment on the CPU, 1 to 4 otherwise)");
    app.add_flag(
        "--sweep", options.sweep,
        "run batches of 8, 16, 32 … up to --batch, one size after another (default of --batch: 256); what "
        "--json names is written after each");
    examples::add_timeline_options(app, options.timelines);
    options.photographs = GPU_AUGMENT_PHOTOGRAPHS_DIR;
    examples::add_written_file(
        app, "--contact-sheet", options.contact_sheet,
        "instead of training, write photographs before and after augmentation, as PNG");
    examples::add_option(
        app, "--photographs", "DIR",
        "a folder of binary PPM files for --contact-sheet (default: examples/data/photographs)",
        [&options](const std::string& text) { options.photographs = text; });

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    check_contact_sheet(app, options);
    if (options.placements.empty()) {
        options.placements = {Placement::none, Placement::device};
        if (options.synthetic())
            options.placements.insert(options.placements.begin() + 1, Placement::cpu);
    }
    // What digits are for is accuracy, which is the same under every schedule.
    if (!options.synthetic() && !app.was_given("--schedule"))
        options.schedules = {sluice::Schedule::overlapped};
    check_together(options);
    return std::nullopt;
}

std::string to_string(Placement placement) {
    switch (placement) {
    case Placement::cpu:
        return "cpu";
    case Placement::device:
        return "device";
    case Placement::none:
        break;
    }
    return "none";
}

} // namespace gpu_augment
