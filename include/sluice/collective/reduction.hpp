/// \file
/// How ranks' elements are put together.
#pragma once

#include <sluice/backend/config.hpp>

namespace sluice {

/// What a reduction makes of the ranks' elements at one place. On the Host backend, sums are made in the order of the
/// ranks, so that the same number of ranks gives the same bits.
enum class Reduction {
    sum,
    average, ///< the sum over the number of ranks; of floating-point elements only
    minimum,
    maximum,
};

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
