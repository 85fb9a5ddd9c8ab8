// Bodies of communicator.hpp.
#pragma once

#include <sluice/collective/detail/host_group.hpp>
#include <sluice/collective/detail/nccl.hpp>

namespace sluice {

namespace detail {

/// Whether `B`'s streams are those of the Host backend, however it is wrapped.
template <class B>
inline constexpr bool has_host_streams = std::is_same_v<typename B::NativeStream, Host::NativeStream>;

inline constexpr const char* nccl_is_missing =
    "collectives between GPUs need NCCL, which this program was built without; install it (libnccl-dev, or "
    "pip install nvidia-nccl-cu13) and link sluice::nccl, or define SLUICE_HAS_NCCL=1";

template <Backend B>
void check_devices(std::span<const int> devices) {
    if (devices.empty())
        throw Error("communicator: expected at least one device, and none was named");
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (devices[i] < 0 || devices[i] >= B::device_count()) {
            throw Error("communicator: " + detail::there_are(B::device_count(), "device") +
                        ", numbered from 0, and rank " + std::to_string(i) + " is to be on device " +
                        std::to_string(devices[i]));
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (devices[i] == devices[j]) {
                throw Error("communicator: ranks " + std::to_string(j) + " and " + std::to_string(i) +
                            " are both on device " + std::to_string(devices[i]) +
                            "; expected a device for each rank");
            }
        }
    }
}

} // namespace detail

template <Backend B>
std::vector<Communicator<B>> Communicator<B>::for_devices(std::span<const int> devices,
                                                          const CommunicatorOptions& options) {
    detail::check_devices<B>(devices);
    detail::require_timeout("CommunicatorOptions::timeout", options.timeout.count());
    std::vector<Communicator> result;
    result.reserve(devices.size());
    if constexpr (detail::has_host_streams<B>) {
        const int ranks = static_cast<int>(devices.size());
        const auto group = std::make_shared<detail::HostGroup>(ranks, options.timeout);
        for (int rank = 0; rank < ranks; ++rank) {
            result.emplace_back(std::make_shared<detail::HostRankEnd<B>>(
                group, rank, ranks, devices[static_cast<std::size_t>(rank)]));
        }
    } else {
#if SLUICE_HAS_CUDA && SLUICE_HAS_NCCL
        for (auto& end : detail::nccl_ends<B>(devices, options.timeout))
            result.emplace_back(std::move(end));
#else
        throw Error(detail::nccl_is_missing);
#endif
    }
    return result;
}

template <Backend B>
std::vector<char> Communicator<B>::make_group_id() {
    if constexpr (detail::has_host_streams<B>) {
        throw Error("communicator: processes on the Host backend meet over MPI; use mpi_communicator");
    } else {
#if SLUICE_HAS_CUDA && SLUICE_HAS_NCCL
        return detail::make_nccl_id();
#else
        throw Error(detail::nccl_is_missing);
#endif
    }
}

template <Backend B>
Communicator<B> Communicator<B>::for_process([[maybe_unused]] std::span<const char> group_id, int rank,
                                             int ranks, const CommunicatorOptions& options) {
    if (ranks < 1 || rank < 0 || rank >= ranks) {
        throw Error("communicator: rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                    "; expected a rank from 0 to one less than the ranks");
    }
    detail::require_timeout("CommunicatorOptions::timeout", options.timeout.count());
    if constexpr (detail::has_host_streams<B>) {
        throw Error("communicator: processes on the Host backend meet over MPI; use mpi_communicator");
    } else {
#if SLUICE_HAS_CUDA && SLUICE_HAS_NCCL
        return Communicator(detail::nccl_end_of_process<B>(group_id, rank, ranks, options.timeout));
#else
        throw Error(detail::nccl_is_missing);
#endif
    }
}

} // namespace sluice
