#include <graph_replay/options.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

#include <common/bad_input.hpp>

namespace graph_replay {
namespace {

bool asks_for(const Options& options, sluice::Schedule schedule) {
    return std::find(options.schedules.begin(), options.schedules.end(), schedule) != options.schedules.end();
}

} // namespace

bool Options::one_by_one() const { return asks_for(*this, sluice::Schedule::serial); }
bool Options::as_graph() const { return asks_for(*this, sluice::Schedule::graphed); }

std::optional<int> parse(int argc, char** argv, Options& options) {
    // There is one stage, so nothing to overlap.
    options.schedules = {sluice::Schedule::serial, sluice::Schedule::graphed};
    CLI::App app{
        "Runs a step one launch at a time (serial) and as a graph (graphed), compares the results bit by "
        "bit, and measures what the graph gains; among the steps are a loop whose length the device "
        "decides and a number that changes from replay to replay."};
    examples::add_common_options(app, options, {.batch = "16", .steps = "100", .warmup = "10"});

    const auto add = [&app](const std::string& name, const std::string& type, const std::string& help,
                            auto assign) {
        app.add_option_function<std::string>(name, assign, help)->type_name(type);
    };
    const auto add_size = [&](const std::string& name, const std::string& help, std::size_t& target) {
        add(name, "N", help, [name, &target](const std::string& text) {
            target = static_cast<std::size_t>(examples::parse_whole_number(name, text, 1, 10'000'000));
        });
    };
    add("--part", "linear|chain|loop|rate|all", "which steps to run (default: all)",
        [&options](const std::string& text) {
            if (text != "linear" && text != "chain" && text != "loop" && text != "rate" && text != "all") {
                throw examples::BadInput("--part: expected linear, chain, loop, rate or all, not \"" + text +
                                         '"');
            }
            options.part = text;
        });
    add("--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
        [&options](const std::string& text) {
            if (text != "tf32" && text != "float32") {
                throw examples::BadInput("--precision: expected tf32 or float32, not \"" + text + '"');
            }
            options.precision = text == "tf32" ? nn::Precision::tf32 : nn::Precision::float32;
        });
    add_size("--inputs", "inputs of the linear model (default: 150,528)", options.inputs);
    add_size("--outputs", "outputs of the linear model (default: 1,000)", options.outputs);
    add("--chain", "N", "one chain of N kernels (default: three, of 10, 100 and 1,000)",
        [&options](const std::string& text) {
            options.chains = {
                static_cast<std::size_t>(examples::parse_whole_number("--chain", text, 1, 100'000))};
        });

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    if (!options.synthetic()) {
        throw examples::BadInput("--data: expected synthetic, not \"" + options.data +
                                 "\", since no step here reads images");
    }
    if (!options.one_by_one() && !options.as_graph()) {
        throw examples::BadInput(
            "--schedule: expected serial, graphed or all, since a single stage has nothing to overlap with");
    }
    return std::nullopt;
}

} // namespace graph_replay
