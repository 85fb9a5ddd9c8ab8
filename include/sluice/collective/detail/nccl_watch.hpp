// A rank's communicator of NCCL's, and the thread that ends it when the others are gone. Included where NCCL is there.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA && defined(SLUICE_HAS_NCCL) && SLUICE_HAS_NCCL

#include <nccl.h>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/cuda.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/cuda/host_function_failures.hpp>
#include <sluice/collective/detail/device_counter.hpp>
#include <sluice/collective/detail/group_failure.hpp>
#include <sluice/collective/detail/nccl_calls.hpp>

namespace sluice::detail {

/// What the ranks of one process know of each other.
class NcclGroup {
public:
    void fail(const std::string& reason) noexcept {
        const std::lock_guard lock(mutex_);
        failure_.set(reason);
    }
    void leave(int rank) noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ < 0)
            left_ = rank;
    }
    /// Whether it has failed; then why.
    bool failed(std::string& reason) const {
        const std::lock_guard lock(mutex_);
        if (failure_)
            reason = failure_.reason();
        return static_cast<bool>(failure_);
    }
    void throw_if_failed(int rank, int ranks) const {
        const std::lock_guard lock(mutex_);
        failure_.throw_if_set(rank, ranks);
    }
    /// The first rank that has left; -1 if none has.
    int left() const {
        const std::lock_guard lock(mutex_);
        return left_;
    }

private:
    mutable std::mutex mutex_;
    GroupFailure failure_;
    int left_ = -1;
};

/// Owns a communicator. A thread looks every few milliseconds whether NCCL reports an error, another rank of the process has
/// failed or left, or the device is in a collective for too long: the device counts collectives begun and ended in pinned
/// memory. If so it makes the streams of the collectives fail and aborts the communicator, upon which NCCL's kernels end and
/// the streams go on. NCCL frees a communicator only when the graphs that hold its kernels are gone, so the thread may
/// outlive the owner's interest: it shares this object.
class NcclWatch : public std::enable_shared_from_this<NcclWatch> {
public:
    /// `device` is current. Takes `comm` over.
    static std::shared_ptr<NcclWatch> start(ncclComm_t comm, std::shared_ptr<NcclGroup> group, int rank,
                                            int ranks, int device, std::chrono::milliseconds timeout) {
        auto watch =
            std::shared_ptr<NcclWatch>(new NcclWatch(comm, std::move(group), rank, ranks, device, timeout));
        std::thread([watch] { watch->work(); }).detach();
        return watch;
    }
    NcclWatch& operator=(NcclWatch&&) = delete;
    ~NcclWatch() = default;

    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return ranks_; }
    int device() const noexcept { return device_; }
    NcclGroup& group() noexcept { return *group_; }

    void require_alive() {
        const std::lock_guard lock(mutex_);
        throw_if_failed();
    }
    void add_stream(cudaStream_t stream) {
        StreamFailures::RecordRef record = host_function_failures().record_of(stream);
        const std::lock_guard lock(mutex_);
        for (const StreamFailures::RecordRef& known : streams_) {
            if (known.get() == record.get())
                return;
        }
        if (streams_.size() == most_streams)
            streams_.erase(streams_.begin());
        streams_.push_back(std::move(record));
    }
    /// The device is current.
    void enqueue(cudaStream_t stream, const CollectiveCall& call) {
        add_stream(stream);
        unsigned kind = 0;
        {
            const std::lock_guard lock(mutex_);
            throw_if_failed();
            kind = calling_ = kind_of(call);
            calling_since_ = steady_nanoseconds();
        }
        ncclResult_t result = ncclSuccess;
        try {
            if (timeout_.count() != 0)
                counter_.count(stream, 0, progress_, kind);
            result = nccl_enqueue(call, comm_, stream);
            if (result == ncclSuccess && timeout_.count() != 0)
                counter_.count(stream, 1, progress_, kind);
        } catch (...) {
            end_call();
            throw;
        }
        end_call();
        require_alive(); // an abort makes the call fail too, and says less
        check_nccl(result, name_of(call.kind), comm_, __FILE__, __LINE__);
    }
    /// Frees the communicator, or leaves that to the thread where it takes longer than the timeout.
    void leave() noexcept {
        group_->leave(rank_);
        std::unique_lock lock(mutex_);
        leaving_ = true;
        changed_.notify_all();
        const auto patience = timeout_.count() == 0 ? std::chrono::milliseconds(10'000) : timeout_;
        (void)changed_.wait_for(lock, patience, [this] { return over_; });
    }

private:
    static constexpr std::size_t most_streams = 64;
    static constexpr std::size_t most_kinds = 64;
    // A rank that has left ends a collective after so long, not at once: it may have had its part done.
    static constexpr std::chrono::milliseconds grace{250};
    // A call that is under way when the group fails ends by itself within so long, or waits for a rank that does not come.
    static constexpr std::chrono::milliseconds longest_call{2000};

    NcclWatch(ncclComm_t comm, std::shared_ptr<NcclGroup> group, int rank, int ranks, int device,
              std::chrono::milliseconds timeout)
        : comm_(comm), group_(std::move(group)), rank_(rank), ranks_(ranks), device_(device),
          timeout_(timeout), progress_(static_cast<volatile unsigned*>(UncheckedCuda::allocate_pinned(
                                 2 * DeviceCounter::counts * sizeof(unsigned)))) {
        for (unsigned i = 0; i < 2 * DeviceCounter::counts; ++i)
            progress_[i] = 0;
        streams_.reserve(most_streams);
    }

    // Also where the thread has not seen yet that the group has failed: another collective might still succeed.
    void throw_if_failed() const {
        failure_.throw_if_set(rank_, ranks_);
        group_->throw_if_failed(rank_, ranks_);
    }
    void end_call() noexcept {
        const std::lock_guard lock(mutex_);
        calling_since_ = 0;
        changed_.notify_all();
    }

    void work() noexcept {
        (void)cudaSetDevice(device_);
        std::string reason;
        std::unique_lock lock(mutex_);
        while (!leaving_) {
            changed_.wait_for(lock, std::chrono::milliseconds(20));
            if (!leaving_ && is_lost(reason))
                fail(reason, lock);
        }
        const bool in_flight = progress_[0] != progress_[1];
        lock.unlock();
        if (!aborted_) {
            // Others wait for this rank, or it for them, where a collective is under way: NCCL's own end would wait, too.
            if (in_flight)
                (void)ncclCommAbort(comm_);
            else
                (void)ncclCommDestroy(comm_);
        }
        UncheckedCuda::free_pinned(const_cast<unsigned*>(progress_));
        lock.lock();
        over_ = true;
        changed_.notify_all();
    }

    // A number for calls that `text_of` says the same of, from 1 on; 0 beyond so many. With the lock.
    unsigned kind_of(CollectiveCall call) {
        call.stage = stages_.now();
        for (std::size_t i = 0; i < kinds_.size(); ++i) {
            const std::size_t kind = (calling_ + i) % kinds_.size(); // they mostly come in turn
            if (kinds_[kind].matches(call) && kinds_[kind].stage == call.stage)
                return static_cast<unsigned>(kind + 1);
        }
        if (kinds_.size() == most_kinds)
            return 0;
        kinds_.push_back(call);
        return static_cast<unsigned>(kinds_.size());
    }
    // The collective that is under way, for messages.
    std::string text_of(unsigned kind, unsigned number) const {
        std::string text = "collective number " + std::to_string(number);
        if (kind > 0 && kind <= kinds_.size())
            text += ", " + kinds_[kind - 1].text();
        return text;
    }

    // Whether the group has failed; then why.
    bool is_lost(std::string& reason) {
        if (failure_)
            return false;
        if (group_->failed(reason))
            return true;
        ncclResult_t error = ncclSuccess;
        if (ncclCommGetAsyncError(comm_, &error) == ncclSuccess && error != ncclSuccess &&
            error != ncclInProgress) {
            reason =
                std::string("NCCL reports ") + detail::name_of(error) + " (" + nccl_text(error, comm_) + ")";
            return true;
        }
        const std::int64_t now = steady_nanoseconds();
        const unsigned begun = progress_[0];
        const unsigned ended = progress_[1];
        if (begun != seen_begun_ || ended != seen_ended_ || begun == ended) {
            seen_begun_ = begun;
            seen_ended_ = ended;
            unchanged_since_ = now;
        }
        const std::int64_t stuck = now - unchanged_since_;
        const std::int64_t called = calling_since_ == 0 ? 0 : now - calling_since_;
        const std::int64_t longest = stuck > called ? stuck : called;
        const auto collective = [&] { return text_of(called > stuck ? calling_ : progress_[2], ended); };
        if (const int left = group_->left(); left >= 0 && longest > nanoseconds(grace)) {
            reason = left_text(left, ranks_, rank_, collective());
            return true;
        }
        if (timeout_.count() != 0 && longest > nanoseconds(timeout_)) {
            reason = "the other ranks did not come to " + collective() + ", within " +
                     std::to_string(timeout_.count()) + " ms";
            patience_ = timeout_;
            return true;
        }
        return false;
    }
    static std::int64_t nanoseconds(std::chrono::milliseconds time) noexcept {
        return time.count() * 1'000'000;
    }

    // With the lock, which is open while NCCL is called.
    void fail(const std::string& reason, std::unique_lock<std::mutex>& lock) noexcept {
        failure_.set(reason);
        group_->fail(reason);
        try {
            const std::exception_ptr thrown = std::make_exception_ptr(failure_.error(rank_, ranks_));
            for (const StreamFailures::RecordRef& record : streams_)
                host_function_failures().keep(*record, thrown);
        } catch (...) {
            // Out of memory: the abort ends the ranks all the same.
        }
        // A call that is under way uses the communicator, which the abort frees: it is given time to end. Only the abort ends one
        // that waits for a rank, as the first collective does, which connects them.
        (void)changed_.wait_for(lock, patience_, [this] { return calling_since_ == 0; });
        aborted_ = true;
        lock.unlock();
        (void)ncclCommAbort(comm_);
        lock.lock();
    }

    ncclComm_t comm_;
    std::shared_ptr<NcclGroup> group_;
    int rank_;
    int ranks_;
    int device_;
    std::chrono::milliseconds timeout_;
    DeviceCounter counter_;
    // In pinned memory: collectives begun and ended on the device, and the kinds of those that did so last.
    volatile unsigned* progress_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<StreamFailures::RecordRef> streams_; // that collectives have been handed to
    std::int64_t calling_since_ = 0;                 // of a call that is under way; 0 if none is
    unsigned calling_ = 0;                           // its kind
    StageNames stages_;
    List<CollectiveCall> kinds_;
    unsigned seen_begun_ = 0;
    unsigned seen_ended_ = 0;
    std::int64_t unchanged_since_ = steady_nanoseconds();
    std::chrono::milliseconds patience_ = longest_call; // or the timeout, with a call that has taken as long
    GroupFailure failure_;
    bool aborted_ = false;
    bool leaving_ = false;
    bool over_ = false;
};

} // namespace sluice::detail

#endif
