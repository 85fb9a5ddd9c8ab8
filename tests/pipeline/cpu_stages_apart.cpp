// The same, beside streams that are no threads of the Host backend's.
#define SLUICE_TEST_APART
#include "pipeline/cpu_stages.cpp"
