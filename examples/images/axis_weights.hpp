/// \file
/// The weights with which Pillow resizes one axis of an 8-bit image by `BILINEAR`, as integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace images {

/// Output i of an axis is `(sum of weight[i][j] * input[first[i] + j] + 2^21) >> 22`, for j from 0 to before `count[i]`. No
/// result needs clamping: weights are not negative, and their sum is 2^22 but for rounding.
///
/// Where no output has more than two inputs, the same bytes often come from fewer bits: with a and b the two inputs,
/// `a + (((b - a) * pair_weight[i] + 2^14) >> 15)`. `bilinear_weights` tries that for every difference of two bytes, and
/// gives no pair weights where one differs.
struct AxisWeights {
    static constexpr int bits = 22;
    static constexpr int pair_bits = 15;

    int in = 0;   ///< inputs
    int out = 0;  ///< outputs
    int taps = 0; ///< the most inputs of an output

    std::vector<std::int32_t> first;  ///< [out]
    std::vector<std::int32_t> count;  ///< [out]
    std::vector<std::int32_t> weight; ///< [out, taps], the rest of a row 0
    std::vector<std::int16_t>
        pair_weight; ///< [out], of the second input; empty where there is none that is exact

    bool has_pairs() const { return !pair_weight.empty(); }

    /// The second input of output `i` of an axis that has pairs; the last input where there is no second one.
    int second(int i) const {
        const int next = first[static_cast<std::size_t>(i)] + 1;
        return next < in ? next : in - 1;
    }
};

/// The weights from `in` pixels to `out`: triangles over the centres of the outputs, as wide as two inputs, or two outputs
/// where the axis shrinks. Throws `sluice::Error` unless both are 1 to 2^20.
AxisWeights bilinear_weights(int in, int out);

namespace detail {

/// An axis as a device's kernels read it, in words of 32 bits: where `pairs` is set, for each output a first input and, as a
/// float, the weight of the input behind it, of which both exist; then `first`, `count` and `weight`. As many words as `words`
/// says, which is even, so that tables behind each other keep pairs aligned.
struct AxisTable {
    explicit AxisTable(const AxisWeights& axis);

    bool pairs;
    std::size_t first; ///< where `first` begins; `count` and `weight` are behind it
    std::size_t words;
};

/// Appends the table of `axis` to `words`.
void append_table(const AxisWeights& axis, std::vector<std::int32_t>& words);

} // namespace detail

} // namespace images
