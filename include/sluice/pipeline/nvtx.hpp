/// \file
/// Stages as NVTX ranges, for Nsight Systems.
///
/// Include this in one file of the program, or in several: from then on each stage of each pipeline shows
/// under its name, where it enqueues its work. Without the toolkit's NVTX headers, or with `SLUICE_HAS_NVTX=0` defined, it
/// does nothing.
///
/// Not part of `sluice.hpp`: NVTX's own headers would cost every file that includes it as much time to
/// compile as all of sluice does.
#pragma once

#include <sluice/pipeline/detail/core/range.hpp>

/// 1: NVTX's headers are there. Define it as 0 to do without them.
#if !defined(SLUICE_HAS_NVTX)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define SLUICE_HAS_NVTX 1
#else
#define SLUICE_HAS_NVTX 0
#endif
#endif

#if SLUICE_HAS_NVTX
#include <nvtx3/nvToolsExt.h>

namespace sluice::detail {

inline constexpr RangeListener nvtx_listener{
    [](const char* name) noexcept { (void)nvtxRangePushA(name); },
    []() noexcept { (void)nvtxRangePop(); },
};

/// True from the program's start on.
inline const bool nvtx_listens = [] {
    range_listener.store(&nvtx_listener, std::memory_order_release);
    return true;
}();

} // namespace sluice::detail
#endif
