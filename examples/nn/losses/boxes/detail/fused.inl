// Variants 4 and 5 of the masked mean: one kernel for all of the formula. The same for both backends.
#pragma once

#include <nn/elementwise/for_each.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>
#include <nn/losses/boxes/giou_loss.hpp>

namespace nn::detail {

/// A box's value, to be added up.
template <class Formula, class P, class U>
struct ComputedValue {
    const Box<P>* predictions;
    const Box<U>* targets;
    unsigned work;
    unsigned unused = 0; // in place of padding, which captures would take for changes
    SLUICE_HOST_DEVICE double operator()(std::int64_t i) const {
        return worked_value<Formula>(predictions[i], targets[i], work);
    }
};

/// A box's gradient, once the boxes are counted.
template <class Formula, class P, class U, class G, bool skips>
struct MaskedGradient {
    MaskArguments<P, U, G> all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        const bool real = all.mask[i] != 0;
        Box<G> gradient = zero_box<G>();
        if (!skips || real) {
            const double factor = gradient_factor(all.scale, *all.count > 1.0 ? *all.count : 1.0);
            value_and_gradient<Formula>(all.predictions[i], all.targets[i], factor, gradient);
        }
        all.gradient[i] = real ? gradient : zero_box<G>();
    }
};

template <class Formula, bool skips, class P, class U, class G, sluice::Backend B>
void run_fused(sluice::BasicStreamRef<B> stream, const MaskArguments<P, U, G>& arguments) {
    masked_mean<skips>(stream,
                       ComputedValue<Formula, P, U>{arguments.predictions, arguments.targets, arguments.work},
                       sums_of(arguments));
    if (arguments.gradient != nullptr) {
        for_each(stream, static_cast<std::size_t>(arguments.boxes),
                 MaskedGradient<Formula, P, U, G, skips>{arguments});
    }
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_masked(sluice::BasicStreamRef<B> stream, const MaskArguments<P, U, G>& arguments, Invalid invalid) {
    if (invalid == Invalid::skipped) {
        run_fused<Formula, true>(stream, arguments);
    } else {
        run_fused<Formula, false>(stream, arguments);
    }
}

} // namespace nn::detail
