/// \file
/// All of sluice that needs no kernel, a layer a line.
#pragma once

#include <sluice/backend.hpp>
#include <sluice/graph.hpp>
#include <sluice/memory.hpp>
#include <sluice/pipeline.hpp>
#include <sluice/ragged.hpp>
#include <sluice/random.hpp>
