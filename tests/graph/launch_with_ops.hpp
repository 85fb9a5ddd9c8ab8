// A kernel, the same on both backends: a function that a host stream calls, a kernel on a device's (launch_with_gpu.cu).
#pragma once

#include <cstddef>

#include <sluice/backend/default.hpp>

namespace sluice::test::ops {

/// to[i] = factor * from[i] + add
using MultiplyAdd = void (*)(unsigned* to, const unsigned* from, unsigned factor, unsigned short add,
                             std::size_t count);

#if defined(SLUICE_TEST_CUDA)
MultiplyAdd multiply_add();
#else
inline MultiplyAdd multiply_add() {
    return [](unsigned* to, const unsigned* from, unsigned factor, unsigned short add, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            to[i] = factor * from[i] + add;
    };
}
#endif

} // namespace sluice::test::ops
