// The same on CUDA devices, whose kernels need nvcc.
#include <sluice/ragged/reshape.cuh>
#include <sluice/ragged/rows.cuh>

#include "hazards/ragged.cpp"
