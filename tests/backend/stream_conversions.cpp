// What converts to a stream reference and what does not. All of it is checked when this file is compiled.
#include <cstddef>
#include <type_traits>

#include <sluice/backend/stream.hpp>

#include "support/doctest.hpp"

namespace backend_stream_conversions {

using namespace sluice;

namespace {

template <class B>
constexpr bool converts_as_documented() {
    using Ref = BasicStreamRef<B>;
    using Owner = BasicStream<B>;
    using Native = typename B::NativeStream;

    static_assert(std::is_convertible_v<Native, Ref>);
    static_assert(std::is_convertible_v<Ref, Native>);
    static_assert(std::is_convertible_v<const Owner&, Ref>);
    static_assert(std::is_trivially_copyable_v<Ref>);
    static_assert(sizeof(Ref) == sizeof(Native));

    // Not from a literal, which would be the legacy default stream.
    static_assert(!std::is_constructible_v<Ref, int>);
    static_assert(!std::is_constructible_v<Ref, bool>);
    static_assert(!std::is_constructible_v<Ref, unsigned>);
    static_assert(!std::is_constructible_v<Ref, std::nullptr_t>);
    static_assert(!std::is_constructible_v<Ref, decltype(NULL)>);
    static_assert(!std::is_default_constructible_v<Ref>);

    // An owner is taken over by name only.
    static_assert(!std::is_constructible_v<Owner, Native>);
    static_assert(!std::is_constructible_v<Owner, Ref>);
    static_assert(!std::is_constructible_v<BasicEvent<B>, typename B::NativeEvent>);

    static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>);
    static_assert(std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner>);
    static_assert(!std::is_copy_constructible_v<BasicEvent<B>> && !std::is_copy_assignable_v<BasicEvent<B>>);
    static_assert(std::is_nothrow_move_constructible_v<BasicEvent<B>> &&
                  std::is_nothrow_move_assignable_v<BasicEvent<B>>);
    return true;
}
static_assert(converts_as_documented<Host>());

template <class Stream>
concept Enqueues = requires(Stream stream) {
    stream.enqueue([] {});
};
static_assert(Enqueues<HostStreamRef> && Enqueues<HostStream>);

#if SLUICE_HAS_CUDA
static_assert(converts_as_documented<Cuda>());
static_assert(Enqueues<CudaStreamRef> && Enqueues<CudaStream>);
static_assert(!std::is_convertible_v<HostStreamRef, CudaStreamRef>);
static_assert(!std::is_convertible_v<CudaStreamRef, HostStreamRef>);
static_assert(std::is_same_v<StreamRef, CudaStreamRef>);
#else
static_assert(std::is_same_v<StreamRef, HostStreamRef>);
#endif

#if SLUICE_HAS_CUDA
cudaStream_t through_native(cudaStream_t stream) { return stream; }
#endif

} // namespace

#if SLUICE_HAS_CUDA
TEST_CASE("a CUDA stream reference is the handle that it was made from") {
    int somewhere = 0; // no stream, but nothing here calls CUDA
    const auto native = reinterpret_cast<cudaStream_t>(&somewhere);
    const CudaStreamRef ref = native;
    CHECK(ref.get() == native);
    CHECK(through_native(ref) == native);

    // The default streams have handles too; a variable may hold them, a literal may not.
    const cudaStream_t legacy = nullptr;
    CHECK(CudaStreamRef{legacy}.get() == nullptr);
    CHECK(CudaStreamRef{cudaStreamPerThread}.get() == cudaStreamPerThread);
}
#endif

TEST_CASE("a Host stream reference is the handle that it was made from") {
    const HostStream stream;
    host::Queue* const native = stream.ref();
    CHECK(native == stream.get());
    CHECK(HostStreamRef{native} == stream.ref());
}

} // namespace backend_stream_conversions
