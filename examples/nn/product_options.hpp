/// \file
/// What the programs can be told about matrix products.
#pragma once

#include <string>

#include <common/options.hpp>
#include <nn/products.hpp>

namespace nn {

/// How a GPU multiplies.
struct ProductChoice {
    Precision precision = Precision::tf32;
    Algorithms algorithms = Algorithms::heuristic;
};

/// Adds `--precision` and `--algorithms`, which write to `choice`. It must outlive the parsing.
inline void add_product_options(CLI::App& app, ProductChoice& choice) {
    examples::add_option(app, "--precision", "tf32|float32", "how a GPU multiplies (default: tf32)",
                         [&choice](const std::string& text) {
                             choice.precision = examples::named<Precision>(
                                 "--precision", text,
                                 {{"tf32", Precision::tf32}, {"float32", Precision::float32}});
                         });
    examples::add_option(app, "--algorithms", "heuristic|measured",
                         "whether a GPU's way to multiply is chosen by rule, or by trial when the program "
                         "starts, which may choose "
                         "otherwise in another run (default: heuristic)",
                         [&choice](const std::string& text) {
                             choice.algorithms = examples::named<Algorithms>(
                                 "--algorithms", text,
                                 {{"heuristic", Algorithms::heuristic}, {"measured", Algorithms::measured}});
                         });
}

} // namespace nn
