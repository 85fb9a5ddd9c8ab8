// To and from CCCL's cuda::stream_ref, which a plain C++ compiler may not find: hence compiled by nvcc. Calls
// no device.
#include "support/cccl_stream_ref.hpp"
#include "support/doctest.hpp"

#if SLUICE_TEST_HAS_CCCL_STREAM_REF
#include <type_traits>

#include <sluice/backend/stream.hpp>

namespace backend_stream_ref {

using namespace sluice;

static_assert(std::is_convertible_v<CudaStreamRef, cuda::stream_ref>);
static_assert(std::is_constructible_v<cuda::stream_ref, CudaStreamRef>);
static_assert(std::is_convertible_v<CudaStream, cuda::stream_ref>);
static_assert(std::is_convertible_v<cuda::stream_ref, CudaStreamRef>);
static_assert(!std::is_convertible_v<cuda::stream_ref, HostStreamRef>);
static_assert(!std::is_convertible_v<HostStreamRef, cuda::stream_ref>);

namespace {
cudaStream_t taken_as_cccl(cuda::stream_ref stream) { return stream.get(); }
cudaStream_t taken_as_sluice(CudaStreamRef stream) { return stream.get(); }
} // namespace

TEST_CASE("cuda::stream_ref goes in and out") {
    int somewhere = 0; // no stream, but nothing here calls CUDA
    const auto native = reinterpret_cast<cudaStream_t>(&somewhere);

    const CudaStreamRef ours{native};
    const cuda::stream_ref theirs{native};
    CHECK(taken_as_cccl(ours) == native);
    CHECK(taken_as_sluice(theirs) == native);

    const CudaStreamRef back = theirs;
    CHECK(back == ours);
    CHECK(back == native);
    const cuda::stream_ref forth = ours;
    CHECK(forth.get() == native);
    CHECK(cuda::stream_ref{ours}.get() == native);
}

} // namespace backend_stream_ref

#endif
