// Of the library sluice::compiled: the Cuda backend by all of its names.
#define SLUICE_COMPILES_CUDA
#include "backend.hpp"

SLUICE_ONE_KIND(cuda);

SLUICE_COMPILE_FOR(sluice::Cuda);
SLUICE_COMPILE_FOR(sluice::UncheckedCuda);
SLUICE_COMPILE_FOR(sluice::Checked<sluice::UncheckedCuda>);
#if !SLUICE_CHECKED
SLUICE_COMPILE_FOR(sluice::Checked<sluice::Cuda>);
#endif
