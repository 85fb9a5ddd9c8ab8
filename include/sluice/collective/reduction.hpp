/// \file
/// How ranks' elements are put together.
#pragma once

#include <sluice/backend/config.hpp>

namespace sluice {

/// What a reduction makes of the ranks' elements at one place. On the Host backend, sums are made in the order of the
/// ranks, so that the same number of ranks gives the same bits. A minimum or maximum leaves NaN out, as `std::fmin` does, unless
/// all ranks' are, and of zeros -0 is the less, whichever ranks have them.
enum class Reduction {
    sum,
    average, ///< the sum over the number of ranks; of floating-point elements only
    minimum,
    maximum,
};

/// What a type of 16 bits holds.
enum class Float16Format {
    none,     ///< no floating-point number that collectives know
    float16,  ///< IEEE 754's binary16
    bfloat16, ///< the upper half of a float
};

/// Says of a type of one's own what it holds, for collectives: specialise it beside the type. Sums of such elements are made in
/// float and rounded once on the Host backend, and as NCCL does on CUDA. `__half` and `__nv_bfloat16` are known where NCCL is.
template <class T>
inline constexpr Float16Format float16_format = Float16Format::none;

/// `sum`, `average`, `minimum` or `maximum`.
constexpr const char* to_string(Reduction reduction) noexcept {
    switch (reduction) {
    case Reduction::average:
        return "average";
    case Reduction::minimum:
        return "minimum";
    case Reduction::maximum:
        return "maximum";
    case Reduction::sum:
        break;
    }
    return "sum";
}

} // namespace sluice
