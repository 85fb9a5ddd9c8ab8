// Of the library sluice::compiled: the Host backend, and what does not depend on a backend.
#define SLUICE_COMPILES_COMMON
#include <sluice/compiled.cpp>
