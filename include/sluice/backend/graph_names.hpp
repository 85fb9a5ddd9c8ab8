/// \file
/// What owns and builds graphs, named for each backend that this build has. The headers in graph/ define it.
#pragma once

#include <sluice/backend/default.hpp>

namespace sluice {

template <GraphBackend B>
class BasicGraph;
template <GraphBackend B>
class BasicGraphExec;
template <GraphBackend B>
class BasicGraphBuilder;
template <GraphBackend B>
class BasicBuiltGraphExec;
template <GraphBackend B>
class BasicCondition;

/// Of the default backend.
using Graph = BasicGraph<DefaultBackend>;
/// Of the default backend.
using GraphExec = BasicGraphExec<DefaultBackend>;
/// Of the default backend.
using GraphBuilder = BasicGraphBuilder<DefaultBackend>;
/// Of the default backend.
using BuiltGraphExec = BasicBuiltGraphExec<DefaultBackend>;
/// Of the default backend.
using Condition = BasicCondition<DefaultBackend>;

/// Of the Host backend.
using HostGraph = BasicGraph<Host>;
/// Of the Host backend.
using HostGraphExec = BasicGraphExec<Host>;
/// Of the Host backend.
using HostGraphBuilder = BasicGraphBuilder<Host>;
/// Of the Host backend.
using HostBuiltGraphExec = BasicBuiltGraphExec<Host>;
/// Of the Host backend.
using HostCondition = BasicCondition<Host>;

#if SLUICE_HAS_CUDA
/// Of the Cuda backend.
using CudaGraph = BasicGraph<Cuda>;
/// Of the Cuda backend.
using CudaGraphExec = BasicGraphExec<Cuda>;
/// Of the Cuda backend.
using CudaGraphBuilder = BasicGraphBuilder<Cuda>;
/// Of the Cuda backend.
using CudaBuiltGraphExec = BasicBuiltGraphExec<Cuda>;
/// Of the Cuda backend.
using CudaCondition = BasicCondition<Cuda>;
#endif

} // namespace sluice
