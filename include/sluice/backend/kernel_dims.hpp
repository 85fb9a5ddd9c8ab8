/// \file
/// The sizes that a kernel is launched with.
#pragma once

#include <sluice/backend/config.hpp>

namespace sluice {

/// Sizes along up to three axes; a plain number is the first.
struct GridSize {
    /// Axes that are left out have size 1.
    constexpr GridSize(unsigned along_x = 1, unsigned along_y = 1, unsigned along_z = 1) noexcept
        : x(along_x), y(along_y), z(along_z) {}
    unsigned x; ///< Along the axis whose index changes fastest.
    unsigned y; ///< Along the second axis.
    unsigned z; ///< Along the third axis.
};

/// How a kernel is launched.
struct KernelDims {
    GridSize grid;       ///< Blocks.
    GridSize block;      ///< Threads of a block.
    unsigned shared = 0; ///< Bytes of dynamic shared memory of a block.
};

} // namespace sluice
