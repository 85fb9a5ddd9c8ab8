// NCCL's calls, with every result checked. Included where NCCL is there.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA && defined(SLUICE_HAS_NCCL) && SLUICE_HAS_NCCL

#include <nccl.h>

#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/collective/detail/call.hpp>

/// Evaluates a call of NCCL's and throws `sluice::Error` unless it returns `ncclSuccess`.
#define SLUICE_NCCL_CHECK(...)                                                                               \
    ::sluice::detail::check_nccl((__VA_ARGS__), #__VA_ARGS__, nullptr, __FILE__, __LINE__)

namespace sluice::detail {

inline const char* name_of(ncclResult_t result) noexcept {
    constexpr const char* names[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                     "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                     "ncclRemoteError",   "ncclInProgress"};
    const auto index = static_cast<std::size_t>(result);
    return index < sizeof(names) / sizeof(*names) ? names[index] : "an unknown ncclResult_t";
}

/// What NCCL says of `result`, and of the last error of `comm`.
inline std::string nccl_text(ncclResult_t result, ncclComm_t comm) {
    const char* const more = ncclGetLastError(comm);
    std::string text = ncclGetErrorString(result);
    if (more != nullptr && *more != '\0')
        text += std::string("; ") + more;
    return text;
}

inline void check_nccl(ncclResult_t result, const char* call, ncclComm_t comm, const char* file, int line) {
    if (result != ncclSuccess && result != ncclInProgress) [[unlikely]]
        throw Error(call, name_of(result), nccl_text(result, comm), file, line);
}

inline ncclDataType_t nccl_type(CollectiveElement element) noexcept {
    constexpr ncclDataType_t types[] = {ncclInt8,   ncclUint8,   ncclInt32,   ncclUint32,  ncclInt64,
                                        ncclUint64, ncclFloat32, ncclFloat64, ncclFloat16, ncclBfloat16};
    return types[static_cast<int>(element)];
}

inline ncclRedOp_t nccl_reduction(Reduction reduction) noexcept {
    constexpr ncclRedOp_t operations[] = {ncclSum, ncclAvg, ncclMin, ncclMax};
    return operations[static_cast<int>(reduction)];
}

/// Enqueues a collective.
inline ncclResult_t nccl_enqueue(const CollectiveCall& call, ncclComm_t comm, cudaStream_t stream) {
    const ncclDataType_t type = nccl_type(call.element);
    switch (call.kind) {
    case CollectiveKind::all_reduce:
        return ncclAllReduce(call.in, call.out, call.count, type, nccl_reduction(call.reduction), comm,
                             stream);
    case CollectiveKind::reduce_scatter:
        return ncclReduceScatter(call.in, call.out, call.count, type, nccl_reduction(call.reduction), comm,
                                 stream);
    case CollectiveKind::all_gather:
        return ncclAllGather(call.in, call.out, call.count, type, comm, stream);
    case CollectiveKind::broadcast:
        break;
    }
    return ncclBroadcast(call.in, call.out, call.count, type, call.root, comm, stream);
}

} // namespace sluice::detail

#endif
