/// \file
/// What is computed for one box, the same on both backends.
#pragma once

#include <cmath>

#include <nn/losses/boxes/detail/arguments.hpp>

namespace nn::detail {

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
