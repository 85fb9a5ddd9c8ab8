/// \file
/// The arguments of the box losses' kernels and of their CPU counterparts.
#pragma once

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

} // namespace nn::detail
