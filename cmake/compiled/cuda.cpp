// Of the library sluice::compiled: the Cuda backend.
#define SLUICE_COMPILES_CUDA
#include <sluice/compiled.cpp>
