// Of the library sluice::compiled: the checker.
#define SLUICE_COMPILES_CHECKER
#include <sluice/compiled.cpp>
