#include <images/axis_weights.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>

#include <sluice/backend/error.hpp>

namespace images {
namespace {

constexpr std::int32_t one = 1 << AxisWeights::bits;

/// The inputs of one output, with real weights whose sum is 1.
struct Window {
    int first;
    std::vector<double> weights;
};

/// Operations and their order are Pillow's, as every rounding counts.
Window window_of(int output, int in, int out) {
    const double scale = static_cast<double>(in) / out;
    const double reach = std::max(scale, 1.0);
    const double inverse_reach = 1.0 / reach;
    const double centre = (output + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - reach + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + reach + 0.5), in);
    Window window{first, {}};
    double total = 0.0;
    for (int i = first; i < end; ++i) {
        const double distance = (i - centre + 0.5) * inverse_reach;
        window.weights.push_back(std::max(1.0 - std::abs(distance), 0.0));
        total += window.weights.back();
    }
    for (double& weight : window.weights)
        weight /= total;
    return window;
}

/// A weight of few bits with which every difference of two bytes gives what `weight` of 22 bits gives.
std::optional<std::int16_t> pair_weight_of(std::int32_t weight) {
    constexpr int dropped = AxisWeights::bits - AxisWeights::pair_bits;
    const auto agrees = [&](std::int32_t fewer) {
        for (int difference = -255; difference <= 255; ++difference) {
            const int expected = (difference * weight + one / 2) >> AxisWeights::bits;
            const int found =
                (difference * fewer + (1 << (AxisWeights::pair_bits - 1))) >> AxisWeights::pair_bits;
            if (found != expected)
                return false;
        }
        return true;
    };
    // The exact weight may lie on either side of a tie, and so must the one of fewer bits.
    const std::int32_t below = weight >> dropped;
    for (const std::int32_t fewer : {below, below + 1}) {
        if (fewer < (1 << AxisWeights::pair_bits) && agrees(fewer))
            return static_cast<std::int16_t>(fewer);
    }
    return std::nullopt;
}

/// All pair weights, or none.
std::vector<std::int16_t> pair_weights_of(const AxisWeights& axis) {
    std::vector<std::int16_t> result;
    if (axis.taps > 2)
        return result;
    for (std::size_t i = 0; i < axis.first.size(); ++i) {
        const auto begin = axis.weight.begin() + static_cast<std::ptrdiff_t>(i) * axis.taps;
        const std::int32_t second = axis.count[i] == 2 ? begin[1] : 0;
        const std::optional<std::int16_t> fewer = pair_weight_of(second);
        if (begin[0] + second != one || !fewer)
            return {};
        result.push_back(*fewer);
    }
    return result;
}

} // namespace

AxisWeights bilinear_weights(int in, int out) {
    constexpr int most = 1 << 20;
    if (in < 1 || out < 1 || in > most || out > most) {
        throw sluice::Error("an axis is to be resized from " + std::to_string(in) + " to " +
                            std::to_string(out) + " pixels; both must be 1 to " + std::to_string(most));
    }
    std::vector<Window> windows;
    std::size_t taps = 0;
    for (int i = 0; i < out; ++i) {
        windows.push_back(window_of(i, in, out));
        taps = std::max(taps, windows.back().weights.size());
    }
    AxisWeights axis;
    axis.in = in;
    axis.out = out;
    axis.taps = static_cast<int>(taps);
    for (const Window& window : windows) {
        axis.first.push_back(window.first);
        axis.count.push_back(static_cast<std::int32_t>(window.weights.size()));
        for (std::size_t j = 0; j < taps; ++j) {
            const double weight = j < window.weights.size() ? window.weights[j] : 0.0;
            axis.weight.push_back(static_cast<std::int32_t>(weight * one + 0.5));
        }
    }
    axis.pair_weight = pair_weights_of(axis);
    return axis;
}

detail::AxisTable::AxisTable(const AxisWeights& axis)
    : pairs(axis.has_pairs() && axis.in > 1), first(pairs ? 2 * axis.first.size() : 0),
      words((first + 2 * axis.first.size() + axis.weight.size() + 1) / 2 * 2) {}

void detail::append_table(const AxisWeights& axis, std::vector<std::int32_t>& words) {
    const AxisTable table(axis);
    const std::size_t end = words.size() + table.words;
    if (table.pairs) {
        for (std::size_t i = 0; i < axis.first.size(); ++i) {
            // The last input alone is the one behind the last but one, with all the weight.
            const bool last = axis.first[i] == axis.in - 1;
            const float weight =
                static_cast<float>(axis.pair_weight[i]) / static_cast<float>(1 << AxisWeights::pair_bits);
            words.push_back(last ? axis.in - 2 : axis.first[i]);
            words.push_back(std::bit_cast<std::int32_t>(last ? 1.0f : weight));
        }
    }
    for (const auto* values : {&axis.first, &axis.count, &axis.weight})
        words.insert(words.end(), values->begin(), values->end());
    words.resize(end);
}

} // namespace images
