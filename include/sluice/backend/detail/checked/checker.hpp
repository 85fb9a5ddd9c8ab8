// The checker.
#pragma once

#include <sluice/backend/detail/checked/interface.hpp>

#if SLUICE_HAS_CHECKER_BODIES
#include <sluice/backend/detail/checked/state.hpp>

#include <sluice/backend/detail/checked/accesses.inl>
#include <sluice/backend/detail/checked/edges.inl>
#include <sluice/backend/detail/checked/findings.inl>
#include <sluice/backend/detail/checked/graphs.inl>
#include <sluice/backend/detail/checked/held.inl>
#include <sluice/backend/detail/checked/memory.inl>
#include <sluice/backend/detail/checked/pipelines.inl>
#include <sluice/backend/detail/checked/streams.inl>
#include <sluice/backend/detail/checked/stress_state.inl>
#endif
