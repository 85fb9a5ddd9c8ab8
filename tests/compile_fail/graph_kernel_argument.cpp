// A kernel node with an argument of another type than its kernel's parameter.
// EXPECT: an argument of a kernel node does not convert to its kernel's parameter
// AT-MOST: 1 error
#include <sluice/graph/graph_builder.hpp>

#if MISUSE
using Element = int;
#else
using Element = float;
#endif

void scale(float* numbers, float factor);

void build(sluice::DeviceSpan<Element, sluice::Cuda> numbers) {
    sluice::CudaGraphBuilder builder;
    builder.kernel({.grid = 1, .block = 128}, scale, {}, numbers.data(), 2.0f);
}
