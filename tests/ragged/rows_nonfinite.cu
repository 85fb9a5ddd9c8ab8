// The same on CUDA devices, whose kernels need nvcc.
#include "ragged/rows_nonfinite.cpp"
