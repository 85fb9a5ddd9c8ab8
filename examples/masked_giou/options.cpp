#include <masked_giou/options.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <common/bad_input.hpp>
#include <common/files.hpp>

namespace masked_giou {
namespace {

bool has(const Options& options, sluice::Schedule schedule) {
    return std::find(options.schedules.begin(), options.schedules.end(), schedule) != options.schedules.end();
}

/// The value that `text` names, of those that `option` takes.
template <class T, std::size_t N>
T named(const std::string& option, const std::string& text,
        const std::array<std::pair<const char*, T>, N>& names) {
    std::string expected;
    for (std::size_t i = 0; i < N; ++i) {
        if (text == names[i].first)
            return names[i].second;
        expected += i == 0 ? "" : (i + 1 < N ? ", " : " or ");
        expected += names[i].first;
    }
    throw examples::BadInput(option + ": expected " + expected + ", not \"" + text + '"');
}

void check_together(const Options& options) {
    if (options.part == "train" && options.synthetic())
        throw examples::BadInput("--part train: expected --data DIR with it, since it learns to find digits");
    if (options.part != "train" && options.part != "all" && !options.synthetic()) {
        throw examples::BadInput("--data: expected synthetic for --part " + options.part + ", not \"" +
                                 options.data + "\", since only training looks at images");
    }
    if (!options.picture.empty() && options.synthetic()) {
        throw examples::BadInput(
            "--picture: expected --data DIR with it, since random data has nothing to show");
    }
    if (!options.wants("train") && !options.one_by_one() && !options.as_graph()) {
        throw examples::BadInput("--schedule: expected serial, graphed or all, since a single stage has "
                                 "nothing to overlap with");
    }
}

} // namespace

bool Options::one_by_one() const { return has(*this, sluice::Schedule::serial); }
bool Options::as_graph() const { return has(*this, sluice::Schedule::graphed); }

bool Options::wants(const char* name) const {
    if (part != "all")
        return part == name;
    return (std::string(name) == "train") != synthetic();
}

std::optional<int> parse(int argc, char** argv, Options& options) {
    CLI::App app{
        "Generalised intersection over union of predicted boxes, of which most are padding: the loss "
        "in six ways, with the copy of targets that each needs; the work per box at which skipping "
        "the padding pays; a detector's forward pass. With --data DIR the detector learns to find "
        "handwritten digits."};
    examples::add_common_options(
        app, options,
        {.batch = "1,024 for losses; other parts: what the backend does in a moment, or 32 on digits",
         .steps = "20 to 100 on a GPU, fewer on the processor; on digits 20,000, or 1,000",
         .warmup = "10, or fewer"});

    const auto add = [&app](const std::string& name, const std::string& type, const std::string& help,
                            auto assign) {
        app.add_option_function<std::string>(name, assign, help)->type_name(type);
    };
    const auto add_size = [&](const std::string& name, const std::string& help, std::int64_t most,
                              std::optional<std::size_t>& target) {
        add(name, "N", help, [name, most, &target](const std::string& text) {
            target = static_cast<std::size_t>(examples::parse_whole_number(name, text, 1, most));
        });
    };
    add("--part", "losses|work|forward|train|all",
        "what to run; all is training with --data DIR, and the others without (default: all)",
        [&options](const std::string& text) {
            using Name = std::pair<const char*, const char*>;
            options.part =
                named("--part", text,
                      std::array{Name{"losses", "losses"}, Name{"work", "work"}, Name{"forward", "forward"},
                                 Name{"train", "train"}, Name{"all", "all"}});
        });
    add("--formula", "article|torchvision",
        "of the losses; training follows torchvision's (default: article)",
        [&options](const std::string& text) {
            using Name = std::pair<const char*, Formula>;
            options.formula = named(
                "--formula", text,
                std::array{Name{"article", Formula::article}, Name{"torchvision", Formula::torchvision}});
        });
    add("--predictions", "float32|bfloat16|float16", "type of the losses' predictions (default: float32)",
        [&options](const std::string& text) {
            using Name = std::pair<const char*, PredictionType>;
            options.predictions = named("--predictions", text,
                                        std::array{Name{"float32", PredictionType::float32},
                                                   Name{"bfloat16", PredictionType::bfloat16},
                                                   Name{"float16", PredictionType::float16}});
        });
    add("--precision", "bfloat16|tf32|float32",
        "how a GPU multiplies (default: bfloat16 for the forward pass, tf32 for training)",
        [&options](const std::string& text) {
            using Name = std::pair<const char*, nn::Precision>;
            options.precision =
                named("--precision", text,
                      std::array{Name{"bfloat16", nn::Precision::bfloat16}, Name{"tf32", nn::Precision::tf32},
                                 Name{"float32", nn::Precision::float32}});
        });
    add_size("--boxes",
             "boxes predicted for an image, at most 256 (default: 256; fewer for work on the processor)", 256,
             options.boxes);
    add_size("--side", "pixels of an image's side in the forward pass (default: 256, or 64 on the processor)",
             4096, options.side);
    add_size("--hidden",
             "features between the detector's linear layers (default: 16,384 in the forward pass, or 256)",
             1 << 20, options.hidden);
    add_size("--most-work",
             "repetitions of the formula a box, at most (default: 4,096, or 64 on the processor)", 1 << 20,
             options.most_work);
    add("--workers", "N", "threads that compose and pack batches; 0: the main thread does (default: 1)",
        [&options](const std::string& text) {
            options.workers = static_cast<int>(examples::parse_whole_number("--workers", text, 0, 256));
        });
    add("--picture", "FILE", "write held-out canvases with true and found boxes, as PNG (needs --data DIR)",
        [&options](const std::string& text) {
            examples::require_writable_place(text);
            options.picture = text;
        });

    if (const auto code = examples::parse_or_exit_code(app, argc, argv))
        return code;
    check_together(options);
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
