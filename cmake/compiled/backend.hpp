// Of the library sluice::compiled: what a backend's graphs by key, pipelines, sources and readbacks share.
#pragma once

#define SLUICE_COMPILES_BODIES
#include <sluice/backend/checked.hpp>
#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/readback.hpp>
#include <sluice/pipeline/source.hpp>

#include "one_kind.hpp"

#define SLUICE_COMPILE_FOR(...)                                                                              \
    template class sluice::detail::CaptureCore<__VA_ARGS__>;                                                 \
    template class sluice::detail::PipelineCore<__VA_ARGS__>;                                                \
    template struct sluice::detail::SourceSlot<__VA_ARGS__>;                                                 \
    template class sluice::detail::SourceLedger<__VA_ARGS__>;                                                \
    template class sluice::detail::SourceCore<__VA_ARGS__>;                                                  \
    template class sluice::detail::ReadbackState<__VA_ARGS__>
