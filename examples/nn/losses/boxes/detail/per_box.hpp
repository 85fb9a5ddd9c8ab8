/// \file
/// What the box losses' kernels and their CPU counterparts are given, and what they compute for one box: the same on both
/// backends.
#pragma once

#include <cmath>
#include <cstdint>

#include <nn/losses/boxes/giou.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/ragged/view.hpp>

namespace nn::detail {

/// Blocks that a mean is added up from, at most; a warp adds up theirs.
inline constexpr std::int64_t most_tiles = 1024;
inline constexpr std::int64_t most_light_tiles = 256; ///< of work that is done at once
/// Values that a block looks at in one go, one a thread; rows likewise.
inline constexpr std::int64_t values_at_once = 256;
inline constexpr std::int64_t rows_at_once = 8;

/// What divides a sum over `count` boxes.
SLUICE_HOST_DEVICE constexpr double divisor_of(std::int64_t count) {
    return count > 1 ? static_cast<double>(count) : 1.0;
}

/// What a gradient is multiplied by. In float and, on a device, without the last bit: with few boxes the division
/// would show in the kernel's time.
SLUICE_HOST_DEVICE inline double gradient_factor(float scale, double divisor) {
#if defined(__CUDA_ARCH__)
    return static_cast<double>(__fdividef(scale, static_cast<float>(divisor)));
#else
    return static_cast<double>(scale / static_cast<float>(divisor));
#endif
}

/// Padded predictions and ragged targets. Null for what is not wanted.
template <class P, class U, class G>
struct RowArguments {
    const Box<P>* predictions;
    std::int64_t rows; ///< of predictions
    std::int64_t width;
    sluice::RaggedView<const Box<U>> targets;
    Box<G>* gradient;
    float* mean;
    double* partials; ///< one a tile
    unsigned* ticket;
    float scale;
    unsigned work;
    std::int64_t rows_per_tile; ///< at most `rows_at_once`, or a multiple of that
};

/// Ragged predictions and targets.
template <class P, class U, class G>
struct ValueArguments {
    sluice::RaggedView<const Box<P>> predictions;
    sluice::RaggedView<const Box<U>> targets;
    Box<G>* gradient;
    float* mean;
    double* partials;
    unsigned* ticket;
    float scale;
    unsigned work;
};

/// Padded predictions and targets.
template <class P, class U, class G>
struct MaskArguments {
    const Box<P>* predictions;
    const Box<U>* targets;
    const std::uint8_t* mask;
    std::int64_t boxes;
    Box<G>* gradient;
    float* mean;
    double* partials; ///< `most_tiles` sums, then as many counts
    double* count;
    unsigned* ticket;
    float scale;
    unsigned work;
};

/// What a masked mean needs, whatever is added up.
struct MaskSums {
    const std::uint8_t* mask;
    std::int64_t boxes;
    float* mean; ///< may be null
    double* partials;
    double* count;
    unsigned* ticket;
};

/// The mean of `term(i)` where the mask is not 0, and the count of those. Each backend defines its own. `skips`: the term
/// is not computed where the mask is 0.
template <bool skips, class Term, sluice::Backend B>
void masked_mean(sluice::BasicStreamRef<B> stream, const Term& term, const MaskSums& sums);

template <class P, class U, class G>
MaskSums sums_of(const MaskArguments<P, U, G>& arguments) {
    return {arguments.mask,     arguments.boxes, arguments.mean,
            arguments.partials, arguments.count, arguments.ticket};
}

/// The intermediates of a mean that is computed step by step.
struct StepArguments {
    Box<float>* predictions;
    Box<float>* targets;
    Box<float>* gradient;
    Extents<float>* shared;
    Extents<float>* enclosing;
    float* prediction_area;
    float* target_area;
    float* intersection;
    float* united;
    float* enclosing_area;
    float* value;
};
inline constexpr std::size_t step_extents = 2;
inline constexpr std::size_t step_numbers = 6;

/// The formula's value, `work` times over: see `giou_mean_ragged`.
template <class Formula, class P, class U>
SLUICE_HOST_DEVICE double worked_value(const Box<P>& prediction, const Box<U>& target, unsigned work) {
    const Box<double> own = box_as<double>(prediction);
    const Box<double> other = box_as<double>(target);
    double sum = Formula{}(own, other);
    if (work == 1)
        return sum;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (unsigned k = 1; k < work; ++k) {
        const double moved = 0x1p-10 * static_cast<double>(k);
        sum += Formula{}(Box<double>{own.x1 + moved, own.y1, own.x2 + moved, own.y2}, other);
    }
    return sum / static_cast<double>(work);
}

/// Writes `factor` times the gradient, and returns the value.
template <class Formula, class P, class U, class G>
SLUICE_HOST_DEVICE double value_and_gradient(const Box<P>& prediction, const Box<U>& target, double factor,
                                             Box<G>& gradient) {
    Box<double> slope;
    const double value = Formula{}(box_as<double>(prediction), box_as<double>(target), slope);
    gradient =
        box_as<G>(Box<double>{factor * slope.x1, factor * slope.y1, factor * slope.x2, factor * slope.y2});
    return value;
}

/// The value of the pair of prediction `place` and target `i`; writes the prediction's gradient if it is asked for.
template <class Formula, bool with_gradient, class Arguments>
SLUICE_HOST_DEVICE double value_of_pair(const Arguments& all, std::int64_t place, std::int64_t i,
                                        double factor) {
    if constexpr (with_gradient) {
        return value_and_gradient<Formula>(all.predictions[place], all.targets[i], factor,
                                           all.gradient[place]);
    } else {
        return worked_value<Formula>(all.predictions[place], all.targets[i], all.work);
    }
}

template <class G>
SLUICE_HOST_DEVICE Box<G> zero_box() {
    return box_as<G>(Box<float>{0.0f, 0.0f, 0.0f, 0.0f});
}

} // namespace nn::detail
