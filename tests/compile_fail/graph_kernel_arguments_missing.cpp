// A kernel node with fewer arguments than its kernel has parameters, after instantiation.
// EXPECT: a kernel node needs as many arguments as its kernel has parameters
// AT-MOST: 1 error
#include <sluice/graph/graph_builder.hpp>

void scale(float* numbers, float factor);

void build(sluice::CudaStreamRef stream, sluice::DeviceSpan<float, sluice::Cuda> numbers) {
    sluice::CudaGraphBuilder builder;
    const auto scaled = builder.kernel({.grid = 1, .block = 128}, scale, {}, numbers.data(), 2.0f);
    auto executable = builder.instantiate();
#if MISUSE
    executable.set(scaled, numbers.data());
#else
    executable.set(scaled, numbers.data(), 3.0f);
#endif
    executable.launch(stream);
}
