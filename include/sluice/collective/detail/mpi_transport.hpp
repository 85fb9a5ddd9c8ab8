// Ranks on CPUs of several processes. Included where MPI is there.
#pragma once

#if defined(SLUICE_HAS_MPI) && SLUICE_HAS_MPI

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/collective/detail/call.hpp>
#include <sluice/collective/detail/group_failure.hpp>
#include <sluice/collective/detail/host_reduce.hpp>
#include <sluice/collective/detail/host_transport.hpp>

namespace sluice::detail {

inline void check_mpi(int result, const char* call) {
    if (result == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    (void)MPI_Error_string(result, text, &length);
    throw Error(std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

inline std::atomic<bool>& mpi_group_failure() noexcept {
    static std::atomic<bool> failed{false};
    return failed;
}
inline bool any_mpi_group_failed() noexcept { return mpi_group_failure().load(); }

/// One process's part of a group. Data is exchanged by MPI's collectives that do not block, so that a rank that does not come
/// is noticed; reductions are made here, in the order of the ranks. Scratch memory grows to the largest collective.
class MpiTransport : public HostTransport {
public:
    MpiTransport(MPI_Comm processes, int rank, int ranks, std::chrono::milliseconds timeout)
        : rank_(rank), ranks_(ranks), timeout_(timeout), counts_(static_cast<std::size_t>(ranks)),
          offsets_(counts_), own_counts_(counts_), own_offsets_(counts_) {
        check_mpi(MPI_Comm_dup(processes, &processes_),
                  "MPI_Comm_dup"); // freed by MPI_Finalize: to free it is collective
        check_mpi(MPI_Comm_set_errhandler(processes_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }

    void run(int, const CollectiveCall& call) override {
        {
            const std::lock_guard lock(mutex_);
            throw_if_failed();
            if (busy_) {
                fail(twice_text(rank_, ranks_));
                throw_if_failed();
            }
            busy_ = true;
        }
        const Turn turn(*this);
        work(call);
    }
    void abort(const std::string& reason) noexcept override {
        const std::lock_guard lock(mutex_);
        fail(reason);
    }
    void leave(int) noexcept override {}
    void require_alive(int) override {
        const std::lock_guard lock(mutex_);
        throw_if_failed();
    }

private:
    void fail(const std::string& reason) noexcept {
        mpi_group_failure().store(true);
        failure_.set(reason);
    }
    void throw_if_failed() const { failure_.throw_if_set(rank_, ranks_); }

    // A collective's turn is over, too, when it throws.
    class Turn {
    public:
        explicit Turn(MpiTransport& of) noexcept : of_(of) {}
        Turn& operator=(Turn&&) = delete;
        ~Turn() {
            const std::lock_guard lock(of_.mutex_);
            of_.busy_ = false;
        }

    private:
        MpiTransport& of_;
    };

    void work(const CollectiveCall& call) {
        const std::size_t bytes = call.count * bytes_of(call.element);
        const std::size_t all =
            call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast
                ? bytes
                : bytes * static_cast<std::size_t>(ranks_);
        if (all > static_cast<std::size_t>((std::numeric_limits<int>::max)())) {
            throw Error(std::string(name_of(call.kind)) + ": " + detail::counted_were(all, "byte") +
                        " given; over MPI at most 2,147,483,647 are expected");
        }
        switch (call.kind) {
        case CollectiveKind::all_reduce:
            return all_reduce(call);
        case CollectiveKind::reduce_scatter:
            return reduce_scatter(call);
        case CollectiveKind::all_gather:
            return all_gather(call);
        case CollectiveKind::broadcast:
            await(call, [&](MPI_Request* request) {
                return MPI_Ibcast(call.out, static_cast<int>(bytes), MPI_BYTE, call.root, processes_,
                                  request);
            });
        }
    }

    // Sends `own_counts_[r]` bytes from `own_offsets_[r]` on to each rank r, and receives `bytes` from each into the scratch memory.
    void exchange(const CollectiveCall& call, std::size_t bytes) {
        scratch_.resize(bytes * static_cast<std::size_t>(ranks_));
        for (std::size_t r = 0; r < counts_.size(); ++r) {
            counts_[r] = static_cast<int>(bytes);
            offsets_[r] = static_cast<int>(bytes * r);
        }
        await(call, [&](MPI_Request* request) {
            return MPI_Ialltoallv(call.in, own_counts_.data(), own_offsets_.data(), MPI_BYTE, scratch_.data(),
                                  counts_.data(), offsets_.data(), MPI_BYTE, processes_, request);
        });
    }
    // Reduces `count` elements of each rank in the scratch memory to `out`, which may be the first rank's there.
    void reduce(const CollectiveCall& call, std::size_t count, void* out) {
        with_element(call.element, [&](auto zero) {
            using T = decltype(zero);
            const T* const from = reinterpret_cast<const T*>(scratch_.data());
            reduce_range<T>(
                0, count, ranks_, call.reduction,
                [&](int rank) { return from + count * static_cast<std::size_t>(rank); }, 1,
                [&](int) { return static_cast<T*>(out); });
        });
    }
    void all_reduce(const CollectiveCall& call) {
        const std::size_t size = bytes_of(call.element);
        const auto begin = [&](std::size_t part) { return part_begin(call.count, part, counts_.size()); };
        for (std::size_t r = 0; r < counts_.size(); ++r) {
            own_counts_[r] = static_cast<int>((begin(r + 1) - begin(r)) * size);
            own_offsets_[r] = static_cast<int>(begin(r) * size);
        }
        const auto mine = static_cast<std::size_t>(rank_);
        const std::size_t count = begin(mine + 1) - begin(mine);
        exchange(call, count * size);
        reduce(call, count, scratch_.data());
        await(call, [&](MPI_Request* request) {
            return MPI_Iallgatherv(scratch_.data(), static_cast<int>(count * size), MPI_BYTE, call.out,
                                   own_counts_.data(), own_offsets_.data(), MPI_BYTE, processes_, request);
        });
    }
    void reduce_scatter(const CollectiveCall& call) {
        const std::size_t bytes = call.count * bytes_of(call.element);
        for (std::size_t r = 0; r < counts_.size(); ++r) {
            own_counts_[r] = static_cast<int>(bytes);
            own_offsets_[r] = static_cast<int>(bytes * r);
        }
        exchange(call, bytes);
        reduce(call, call.count, call.out);
    }
    void all_gather(const CollectiveCall& call) {
        const std::size_t bytes = call.count * bytes_of(call.element);
        const void* const own = static_cast<char*>(call.out) + bytes * static_cast<std::size_t>(rank_);
        await(call, [&](MPI_Request* request) {
            return MPI_Iallgather(call.in == own ? MPI_IN_PLACE : call.in, static_cast<int>(bytes), MPI_BYTE,
                                  call.out, static_cast<int>(bytes), MPI_BYTE, processes_, request);
        });
    }

    // Starts a collective of MPI's and waits for it. One that is given up stays with MPI, which may still use the memory: the
    // scratch memory is then never freed, and the process is about to end.
    template <class Start>
    void await(const CollectiveCall& call, Start&& start) {
        MPI_Request request = MPI_REQUEST_NULL;
        check(start(&request));
        const std::int64_t begin = steady_nanoseconds();
        for (std::size_t round = 0;; ++round) {
            int over = 0;
            check(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
            if (over != 0)
                return;
            const std::int64_t waited = steady_nanoseconds() - begin;
            const bool late = timeout_.count() != 0 && waited > timeout_.count() * 1'000'000;
            {
                const std::lock_guard lock(mutex_);
                if (late)
                    fail("the other ranks did not come to the " + call.text() + " within " +
                         std::to_string(timeout_.count()) + " ms");
                if (failure_) {
                    (void)new std::vector<char>(std::move(scratch_));
                    throw_if_failed();
                }
            }
            if (round < 100)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    void check(int result) {
        if (result == MPI_SUCCESS)
            return;
        mpi_group_failure().store(true);
        check_mpi(result, "a collective of MPI's");
    }

    MPI_Comm processes_ = MPI_COMM_NULL;
    int rank_;
    int ranks_;
    std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    bool busy_ = false;
    GroupFailure failure_;
    std::vector<int> counts_; // bytes from each rank, and where they go
    std::vector<int> offsets_;
    std::vector<int> own_counts_; // bytes to each rank, and where they are
    std::vector<int> own_offsets_;
    std::vector<char> scratch_;
};

} // namespace sluice::detail

#endif
