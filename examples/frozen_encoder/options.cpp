#include <frozen_encoder/options.hpp>

#include <CLI/CLI.hpp>

#include <common/bad_input.hpp>
#include <common/files.hpp>

namespace frozen_encoder {

std::optional<int> parse(int argc, char** argv, Options& options) {
    CLI::App app{"Trains a decoder on the features of a frozen encoder, one stage of a pipeline each, and "
                 "measures what "
                 "overlapping them, and replaying them as graphs, gains. With --data DIR it learns to "
                 "segment handwritten digits."};
    examples::add_common_options(app, options,
                                 {.batch = "8", .steps = "100, or 1,500 on digits", .warmup = "10"});

    const auto add = [&app](const std::string& name, const std::string& type, const std::string& help,
                            auto assign) {
        app.add_option_function<std::string>(name, assign, help)->type_name(type);
    };
    const auto add_place = [&](const std::string& name, std::string& target, const std::string& help) {
        add(name, "FILE", help, [&target](const std::string& text) {
            examples::require_writable_place(text);
            target = text;
        });
    };
    add("--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
        [&options](const std::string& text) {
            if (text != "tf32" && text != "float32") {
                throw examples::BadInput("--precision: expected tf32 or float32, not \"" + text + '"');
            }
            options.precision = text == "tf32" ? nn::Precision::tf32 : nn::Precision::float32;
        });
    add("--encoder-steps", "N", "steps of training the encoder on classification first (default: 1,500)",
        [&options](const std::string& text) {
            options.encoder_steps =
                static_cast<int>(examples::parse_whole_number("--encoder-steps", text, 0, 1'000'000'000));
        });
    add("--workers", "N", "threads that fill batches; 0: the main thread does (default: 1)",
        [&options](const std::string& text) {
            options.workers = static_cast<int>(examples::parse_whole_number("--workers", text, 0, 256));
        });
    add("--load-encoder", "FILE", "take the encoder from a safetensors file instead of training it",
        [&options](const std::string& text) { options.load_encoder = text; });
    add_place("--save-encoder", options.save_encoder, "write the encoder to a safetensors file");
    add_place("--picture", options.picture,
              "write held-out images, labels and predictions side by side, as PNG (needs --data DIR)");

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    if (options.synthetic() && !options.picture.empty()) {
        throw examples::BadInput(
            "--picture: expected --data DIR with it, since random data has nothing to show");
    }
    return std::nullopt;
}

} // namespace frozen_encoder
