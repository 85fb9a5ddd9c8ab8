// Variant 3 of the masked mean: one launch a step. The same for both backends.
#pragma once

#include <nn/elementwise/for_each.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>

namespace nn::detail {

template <class To, class From>
struct CastBoxes {
    const Box<From>* from;
    Box<To>* to;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { to[i] = box_as<To>(from[i]); }
};

struct BoxAreas {
    const Box<float>* boxes;
    float* areas;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { areas[i] = area(extents(boxes[i])); }
};

struct SharedExtents {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.shared[i] = shared_extents(all.predictions[i], all.targets[i]);
    }
};

template <class Formula>
struct IntersectionAreas {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.intersection[i] = intersection_area<Formula>(all.shared[i]);
    }
};

struct UnitedAreas {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.united[i] = all.prediction_area[i] + all.target_area[i] - all.intersection[i];
    }
};

struct EnclosingExtents {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.enclosing[i] = enclosing_extents(all.predictions[i], all.targets[i]);
    }
};

struct EnclosingAreas {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.enclosing_area[i] = area(all.enclosing[i]);
    }
};

template <class Formula>
struct Values {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        all.value[i] = Formula::value(all.intersection[i], all.united[i], all.enclosing_area[i]);
    }
};

/// The stored values, to be added up.
struct StoredValue {
    const float* value;
    SLUICE_HOST_DEVICE double operator()(std::int64_t i) const { return static_cast<double>(value[i]); }
};

/// Replaces the three areas by the mean's derivatives by them.
template <class Formula>
struct Slopes {
    StepArguments all;
    const std::uint8_t* mask;
    const double* count;
    float scale;
    float unused = 0; // in place of padding, which captures would take for changes
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        float by_intersection = all.intersection[i];
        float by_united = all.united[i];
        float by_enclosing = all.enclosing_area[i];
        Formula::slopes(by_intersection, by_united, by_enclosing);
        const float factor = scale / static_cast<float>(*count > 1.0 ? *count : 1.0);
        const bool real = mask[i] != 0;
        all.intersection[i] = real ? factor * by_intersection : 0.0f;
        all.united[i] = real ? factor * by_united : 0.0f;
        all.enclosing_area[i] = real ? factor * by_enclosing : 0.0f;
    }
};

struct OwnAreaGradient {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        Box<float> gradient{};
        if (all.united[i] != 0.0f)
            add_area_gradient(all.united[i], extents(all.predictions[i]), gradient);
        all.gradient[i] = gradient;
    }
};

struct EnclosingGradient {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        if (all.enclosing_area[i] == 0.0f) // also what padding holds, be it NaN
            return;
        Box<float> gradient = all.gradient[i];
        add_enclosing_gradient(all.enclosing_area[i], all.enclosing[i], all.predictions[i], all.targets[i],
                               gradient);
        all.gradient[i] = gradient;
    }
};

template <class Formula>
struct SharedGradient {
    StepArguments all;
    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        const float slope = all.intersection[i] - all.united[i];
        if (slope == 0.0f || !Formula::overlap(all.shared[i].width, all.shared[i].height))
            return;
        Box<float> gradient = all.gradient[i];
        add_shared_gradient(slope, all.shared[i], all.predictions[i], all.targets[i], gradient);
        all.gradient[i] = gradient;
    }
};

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_steps(sluice::BasicStreamRef<B> stream, const MaskArguments<P, U, G>& arguments,
               const StepArguments& all) {
    const auto count = static_cast<std::size_t>(arguments.boxes);
    const auto step = [&](const auto& functor) { for_each(stream, count, functor); };
    step(CastBoxes<float, P>{arguments.predictions, all.predictions});
    step(CastBoxes<float, U>{arguments.targets, all.targets});
    step(BoxAreas{all.predictions, all.prediction_area});
    step(BoxAreas{all.targets, all.target_area});
    step(SharedExtents{all});
    step(IntersectionAreas<Formula>{all});
    step(UnitedAreas{all});
    step(EnclosingExtents{all});
    step(EnclosingAreas{all});
    step(Values<Formula>{all});
    masked_mean<false>(stream, StoredValue{all.value}, sums_of(arguments));
    if (arguments.gradient == nullptr)
        return;
    step(Slopes<Formula>{all, arguments.mask, arguments.count, arguments.scale});
    step(OwnAreaGradient{all});
    step(EnclosingGradient{all});
    step(SharedGradient<Formula>{all});
    step(CastBoxes<G, float>{all.gradient, arguments.gradient});
}

} // namespace nn::detail
