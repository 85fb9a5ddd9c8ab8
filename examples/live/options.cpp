#include <live/options.hpp>

#include <common/bad_input.hpp>

namespace live {

std::optional<int> parse(int argc, char** argv, Options& options) {
    examples::CommandLine app{
        "Classifies what several cameras see, live: JPEG photographs at fixed rates, decoded, resized and "
        "normalised, ResNet-18, the best classes of each frame into a file. Ctrl-C, or SIGTERM, ends it, and "
        "loses no "
        "finished frame."};
    examples::add_run_options(app, options, "overlapped");
    options.schedules = {sluice::Schedule::overlapped};
    options.photographs = LIVE_DATA_DIR;
    examples::add_number(app, "--cameras", options.cameras, 1, 64, "how many (default: 4)");
    examples::add_number(app, "--rate", options.rate, 0, 1'000'000,
                         "frames a second of each; 0: one whenever one is taken (default: 30)");
    examples::add_number(app, "--seconds", options.seconds, 1, 1'000'000,
                         "that the cameras run (default: 10)");
    examples::add_number(app, "--frames", options.frames, 1, std::int64_t{1} << 40,
                         "of each camera, instead of --seconds");
    examples::add_option(app, "--data", "DIR",
                         "a folder of photographs, *.jpg, which each camera plays in turn (default: "
                         "examples/data/photographs)",
                         [&options](const std::string& text) { options.photographs = text; });
    examples::add_option(app, "--decoder", "cpu|gpu",
                         "libjpeg-turbo or nvJPEG (default: cpu where the build has it)",
                         [&options](const std::string& text) {
                             options.decoder = examples::named<DecoderKind>(
                                 "--decoder", text, {{"cpu", DecoderKind::cpu}, {"gpu", DecoderKind::gpu}});
                         });
    examples::add_number(app, "--in-flight", options.in_flight, 1, 32,
                         "frames that are under way, at most (default: 2)");
    examples::add_number(app, "--image", options.image, 32, 1024,
                         "side of the network's images (default: 224; on the CPU 64)");
    examples::add_number(app, "--channels", options.channels, 8, 64,
                         "of the network's first stage (default: 64; on the CPU 8)");
    examples::add_number(app, "--best", options.best, 1, 1000,
                         "classes that are written of a frame (default: 3)");
    examples::add_written_file(app, "--output", options.output,
                               "write the results of all runs as they come, a line of JSON each");
    examples::add_timeline_options(app, options.timelines, false);

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    if (options.rate == 0 && !options.frames)
        throw examples::BadInput("--rate: expected --frames with 0, since no clock ends the cameras then");
    if (options.frames && app.was_given("--seconds"))
        throw examples::BadInput("--seconds: expected without --frames, which says when the cameras end");
    return std::nullopt;
}

} // namespace live
