// A kernel that may begin early, the same on both backends: a function that a host stream calls, a kernel on a device's
// (launch_early_gpu.cu).
#pragma once

#include <cstddef>

#include <sluice/backend/launch.hpp>

namespace sluice::test::ops {

/// to[i] = factor * to[i] + from[i]
using Accumulate = void (*)(unsigned* to, const unsigned* from, unsigned short factor, std::size_t count);

#if defined(SLUICE_TEST_CUDA)
Accumulate accumulate();
#else
inline Accumulate accumulate() {
    return [](unsigned* to, const unsigned* from, unsigned short factor, std::size_t count) {
        wait_for_earlier_kernels();
        for (std::size_t i = 0; i < count; ++i)
            to[i] = factor * to[i] + from[i];
        let_next_kernel_begin();
    };
}
#endif

} // namespace sluice::test::ops
