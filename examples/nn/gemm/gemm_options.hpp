/// \file
/// The programs' options for matrix products.
#pragma once

#include <string>

#include <common/options.hpp>
#include <nn/gemm/gemm.hpp>

namespace nn {

/// How a GPU multiplies.
struct GemmSettings {
    Precision precision = Precision::tf32;
    Algorithms algorithms = Algorithms::heuristic;

    /// The precision of a network that is trained, which keeps its weights in float32.
    Precision of_trained() const { return precision == Precision::bfloat16 ? Precision::tf32 : precision; }
};

/// The name of a precision, as an option and in reports.
inline std::string name_of(Precision precision) {
    switch (precision) {
    case Precision::float32:
        return "float32";
    case Precision::tf32:
        return "tf32";
    case Precision::bfloat16:
        return "bfloat16";
    }
    return "";
}

/// Whether a program has a network that can keep its weights in bfloat16.
enum class Rounding { none, of_frozen_weights };

/// Adds `--precision` and `--algorithms`, which write to `settings`. It must outlive the parsing.
inline void add_gemm_options(examples::CommandLine& app, GemmSettings& settings,
                             Rounding rounding = Rounding::none) {
    if (rounding == Rounding::of_frozen_weights) {
        examples::add_option(app, "--precision", "tf32|float32|bfloat16",
                             "how a GPU multiplies (default: tf32); bfloat16, on the CPU too: a frozen "
                             "network's weights and maps are stored in it, all else is tf32",
                             [&settings](const std::string& text) {
                                 settings.precision =
                                     examples::named<Precision>("--precision", text,
                                                                {{"tf32", Precision::tf32},
                                                                 {"float32", Precision::float32},
                                                                 {"bfloat16", Precision::bfloat16}});
                             });
    } else {
        examples::add_option(app, "--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
                             [&settings](const std::string& text) {
                                 settings.precision = examples::named<Precision>(
                                     "--precision", text,
                                     {{"tf32", Precision::tf32}, {"float32", Precision::float32}});
                             });
    }
    examples::add_option(app, "--algorithms", "heuristic|autotune",
                         "whether a GPU's way to multiply is chosen by rule, or by trial when the program "
                         "starts, which may choose otherwise in another run (default: heuristic)",
                         [&settings](const std::string& text) {
                             settings.algorithms = examples::named<Algorithms>(
                                 "--algorithms", text,
                                 {{"heuristic", Algorithms::heuristic}, {"autotune", Algorithms::autotune}});
                         });
}

} // namespace nn
