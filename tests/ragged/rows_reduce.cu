// The same on CUDA devices, whose kernels need nvcc.
#include "support/cccl_stream_ref.hpp"

#include "ragged/rows_reduce.cpp"
