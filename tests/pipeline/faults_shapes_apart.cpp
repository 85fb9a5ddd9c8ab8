// The same, beside streams that are no threads of the Host backend's: CPU stages run on threads there, as on a device.
#define SLUICE_TEST_APART
#include "pipeline/faults_shapes.cpp"
#undef SLUICE_TEST_APART
