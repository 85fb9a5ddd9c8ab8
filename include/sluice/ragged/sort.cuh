/// \file
/// The operations of sort.hpp on CUDA streams. A plain C++ compiler takes of it what is for Host streams.
///
/// A row of up to 32 values (16, of 8 bytes) is sorted by one thread in its registers (K. Batcher's network that merges
/// odd and even ones), or, where positions are wanted as well, by lanes that exchange theirs (his bitonic network); one
/// of up to 256 by a warp, one that fits into a tile by a block. Longer ones are sorted in chunks, which are then merged pair by
/// pair by the whole device (along merge paths: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012), in as
/// many launches as the longest row that there is room for would need.
#pragma once

#include <sluice/ragged/sort.hpp>

#if SLUICE_HAS_KERNELS
#include <sluice/ragged/detail/sort.cuh>
#endif
