/// \file
/// The backends that this build has, and the one that is meant when none is named.
#pragma once

#include <sluice/backend/concept.hpp>
#include <sluice/backend/config.hpp>
#include <sluice/backend/cuda.hpp>
#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/host.hpp>

namespace sluice {

static_assert(Backend<Host>);

#if SLUICE_HAS_CUDA
static_assert(GraphBackend<Cuda>);
/// The backend of types that name none, such as `Stream`: `Cuda` where it is compiled, otherwise `Host`.
using DefaultBackend = Cuda;
#else
using DefaultBackend = Host;
#endif

} // namespace sluice
