// How ranks on CPUs meet.
#pragma once

#include <mutex>
#include <string>

#include <sluice/collective/detail/call.hpp>

namespace sluice::detail {

/// What moves the data of one group of ranks. Called by the threads that run the ranks' streams.
class HostTransport {
public:
    HostTransport& operator=(HostTransport&&) = delete;
    virtual ~HostTransport() = default;

    /// Takes `rank`'s part in a collective, and returns when its memory is complete and may be changed. Throws `Error`
    /// when the group has failed, or another rank does not come in time.
    virtual void run(int rank, const CollectiveCall& call) = 0;
    /// Makes all ranks' present and later calls fail with `reason`, unless they have failed before.
    virtual void abort(const std::string& reason) noexcept = 0;
    /// `rank` will not come any more.
    virtual void leave(int rank) noexcept = 0;
    /// Throws `Error`, of `rank`, if the group has failed.
    virtual void require_alive(int rank) = 0;

    /// Of the stages that enqueue collectives of this rank, or these ranks.
    const char* stage_now() {
        const std::lock_guard lock(stages_mutex_);
        return stages_.now();
    }

private:
    std::mutex stages_mutex_;
    StageNames stages_;
};

} // namespace sluice::detail
