// Priorities, and whether a stream waits for the legacy default stream.
#include <algorithm>

#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/stream.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace backend_stream_options {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("a stream keeps the priority that it was made with", B, TestBackend) {
    const PriorityRange range = B::priorities();
    CHECK(range.greatest <= range.least);
    for (const int priority : {range.greatest, range.least}) {
        const BasicStream<B> stream{StreamOptions{.priority = priority}};
        CHECK(stream.priority() == priority);
        CHECK(stream.ref().priority() == priority);
    }
    CHECK(BasicStream<B>{}.priority() == 0);
}

#if defined(SLUICE_TEST_CUDA)

TEST_CASE("a priority beyond what the device offers is clamped") {
    const PriorityRange range = Cuda::priorities();
    CHECK(CudaStream{StreamOptions{.priority = range.greatest - 100}}.priority() == range.greatest);
    CHECK(CudaStream{StreamOptions{.priority = range.least + 100}}.priority() == range.least);
}

TEST_CASE("a stream is non-blocking unless it is asked to be") {
    unsigned flags = 0;
    const CudaStream stream;
    SLUICE_CUDA_CHECK(cudaStreamGetFlags(stream.get(), &flags));
    CHECK(flags == cudaStreamNonBlocking);

    const CudaStream blocking{StreamOptions{.blocking = true}};
    SLUICE_CUDA_CHECK(cudaStreamGetFlags(blocking.get(), &flags));
    CHECK(flags == cudaStreamDefault);
}

#else

TEST_CASE("the Host backend keeps the options as they were given") {
    CHECK(HostStream{StreamOptions{.priority = -7}}.priority() == -7);
    CHECK(HostStream{StreamOptions{.blocking = true}}.get()->options().blocking);
    CHECK_FALSE(HostStream{}.get()->options().blocking);
}

#endif

} // namespace backend_stream_options
