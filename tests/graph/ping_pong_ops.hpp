// Iterations over two buffers, the same on both backends: a task on a host stream, a kernel on a device's
// (ping_pong_gpu.cu).
#pragma once

#include <cstddef>

#include <sluice/backend/default.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/ping_pong.hpp>

namespace sluice::test::ops {

/// What the neighbours of element `i` of `from` make of it. The ends wrap around.
SLUICE_HOST_DEVICE inline unsigned relaxed(const unsigned* from, std::size_t i, std::size_t count) {
    return from[(i + count - 1) % count] + 3 * from[(i + 1) % count] + from[i] + 1;
}

/// back = the relaxed front
inline void relax(host::Queue* stream, PingPongView<unsigned> x) {
    Host::enqueue(stream, [=] {
        for (std::size_t i = 0; i < x.size(); ++i)
            x.back()[i] = relaxed(x.front(), i, x.size());
    });
}
/// The same of plain pointers: to = the relaxed from
inline void relax(host::Queue* stream, const unsigned* from, unsigned* to, std::size_t count) {
    Host::enqueue(stream, [=] {
        for (std::size_t i = 0; i < count; ++i)
            to[i] = relaxed(from, i, count);
    });
}
/// Counts `*steps` down, swaps if `swaps`, and decides for another iteration while steps are left.
inline void count_down(host::Queue* stream, ConditionSetter setter, unsigned* steps, PingPongView<unsigned> x,
                       bool swaps) {
    Host::enqueue(stream, [=] {
        if (swaps)
            x.swap();
        setter.set(--*steps);
    });
}

#if SLUICE_HAS_CUDA
void relax(cudaStream_t stream, PingPongView<unsigned> x);
void relax(cudaStream_t stream, const unsigned* from, unsigned* to, std::size_t count);
void count_down(cudaStream_t stream, ConditionSetter setter, unsigned* steps, PingPongView<unsigned> x,
                bool swaps);
#endif

} // namespace sluice::test::ops
