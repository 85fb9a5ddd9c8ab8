// Which backend a native stream belongs to.
#pragma once

#include <sluice/backend/default.hpp>

namespace sluice::detail {

/// `type` is the backend whose native stream `Native` is; there is none where no backend has such streams.
template <class Native>
struct BackendOfNativeStream {};
template <>
struct BackendOfNativeStream<Host::NativeStream> {
    using type = Host;
};
#if SLUICE_HAS_CUDA
template <>
struct BackendOfNativeStream<Cuda::NativeStream> {
    using type = Cuda;
};
#endif

} // namespace sluice::detail
