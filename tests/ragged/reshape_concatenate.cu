// The same on CUDA devices, whose kernels need nvcc.
#include "ragged/reshape_concatenate.cpp"
