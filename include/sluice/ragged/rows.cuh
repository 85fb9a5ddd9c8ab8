/// \file
/// The operations of rows.hpp on CUDA streams. A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/elementwise.cuh>
#include <sluice/ragged/reductions.cuh>
#include <sluice/ragged/rows.hpp>
#include <sluice/ragged/scans.cuh>
#include <sluice/ragged/sort.cuh>
