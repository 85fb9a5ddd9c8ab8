#include <graph_replay/options.hpp>

#include <common/bad_input.hpp>

namespace graph_replay {
std::optional<int> parse(int argc, char** argv, Options& options) {
    // There is one stage, so nothing to overlap.
    options.schedules = {sluice::Schedule::serial, sluice::Schedule::graphed};
    examples::CommandLine app{
        "Runs a step one launch at a time (serial) and as a graph (graphed), compares the results bit by "
        "bit, and measures what the graph gains; among the steps are a loop whose length the device "
        "decides and a number that changes from replay to replay."};
    examples::add_common_options(app, options, {.batch = "16", .steps = "100", .warmup = "10"});

    examples::add_option(app, "--part", "linear|chain|loop|rate|all", "which steps to run (default: all)",
                         [&options](const std::string& text) {
                             options.part = examples::named<const char*>("--part", text,
                                                                         {{"linear", "linear"},
                                                                          {"chain", "chain"},
                                                                          {"loop", "loop"},
                                                                          {"rate", "rate"},
                                                                          {"all", "all"}});
                         });
    examples::add_option(app, "--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
                         [&options](const std::string& text) {
                             options.precision = examples::named<nn::Precision>(
                                 "--precision", text,
                                 {{"tf32", nn::Precision::tf32}, {"float32", nn::Precision::float32}});
                         });
    examples::add_number(app, "--inputs", options.inputs, 1, 10'000'000,
                         "inputs of the linear model (default: 150,528)");
    examples::add_number(app, "--outputs", options.outputs, 1, 10'000'000,
                         "outputs of the linear model (default: 1,000)");
    examples::add_option(app, "--chain", "N", "one chain of N kernels (default: three, of 10, 100 and 1,000)",
                         [&options](const std::string& text) {
                             options.chains = {static_cast<std::size_t>(
                                 examples::parse_whole_number("--chain", text, 1, 100'000))};
                         });
    examples::add_timeline_options(app, options.timelines, false);

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    if (!options.synthetic()) {
        throw examples::BadInput("--data: expected synthetic, not \"" + options.data +
                                 "\", since no step here reads images");
    }
    examples::require_way_of_single_stage(options);
    for (const char* name : {"--inputs", "--outputs"})
        examples::require_part(app, name, "--part linear", options.wants("linear"));
    for (const char* name : {"--batch", "--precision"}) {
        examples::require_part(app, name, "--part linear and rate",
                               options.wants("linear") || options.wants("rate"));
    }
    examples::require_part(app, "--chain", "--part chain", options.wants("chain"));
    return std::nullopt;
}

} // namespace graph_replay
