/// \file
/// The operations of reshape.hpp on CUDA streams. The sums before each row take one launch (up to 16,384 rows) or three,
/// moving the values another. A plain C++ compiler takes of it what is for Host streams.
#pragma once

#include <sluice/ragged/reshape.hpp>

#if SLUICE_HAS_KERNELS
#include <sluice/ragged/detail/order.cuh>
#include <sluice/ragged/detail/reshape.cuh>
#endif
