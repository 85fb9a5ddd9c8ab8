/// \file
/// Named ranges for profilers.
#pragma once

#include <sluice/backend/config.hpp>

#if !defined(SLUICE_HAS_NVTX)
#if SLUICE_HAS_CUDA && __has_include(<nvtx3/nvToolsExt.h>)
#define SLUICE_HAS_NVTX 1
#else
#define SLUICE_HAS_NVTX 0
#endif
#endif

#if SLUICE_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace sluice::detail {

/// Shows the scope under `name` in Nsight Systems; nothing where no profiler listens, or there is no NVTX.
class ProfilerRange {
public:
#if SLUICE_HAS_NVTX
    explicit ProfilerRange(const char* name) noexcept { (void)nvtxRangePushA(name); }
    ~ProfilerRange() { (void)nvtxRangePop(); }
#else
    explicit ProfilerRange(const char*) noexcept {}
    ~ProfilerRange() {}
#endif
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;
};

} // namespace sluice::detail
