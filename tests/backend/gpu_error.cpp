// Errors of a device's calls: reported at once, and forgotten once they have been thrown.
#include <cstdint>
#include <limits>

#include <sluice/backend/stream.hpp>

#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_gpu_error {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a wrong kind of copy is reported with call, name, file and line") {
    int here = 0;
    int there = 0;
    const int line = __LINE__ + 2;
    const auto error = caught_error(
        [&] { SLUICE_CUDA_CHECK(cudaMemcpy(&there, &here, sizeof here, static_cast<cudaMemcpyKind>(7))); });
    REQUIRE(error);
    CHECK(error->name() == "cudaErrorInvalidMemcpyDirection");
    CHECK(contains(error->call(), "cudaMemcpy(&there, &here, sizeof here"));
    CHECK(contains(error->what(), "gpu_error.cpp:" + std::to_string(line)));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    Cuda::check_launches();
}

TEST_CASE("a call of the backend names the runtime's function") {
    const auto error = caught_error([] { Cuda::fill_bytes(nullptr, 0, 16, cudaStreamPerThread); });
    REQUIRE(error);
    CHECK(error->name() == "cudaErrorInvalidValue");
    CHECK(contains(error->call(), "cudaMemsetAsync("));
    CHECK(contains(error->what(), "cuda/backend.inl:"));
}

TEST_CASE("a failed call leaves nothing behind that counts as alive") {
    const Alive before = alive_now<Cuda>();
    const auto error =
        caught_error([] { (void)Cuda::allocate_device(std::numeric_limits<std::size_t>::max() / 2); });
    REQUIRE(error);
    CHECK(alive_now<Cuda>() == before);
}

TEST_CASE("asking for something unfinished is not an error") {
    const CudaStream stream;
    SLUICE_CUDA_CHECK(cudaLaunchHostFunc(
        stream.get(), [](void*) {}, nullptr));
    while (!stream.is_done()) {
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    Cuda::check_launches();
}

} // namespace backend_gpu_error
