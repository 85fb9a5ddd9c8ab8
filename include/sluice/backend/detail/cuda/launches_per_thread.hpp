// Where a kernel goes that is launched without a stream.
#pragma once

namespace sluice::detail {

/// Whether to the per-thread default stream. Not inline: it is this unit's.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
constexpr bool launches_per_thread = true;
#else
constexpr bool launches_per_thread = false;
#endif

} // namespace sluice::detail
