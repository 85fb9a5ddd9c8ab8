// What the examples of docs/guide/interop.md take for granted.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/sluice.hpp>

#if defined(__CUDACC__)
#include <thrust/device_vector.h>

namespace documents_interop {

inline constexpr int count = 1024;
using Batch = sluice::PinnedBuffer<float>;
struct Features {
    sluice::DeviceBuffer<float> values{count};
};
struct AnyBlas {
    void axpy(cudaStream_t, int, float, const float*, float*) {}
};
extern AnyBlas blas;
extern sluice::DeviceBuffer<float> sum;
extern Batch batch;
extern cudaStream_t mine;
extern const float* registered;
extern cudaGraph_t made_elsewhere;
cudaStream_t make_stream();
__global__ void report(const float*) {}

using Encode = sluice::Stage<void (*)(cudaStream_t, const Batch&, Features&)>;
extern Encode encode;
extern sluice::Pipeline<sluice::Stages<Encode, sluice::Stage<void (*)(cudaStream_t, const Features&)>>,
                        sluice::Slots<Features (*)(int)>>
    pipeline;

} // namespace documents_interop
#endif
