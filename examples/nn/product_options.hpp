/// \file
/// What the programs can be told about matrix products.
#pragma once

#include <string>

#include <common/options.hpp>
#include <nn/products.hpp>

namespace nn {

/// How a GPU multiplies.
struct ProductSettings {
    Precision precision = Precision::tf32;
    Algorithms algorithms = Algorithms::heuristic;
};

/// Adds `--precision` and `--algorithms`, which write to `settings`. It must outlive the parsing.
inline void add_product_options(CLI::App& app, ProductSettings& settings) {
    examples::add_option(app, "--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
                         [&settings](const std::string& text) {
                             settings.precision = examples::named<Precision>(
                                 "--precision", text,
                                 {{"tf32", Precision::tf32}, {"float32", Precision::float32}});
                         });
    examples::add_option(app, "--algorithms", "heuristic|measured",
                         "whether a GPU's way to multiply is chosen by rule, or by trial when the program "
                         "starts, which may choose otherwise in another run (default: heuristic)",
                         [&settings](const std::string& text) {
                             settings.algorithms = examples::named<Algorithms>(
                                 "--algorithms", text,
                                 {{"heuristic", Algorithms::heuristic}, {"measured", Algorithms::measured}});
                         });
}

} // namespace nn
