/// \file
/// All operations that keep to the rows they are given: reductions, softmax and sums, sorting, functions of each
/// value. For Host streams; rows.cuh adds CUDA streams.
#pragma once

#include <sluice/ragged/elementwise.hpp>
#include <sluice/ragged/reductions.hpp>
#include <sluice/ragged/scans.hpp>
#include <sluice/ragged/sort.hpp>
