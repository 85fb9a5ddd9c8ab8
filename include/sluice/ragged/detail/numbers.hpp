// Arithmetic that kernels and the host have in common.
#pragma once

#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice::ragged::detail {

SLUICE_HOST_DEVICE constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
SLUICE_HOST_DEVICE constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

/// A remainder's quotient, in 32 bits where that suffices, since devices are much slower in 64.
SLUICE_HOST_DEVICE inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
    if (((a | b) >> 32) == 0)
        return static_cast<std::int64_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
    return a / b;
}

} // namespace sluice::ragged::detail
