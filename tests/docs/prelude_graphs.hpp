// What the examples of docs/guide/graphs.md take for granted.
#pragma once

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <sluice/sluice.hpp>

namespace documents_graphs {

inline constexpr std::size_t count = 1024;

struct Sample {
    std::size_t size;
};
struct Model {
    void forward(sluice::StreamRef, const sluice::DeviceBuffer<float>&, sluice::DeviceBuffer<float>&,
                 std::size_t) {}
};
inline void step(sluice::StreamRef) {}

extern const sluice::Stream stream;
extern const sluice::HostStream host_stream;
extern std::vector<Sample> samples;
extern Model model;
extern int steps;
extern sluice::DeviceBuffer<float> input, output, weights;
extern sluice::PinnedBuffer<float> start, result;
extern float values[1];

#if defined(__CUDACC__)
__global__ void update(float* of, const float* rate) { of[threadIdx.x] -= rate[0]; }
__global__ void jacobi(sluice::PingPongView<float> x) { x.back()[threadIdx.x] = x.front()[threadIdx.x] / 2; }
__global__ void decide(sluice::PingPongView<float> x, sluice::ConditionSetter again) {
    again.set(x.front()[0] > 1);
}
__global__ void scale_kernel(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void smooth(float* x, float by) {
    sluice::wait_for_earlier_kernels();
    x[threadIdx.x] *= by;
    sluice::let_next_kernel_begin();
}
__global__ void append(float* x, std::size_t position) { x[threadIdx.x] = static_cast<float>(position); }
#endif

} // namespace documents_graphs
