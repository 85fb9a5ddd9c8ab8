/// \file
/// A rank's end of a group of devices that reduce and exchange data together.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/collective/detail/rank_end.hpp>

namespace sluice {

/// How ranks wait for each other.
struct CommunicatorOptions {
    /// How long a rank waits for the others, when a communicator is made and in a collective, before the group fails, a year at
    /// most. 0: for as long as it takes. On CUDA two kernels of one thread around each collective tell the host of its progress;
    /// with 0 they are left out.
    std::chrono::milliseconds timeout{10'000};
};

/// One rank of a group of devices: of one process (`for_devices`), or of several (`for_process`, and
/// `mpi_communicator` of collective/mpi.hpp). `all_reduce` and the other functions of collective/collectives.hpp take it.
///
/// On CUDA a communicator is one of NCCL's, and the program is compiled with `SLUICE_HAS_NCCL=1` (CMake: link
/// `sluice::nccl`). On the Host backend ranks are the CPU's devices (`SLUICE_HOST_DEVICES`), or processes under MPI.
///
/// **One communicator, one order.** All ranks make the same calls in the same order, and each rank's run one after
/// another: on one stream, or ordered by events. Two stages that may run at the same time need a communicator each; the
/// executables of a stage's graphs are launched on its stream, so they are in order. A checked backend reports two
/// collectives of a communicator with nothing that orders them.
///
/// **One thread a rank.** A rank's calls may wait for the other ranks' (NCCL connects devices when they first exchange), so
/// each rank is driven by a thread of its own.
///
/// **Failure.** Where a rank does not come within `CommunicatorOptions::timeout`, NCCL reports an error, a rank has called
/// `abort`, or its communicator goes while others wait, the group fails: pending collectives end, the streams that they
/// are on fail, and a pipeline reports it with one sentence; where a rank is missing, it names the collective that waits for
/// it and the stage that enqueued that. Results are then undefined, and the communicator stays failed: make new ones, and go
/// on from a checkpoint. The timeout counts from when a collective begins on
/// the device, so it must be longer than the ranks' work may drift apart. A call that is under way when the group fails is given
/// time to end, 2 s, or the timeout once more where it has taken that long already: NCCL's first collective connects the ranks.
///
/// **Lifetime.** It outlives the work that it was given to, and graphs in which collectives were captured: declare it
/// before the pipeline. Finish that work on all ranks before the first communicator is destroyed. The destructor waits no
/// longer than the timeout, and leaves behind what it could not free by then.
///
/// **NCCL in one process.** A call that waits for the device (`cudaMalloc`, `cudaFree`, loading a kernel when it is first
/// used) can block the launch that another device's collective waits for. So allocate before the first step, and set
/// `CUDA_MODULE_LOADING=EAGER`.
///
/// Move-only. Driven by one thread; `abort` may be called by any.
template <Backend B = DefaultBackend>
class Communicator {
public:
    /// One rank for each of this process's `devices`, in their order. Throws `Error` where a device is missing or named
    /// twice, and where the backend has no collectives.
    /// @{
    static std::vector<Communicator> for_devices(std::span<const int> devices,
                                                 const CommunicatorOptions& options = {});
    static std::vector<Communicator> for_devices(std::initializer_list<int> devices,
                                                 const CommunicatorOptions& options = {}) {
        return for_devices(std::span<const int>(devices.begin(), devices.size()), options);
    }
    /// @}

    /// What the processes of a group must have in common: one of them makes it, and the program hands its bytes to the
    /// others. On CUDA, as NCCL's. Throws `Error` where processes can have no group without MPI.
    static std::vector<char> make_group_id();
    /// Rank `rank` of `ranks` processes, on this thread's current device. Waits until all have come. Throws `Error` when they
    /// have not within the timeout.
    static Communicator for_process(std::span<const char> group_id, int rank, int ranks,
                                    const CommunicatorOptions& options = {});

    /// Takes over an end that something else has made, such as `mpi_communicator`.
    explicit Communicator(std::shared_ptr<detail::RankEnd<B>> end) noexcept : end_(std::move(end)) {}
    /// Takes `other`'s rank over; `other` may be assigned to then, its `abort` does nothing, and every other use throws `Error`.
    Communicator(Communicator&& other) noexcept = default;
    /// The same, and leaves its own group first.
    Communicator& operator=(Communicator&& other) noexcept {
        if (this != &other) {
            leave();
            end_ = std::move(other.end_);
        }
        return *this;
    }
    /// Leaves the group: collectives that others have begun and that this rank has not come to fail.
    ~Communicator() { leave(); }

    /// This rank, from 0.
    int rank() const { return end().rank(); }
    /// The group's ranks.
    int ranks() const { return end().ranks(); }
    /// The device of this rank, which streams of its collectives belong to.
    int device() const { return end().device(); }

    /// Makes all pending and later collectives of the group fail with `reason`: of this process at once, of others when
    /// their timeout is over.
    void abort(const std::string& reason) noexcept {
        if (end_ != nullptr)
            end_->abort(reason);
    }
    /// Makes `stream` fail when the group does, too. Streams of collectives do; say it of one that waits for them and is
    /// handed none itself, such as a stage's whose callable forks. On the Host backend streams do so by themselves. Throws `Error`.
    void fail_with_group(BasicStreamRef<B> stream) const { end().fail_with_group(stream); }
    /// Throws `Error` if the group has failed.
    void require_alive() const { end().require_alive(); }

    /// For the functions that enqueue collectives.
    detail::RankEnd<B>& end() const { return *detail::owned_by("communicator", end_.get()); }

private:
    void leave() noexcept {
        if (end_ != nullptr)
            end_->leave();
        end_.reset();
    }

    std::shared_ptr<detail::RankEnd<B>> end_;
};

} // namespace sluice

#include <sluice/collective/detail/communicator.inl>
