/// \file
/// What the runs of the experiment have in common in its report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <common/report.hpp>
#include <common/training.hpp>
#include <nn/layers/layer.hpp>

namespace gpu_augment {

/// A short name of a training's results, losses and weights: trainings of two calls of the program whose names differ
/// have other bits. G. Fowler's, L. Noll's and P. Vo's hash, over 32 bits at a time.
inline std::string name_of_results(const examples::Training& training,
                                   const std::vector<nn::NamedTensor>& weights) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    const auto add = [&](const std::vector<float>& values) {
        for (const float value : values) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            hash = (hash ^ bits) * 0x100000001B3u;
        }
    };
    add(training.losses);
    for (const nn::NamedTensor& tensor : weights)
        add(tensor.values);
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
    return text.data();
}

/// A run that is no training: `seconds` for `steps` steps of `part`.
inline examples::RunResult part_alone(const std::string& part, const std::string& place, std::size_t steps,
                                      double seconds) {
    examples::RunResult run;
    run.schedule = "serial";
    run.steps_per_second = static_cast<double>(steps) / seconds;
    run.step_microseconds = 1e6 * seconds / static_cast<double>(steps);
    run.loss_first = run.loss_last = std::numeric_limits<double>::quiet_NaN();
    run.extra.emplace_back("part", part);
    run.extra.emplace_back("augment", place);
    return run;
}

} // namespace gpu_augment
