/// \file
/// What most programs use, a layer a line. Not in it: <sluice/ragged.hpp>, <sluice/report.hpp>, <sluice/collective.hpp> and the
/// headers with kernels, which end in .cuh.
#pragma once

#include <sluice/backend.hpp>
#include <sluice/graph.hpp>
#include <sluice/memory.hpp>
#include <sluice/pipeline.hpp>
#include <sluice/random.hpp>
