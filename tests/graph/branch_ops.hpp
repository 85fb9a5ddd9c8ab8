// Work that decides conditions and acts on them, the same on both backends: a task on a host stream, a kernel on
// a device's (control_flow_gpu.cu).
#pragma once

#include <sluice/backend/default.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph_builder.hpp>

namespace sluice::test::ops {

/// Decides for `*x < limit`.
inline void decide_below(host::Queue* stream, ConditionSetter setter, const unsigned* x, unsigned limit) {
    Host::enqueue(stream, [=] { setter.set(*x < limit ? 1 : 0); });
}
/// Decides for `*x` itself.
inline void decide(host::Queue* stream, ConditionSetter setter, const unsigned* x) {
    Host::enqueue(stream, [=] { setter.set(*x); });
}
/// *x = *x * factor + term
inline void multiply_add(host::Queue* stream, unsigned* x, unsigned factor, unsigned term) {
    Host::enqueue(stream, [=] { *x = *x * factor + term; });
}
/// *x += term and decides for `*x < limit`, but does nothing if it was decided for 0 already.
inline void add_guarded(host::Queue* stream, ConditionSetter setter, unsigned* x, unsigned term,
                        unsigned limit) {
    Host::enqueue(stream, [=] {
        if (setter.get() == 0)
            return;
        *x += term;
        setter.set(*x < limit ? 1 : 0);
    });
}

// The same as nodes of a graph that is built by hand.
using HostNodes = BasicGraphBuilder<Host>::Nodes;
inline BasicNode<Host> decide_below(HostGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                                    unsigned limit, const HostNodes& after = {}) {
    return builder.task([=] { setter.set(*x < limit ? 1 : 0); }, after);
}
inline BasicNode<Host> decide(HostGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                              const HostNodes& after = {}) {
    return builder.task([=] { setter.set(*x); }, after);
}
inline BasicNode<Host> multiply_add(HostGraphBuilder& builder, unsigned* x, unsigned factor, unsigned term,
                                    const HostNodes& after = {}) {
    return builder.task([=] { *x = *x * factor + term; }, after);
}

#if SLUICE_HAS_CUDA
using CudaNodes = BasicGraphBuilder<Cuda>::Nodes;
BasicNode<Cuda> decide_below(CudaGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                             unsigned limit, const CudaNodes& after = {});
BasicNode<Cuda> decide(CudaGraphBuilder& builder, ConditionSetter setter, const unsigned* x,
                       const CudaNodes& after = {});
BasicNode<Cuda> multiply_add(CudaGraphBuilder& builder, unsigned* x, unsigned factor, unsigned term,
                             const CudaNodes& after = {});

void decide_below(cudaStream_t stream, ConditionSetter setter, const unsigned* x, unsigned limit);
void decide(cudaStream_t stream, ConditionSetter setter, const unsigned* x);
void multiply_add(cudaStream_t stream, unsigned* x, unsigned factor, unsigned term);
void add_guarded(cudaStream_t stream, ConditionSetter setter, unsigned* x, unsigned term, unsigned limit);
#endif

} // namespace sluice::test::ops
