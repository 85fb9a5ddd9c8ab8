// The runner of tests that need a device: without one it says so and exits with the code that CTest shows as
// a skipped test.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstdio>

int main(int argc, char** argv) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        std::printf("skipped: no CUDA device (%s)\n",
                    error == cudaSuccess ? "none found" : cudaGetErrorString(error));
        return SLUICE_SKIP_CODE;
    }
    doctest::Context context(argc, argv);
    return context.run();
}
