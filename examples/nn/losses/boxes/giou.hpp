/// \file
/// Generalised intersection over union of a predicted box and its target, by two published formulas, each with its
/// gradient. After H. Rezatofighi et al.: "Generalized Intersection over Union", CVPR 2019.
///
/// A formula is a functor: `formula(prediction, target)` is its value, `formula(prediction, target, gradient)` also
/// writes the value's derivative by the prediction's corners. Boxes of float or double, in which it computes.
///
/// Both take any four numbers for a box. An inverted box has an area by the signs of its sides, as the formulas are
/// published. A NaN in either box makes the value and all of the gradient NaN; it touches no other box. Where two
/// edges meet, the gradient of the smaller (and of the greater) of them is shared equally, as PyTorch does.
#pragma once

#include <nn/losses/boxes/box.hpp>

namespace nn {

/// What the formulas share: `Formula` says when an intersection counts, and what it makes of three areas.
template <class Formula>
struct BoxFormulaOf {
    template <class Real>
    SLUICE_HOST_DEVICE Real operator()(const Box<Real>& prediction, const Box<Real>& target) const;
    template <class Real>
    SLUICE_HOST_DEVICE Real operator()(const Box<Real>& prediction, const Box<Real>& target,
                                       Box<Real>& gradient) const;

    /// From the areas of the intersection, of the union and of the enclosing box.
    template <class Real>
    SLUICE_HOST_DEVICE static Real value(Real intersection, Real united, Real enclosing) {
        return Formula::slopes(intersection, united, enclosing);
    }
};

/// The article's: intersection = (least right − greatest left)·(least bottom − greatest top), which two misses make
/// positive again; union = both areas − intersection; and with C the area of the smallest box around both,
/// `intersection / max(union, 1e-5) − (max(C, 1e-5) − union) / max(C, 1e-5)`. 1 for two equal boxes; to be maximised.
struct ArticleGiou : BoxFormulaOf<ArticleGiou> {
    static constexpr const char* name = "article";

    /// Whether the intersection of those extents counts.
    template <class Real>
    SLUICE_HOST_DEVICE static bool overlap(Real, Real) {
        return true;
    }
    /// The value's derivatives by the areas of the intersection, of the union and of the enclosing box, in place of them.
    /// Returns the value.
    template <class Real>
    SLUICE_HOST_DEVICE static Real slopes(Real& intersection, Real& united, Real& enclosing);
};

/// torchvision's `generalized_box_iou_loss`: the intersection is 0 unless both extents are positive; 1e-7 is added to
/// the denominators, `1 − (intersection / (union + 1e-7) − (C − union) / (C + 1e-7))`. 0 for two equal boxes; to be
/// minimised.
struct TorchvisionGiouLoss : BoxFormulaOf<TorchvisionGiouLoss> {
    static constexpr const char* name = "torchvision";

    /// As ArticleGiou's.
    template <class Real>
    SLUICE_HOST_DEVICE static bool overlap(Real width, Real height) {
        return width > Real(0) && height > Real(0);
    }
    template <class Real>
    SLUICE_HOST_DEVICE static Real slopes(Real& intersection, Real& united, Real& enclosing);
};

template <class T>
concept BoxFormula = std::is_same_v<T, ArticleGiou> || std::is_same_v<T, TorchvisionGiouLoss>;

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

template <class Real>
SLUICE_HOST_DEVICE Real lesser(Real a, Real b) {
    return b < a ? b : a;
}
template <class Real>
SLUICE_HOST_DEVICE Real greater(Real a, Real b) {
    return a < b ? b : a;
}
/// The derivative of `lesser(a, b)` by `a`; that of `greater(a, b)` is the rest to 1.
template <class Real>
SLUICE_HOST_DEVICE Real share_of_lesser(Real a, Real b) {
    return a < b ? Real(1) : (b < a ? Real(0) : Real(0.5));
}

/// Extents, of a box, of what two boxes share, or of the box around them.
template <class Real>
struct Extents {
    Real width;
    Real height;
};

template <class Real>
SLUICE_HOST_DEVICE Extents<Real> extents(const Box<Real>& box) {
    return {box.x2 - box.x1, box.y2 - box.y1};
}
template <class Real>
SLUICE_HOST_DEVICE Extents<Real> shared_extents(const Box<Real>& a, const Box<Real>& b) {
    return {lesser(a.x2, b.x2) - greater(a.x1, b.x1), lesser(a.y2, b.y2) - greater(a.y1, b.y1)};
}
template <class Real>
SLUICE_HOST_DEVICE Extents<Real> enclosing_extents(const Box<Real>& a, const Box<Real>& b) {
    return {greater(a.x2, b.x2) - lesser(a.x1, b.x1), greater(a.y2, b.y2) - lesser(a.y1, b.y1)};
}
/// The same from extents alone, in fewer steps.
template <class Real>
SLUICE_HOST_DEVICE Extents<Real> enclosing_extents(const Extents<Real>& a, const Extents<Real>& b,
                                                   const Extents<Real>& shared) {
    return {a.width + b.width - shared.width, a.height + b.height - shared.height};
}
template <class Real>
SLUICE_HOST_DEVICE Real area(const Extents<Real>& extents) {
    return extents.width * extents.height;
}
template <class Formula, class Real>
SLUICE_HOST_DEVICE Real intersection_area(const Extents<Real>& shared) {
    return Formula::overlap(shared.width, shared.height) ? area(shared) : Real(0);
}

/// 1 / `divisor`. In float64 on a device without the last bit, and for divisors of 1e-300 to 1e300 alone, in half the steps.
template <class Real>
SLUICE_HOST_DEVICE Real reciprocal(Real divisor) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<Real, double>) {
        double first = 0.0; // to 20 bits
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(first) : "d"(divisor));
        const double error = fma(-divisor, first, 1.0);
        return fma(first, fma(error, error, error), first);
    }
#endif
    return Real(1) / divisor;
}
/// Replaces both by their reciprocals; in float64 with one division, for products of both as above.
template <class Real>
SLUICE_HOST_DEVICE void invert(Real& a, Real& b) {
    if constexpr (std::is_same_v<Real, double>) {
        const double both = reciprocal(a * b);
        const double first = b * both;
        b = a * both;
        a = first;
    } else {
        a = reciprocal(a);
        b = reciprocal(b);
    }
}

/// Adds `slope` times the derivative of the box's own area to `gradient`.
template <class Real>
SLUICE_HOST_DEVICE void add_area_gradient(Real slope, const Extents<Real>& box, Box<Real>& gradient) {
    gradient.x1 -= slope * box.height;
    gradient.y1 -= slope * box.width;
    gradient.x2 += slope * box.height;
    gradient.y2 += slope * box.width;
}

/// Adds `slope` times the derivative of the shared area by the corners of `a`.
template <class Real>
SLUICE_HOST_DEVICE void add_shared_gradient(Real slope, const Extents<Real>& shared, const Box<Real>& a,
                                            const Box<Real>& b, Box<Real>& gradient) {
    gradient.x1 -= slope * shared.height * (Real(1) - share_of_lesser(a.x1, b.x1));
    gradient.y1 -= slope * shared.width * (Real(1) - share_of_lesser(a.y1, b.y1));
    gradient.x2 += slope * shared.height * share_of_lesser(a.x2, b.x2);
    gradient.y2 += slope * shared.width * share_of_lesser(a.y2, b.y2);
}

/// Adds `slope` times the derivative of the enclosing area by the corners of `a`.
template <class Real>
SLUICE_HOST_DEVICE void add_enclosing_gradient(Real slope, const Extents<Real>& enclosing, const Box<Real>& a,
                                               const Box<Real>& b, Box<Real>& gradient) {
    gradient.x1 -= slope * enclosing.height * share_of_lesser(a.x1, b.x1);
    gradient.y1 -= slope * enclosing.width * share_of_lesser(a.y1, b.y1);
    gradient.x2 += slope * enclosing.height * (Real(1) - share_of_lesser(a.x2, b.x2));
    gradient.y2 += slope * enclosing.width * (Real(1) - share_of_lesser(a.y2, b.y2));
}

} // namespace detail

template <class Formula>
template <class Real>
SLUICE_HOST_DEVICE Real BoxFormulaOf<Formula>::operator()(const Box<Real>& prediction,
                                                          const Box<Real>& target) const {
    using detail::area;
    const detail::Extents<Real> own = detail::extents(prediction);
    const detail::Extents<Real> other = detail::extents(target);
    const detail::Extents<Real> shared = detail::shared_extents(prediction, target);
    Real intersection = detail::intersection_area<Formula>(shared);
    Real united = area(own) + area(other) - intersection;
    Real enclosing = area(detail::enclosing_extents(own, other, shared));
    return Formula::slopes(intersection, united, enclosing);
}

template <class Formula>
template <class Real>
SLUICE_HOST_DEVICE Real BoxFormulaOf<Formula>::operator()(const Box<Real>& prediction,
                                                          const Box<Real>& target,
                                                          Box<Real>& gradient) const {
    using detail::area;
    const detail::Extents<Real> own = detail::extents(prediction);
    const detail::Extents<Real> other = detail::extents(target);
    const detail::Extents<Real> shared = detail::shared_extents(prediction, target);
    const detail::Extents<Real> enclosing = detail::enclosing_extents(own, other, shared);
    // First the areas, then the derivatives by them.
    Real by_intersection = detail::intersection_area<Formula>(shared);
    Real by_united = area(own) + area(other) - by_intersection;
    Real by_enclosing = area(enclosing);
    const Real value = Formula::slopes(by_intersection, by_united, by_enclosing);
    gradient = Box<Real>{};
    detail::add_area_gradient(by_united, own, gradient);
    detail::add_enclosing_gradient(by_enclosing, enclosing, prediction, target, gradient);
    if (Formula::overlap(shared.width, shared.height))
        detail::add_shared_gradient(by_intersection - by_united, shared, prediction, target, gradient);
    return value;
}

template <class Real>
SLUICE_HOST_DEVICE Real ArticleGiou::slopes(Real& intersection, Real& united, Real& enclosing) {
    constexpr Real least = Real(1e-5);
    // So compared that a NaN stays one.
    const bool united_held = united < least;
    const bool enclosing_held = enclosing < least;
    const Real divisor = enclosing_held ? least : enclosing;
    Real by_united = united_held ? least : united;
    Real by_enclosing = divisor;
    detail::invert(by_united, by_enclosing);
    const Real iou = intersection * by_united;
    const Real value = iou - (divisor - united) * by_enclosing;
    intersection = by_united;
    enclosing = enclosing_held ? Real(0) : -united * by_enclosing * by_enclosing;
    united = (united_held ? Real(0) : -iou * by_united) + by_enclosing;
    return value;
}

template <class Real>
SLUICE_HOST_DEVICE Real TorchvisionGiouLoss::slopes(Real& intersection, Real& united, Real& enclosing) {
    constexpr Real added = Real(1e-7);
    Real by_united = united + added;
    Real by_enclosing = enclosing + added;
    detail::invert(by_united, by_enclosing);
    const Real iou = intersection * by_united;
    const Real value = Real(1) - (iou - (enclosing - united) * by_enclosing);
    intersection = -by_united;
    enclosing = (united + added) * by_enclosing * by_enclosing;
    united = iou * by_united - by_enclosing;
    return value;
}

} // namespace nn
