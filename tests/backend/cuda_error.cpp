// How a failed CUDA call reads. Needs the toolkit's runtime and no device.
#include <string>

#include <sluice/backend/default.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

#if SLUICE_HAS_CUDA

namespace backend_cuda_error {

using namespace sluice;
using namespace sluice::test;

namespace {
cudaError_t refuse(int /*first*/, int /*second*/) { return cudaErrorInvalidValue; }
} // namespace

TEST_CASE("a failed call is reported with its text, the error's name and the place") {
    const int line = __LINE__ + 1;
    const auto error = caught_error([] { SLUICE_CUDA_CHECK(refuse(1, 2)); });
    REQUIRE(error);
    CHECK(error->call() == "refuse(1, 2)");
    CHECK(error->name() == "cudaErrorInvalidValue");
    CHECK(error->what() == "refuse(1, 2) failed: cudaErrorInvalidValue (invalid argument) at " +
                               std::string(__FILE__) + ":" + std::to_string(line));
}

TEST_CASE("a call that succeeds is no error, and is made once") {
    int calls = 0;
    const auto succeed = [&calls] {
        ++calls;
        return cudaSuccess;
    };
    SLUICE_CUDA_CHECK(succeed());
    CHECK(calls == 1);
}

TEST_CASE("the check is one statement") {
    if (SLUICE_HAS_CUDA == 1)
        SLUICE_CUDA_CHECK(cudaSuccess);
    else
        FAIL("not reached");
}

TEST_CASE("an error that has been thrown is not found again") {
    (void)text_of([] { SLUICE_CUDA_CHECK(cudaSetDevice(-1)); });
    const cudaError_t left = cudaPeekAtLastError();
    // Without a device, the runtime may go on saying that there is none; it must not repeat the other.
    CHECK(left != cudaErrorInvalidDevice);
}

TEST_CASE("a machine without devices has none, and says so") {
    int devices = 0;
    const cudaError_t state = cudaGetDeviceCount(&devices);
    (void)cudaGetLastError();
    if (state == cudaSuccess && devices > 0) {
        MESSAGE("this machine has a CUDA device: nothing to test here");
        return;
    }
    CHECK(Cuda::device_count() == 0);
    const auto error = caught_error([] { (void)Cuda::create_stream(StreamOptions{}); });
    REQUIRE(error);
    CHECK(error->name() == cudaGetErrorName(state));
    CHECK(contains(error->call(), "cudaStreamCreateWithPriority("));
    CHECK(contains(error->what(), "cuda/backend.inl:"));
    CHECK(Cuda::counts().streams.created == 0);
}

} // namespace backend_cuda_error

#endif
