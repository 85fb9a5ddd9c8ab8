// What a communicator does for its rank, whatever it is made of.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/collective/detail/call.hpp>
#include <sluice/collective/detail/checked/collective_checks.hpp>
#include <sluice/collective/detail/host_transport.hpp>

namespace sluice::detail {

/// One rank's end of a group.
template <Backend B>
class RankEnd {
public:
    RankEnd(int rank, int ranks, int device) : rank_(rank), ranks_(ranks), device_(device) {}
    RankEnd& operator=(RankEnd&&) = delete;
    virtual ~RankEnd() = default;

    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return ranks_; }
    int device() const noexcept { return device_; }
    const CollectiveChecks<B>& checks() const noexcept { return checks_; }

    /// Enqueues this rank's part of a collective. Throws `Error`.
    virtual void enqueue(BasicStreamRef<B> stream, const CollectiveCall& call) = 0;
    /// Makes `stream` fail when the group does.
    virtual void fail_with_group(BasicStreamRef<B> stream) = 0;
    virtual void abort(const std::string& reason) noexcept = 0;
    virtual void leave() noexcept = 0;
    virtual void require_alive() = 0;

private:
    int rank_;
    int ranks_;
    int device_;
    [[no_unique_address]] CollectiveChecks<B> checks_;
};

/// A rank whose collectives are callables on its streams' threads.
template <Backend B>
class HostRankEnd : public RankEnd<B> {
public:
    HostRankEnd(std::shared_ptr<HostTransport> transport, int rank, int ranks, int device)
        : RankEnd<B>(rank, ranks, device), transport_(std::move(transport)) {}

    void enqueue(BasicStreamRef<B> stream, const CollectiveCall& call) override {
        transport_->require_alive(this->rank());
        CollectiveCall kept = call;
        kept.stage = transport_->stage_now();
        stream.enqueue([transport = transport_, rank = this->rank(), kept] { transport->run(rank, kept); });
    }
    // The stream fails where it waits for one that has failed.
    void fail_with_group(BasicStreamRef<B>) override {}
    void abort(const std::string& reason) noexcept override { transport_->abort(reason); }
    void leave() noexcept override { transport_->leave(this->rank()); }
    void require_alive() override { transport_->require_alive(this->rank()); }

private:
    std::shared_ptr<HostTransport> transport_; // the callables', too
};

} // namespace sluice::detail
