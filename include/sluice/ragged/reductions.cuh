/// \file
/// The operations of reductions.hpp on CUDA streams. A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/reductions.hpp>

#if SLUICE_HAS_KERNELS
#include <sluice/ragged/detail/reductions.cuh>
#endif
