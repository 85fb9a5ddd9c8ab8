// Ranks on GPUs: NCCL.
#pragma once

#include <sluice/backend/config.hpp>

/// 1: NCCL's header is there and its library is linked, and ranks may be on GPUs. For a whole program. The CMake target
/// `sluice::nccl` says so.
#if !defined(SLUICE_HAS_NCCL)
#define SLUICE_HAS_NCCL 0
#endif

#if SLUICE_HAS_CUDA && SLUICE_HAS_NCCL

#include <nccl.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/collective/detail/nccl_calls.hpp>
#include <sluice/collective/detail/nccl_watch.hpp>
#include <sluice/collective/detail/rank_end.hpp>

namespace sluice {

/// CUDA's own.
template <>
inline constexpr Float16Format float16_format<__half> = Float16Format::float16;
/// CUDA's own.
template <>
inline constexpr Float16Format float16_format<__nv_bfloat16> = Float16Format::bfloat16;

} // namespace sluice

namespace sluice::detail {

/// A rank on a GPU.
template <Backend B>
class NcclRankEnd : public RankEnd<B> {
public:
    explicit NcclRankEnd(std::shared_ptr<NcclWatch> watch)
        : RankEnd<B>(watch->rank(), watch->ranks(), watch->device()), watch_(std::move(watch)) {}

    void enqueue(BasicStreamRef<B> stream, const CollectiveCall& call) override {
        if (call.count == 0)
            return watch_->require_alive();
        const DeviceGuard<B> guard(this->device());
        watch_->enqueue(stream.get(), call);
    }
    void fail_with_group(BasicStreamRef<B> stream) override { watch_->add_stream(stream.get()); }
    void abort(const std::string& reason) noexcept override { watch_->group().fail(reason); }
    void leave() noexcept override { watch_->leave(); }
    void require_alive() override { watch_->require_alive(); }

private:
    std::shared_ptr<NcclWatch> watch_; // its thread's, too
};

/// A rank for each of `devices`, which are there and differ.
template <Backend B>
std::vector<std::shared_ptr<RankEnd<B>>> nccl_ends(std::span<const int> devices,
                                                   std::chrono::milliseconds timeout) {
    const DeviceGuard<B> guard(devices[0]); // NCCL leaves another one current
    const int ranks = static_cast<int>(devices.size());
    std::vector<ncclComm_t> comms(devices.size());
    SLUICE_NCCL_CHECK(ncclCommInitAll(comms.data(), ranks, devices.data()));
    const auto group = std::make_shared<NcclGroup>();
    std::vector<std::shared_ptr<RankEnd<B>>> result;
    for (int rank = 0; rank < ranks; ++rank) {
        const int device = devices[static_cast<std::size_t>(rank)];
        const DeviceGuard<B> there(device);
        result.push_back(std::make_shared<NcclRankEnd<B>>(
            NcclWatch::start(comms[static_cast<std::size_t>(rank)], group, rank, ranks, device, timeout)));
    }
    return result;
}

inline std::vector<char> make_nccl_id() {
    ncclUniqueId id;
    SLUICE_NCCL_CHECK(ncclGetUniqueId(&id));
    return {id.internal, id.internal + sizeof(id.internal)};
}

/// NCCL waits for the other processes without an end, so a thread of its own does: where they do not come, it is left behind.
inline ncclComm_t nccl_meet(const ncclUniqueId& id, int rank, int ranks, int device,
                            std::chrono::milliseconds timeout) {
    struct Meeting {
        std::mutex mutex;
        std::condition_variable changed;
        bool over = false;
        ncclResult_t result = ncclSuccess;
        ncclComm_t comm = nullptr;
    };
    const auto meeting = std::make_shared<Meeting>();
    std::thread([meeting, id, rank, ranks, device] {
        ncclComm_t comm = nullptr;
        const bool there = cudaSetDevice(device) == cudaSuccess;
        const ncclResult_t result = there ? ncclCommInitRank(&comm, ranks, id, rank) : ncclUnhandledCudaError;
        const std::lock_guard lock(meeting->mutex);
        meeting->over = true;
        meeting->result = result;
        meeting->comm = comm;
        meeting->changed.notify_all();
    }).detach();
    std::unique_lock lock(meeting->mutex);
    const auto over = [&] { return meeting->over; };
    if (timeout.count() == 0) {
        meeting->changed.wait(lock, over);
    } else if (!meeting->changed.wait_for(lock, timeout, over)) {
        throw Error("communicator: " + rank_text(rank, ranks) + " waited " + std::to_string(timeout.count()) +
                    " ms for the other processes, which did not all come");
    }
    check_nccl(meeting->result, "ncclCommInitRank", nullptr, __FILE__, __LINE__);
    return meeting->comm;
}

template <Backend B>
std::shared_ptr<RankEnd<B>> nccl_end_of_process(std::span<const char> group_id, int rank, int ranks,
                                                std::chrono::milliseconds timeout) {
    ncclUniqueId id;
    if (group_id.size() != sizeof(id.internal)) {
        throw Error("communicator: the group's id has " + detail::counted(group_id.size(), "byte") +
                    "; expected the " + std::to_string(sizeof(id.internal)) +
                    " that make_group_id gave another process");
    }
    std::memcpy(id.internal, group_id.data(), sizeof(id.internal));
    const int device = B::current_device();
    const ncclComm_t comm = nccl_meet(id, rank, ranks, device, timeout);
    return std::make_shared<NcclRankEnd<B>>(
        NcclWatch::start(comm, std::make_shared<NcclGroup>(), rank, ranks, device, timeout));
}

} // namespace sluice::detail

#endif
