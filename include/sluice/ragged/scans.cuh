/// \file
/// The operations of scans.hpp on CUDA streams. A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/scans.hpp>

#if SLUICE_HAS_KERNELS
#include <sluice/ragged/detail/scans.cuh>
#endif
