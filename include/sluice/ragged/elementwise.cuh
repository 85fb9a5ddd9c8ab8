/// \file
/// The operations of elementwise.hpp on CUDA streams. A functor made of a lambda is a `__host__ __device__` or
/// `__device__` one. A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/elementwise.hpp>

#if SLUICE_HAS_KERNELS
#include <sluice/ragged/detail/elementwise.cuh>
#endif
