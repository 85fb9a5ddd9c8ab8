// The backend that this program tests; see cmake/SluiceBackendTests.cmake.
#pragma once

#include <sluice/backend/default.hpp>

namespace sluice::test {

#if defined(SLUICE_TEST_CUDA)
using TestBackend = Cuda;
#else
using TestBackend = Host;
#endif

} // namespace sluice::test
