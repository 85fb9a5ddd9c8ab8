/// \file
/// Ranks in processes that MPI has started. Not in the umbrella: who includes it links MPI.
#pragma once

#include <sluice/collective/communicator.hpp>

/// 1: MPI's header is there and its library is linked. The CMake target `sluice::mpi` says so.
#if !defined(SLUICE_HAS_MPI)
#define SLUICE_HAS_MPI 0
#endif

#if SLUICE_HAS_MPI

#include <mpi.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <sluice/collective/detail/mpi_transport.hpp>

namespace sluice {

/// MPI for the length of a program: initialised so that any thread may call it, and finalised at the end. One a program, made
/// first in `main`.
///
/// Where a group of ranks has failed, or an exception ends the scope, MPI is not finalised, since that would wait for the
/// others: the program ends, and `mpirun` ends those that are left.
class MpiProcess {
public:
    /// Throws `Error` where MPI cannot be called by several threads.
    MpiProcess() : exceptions_(std::uncaught_exceptions()) {
        int provided = MPI_THREAD_SINGLE;
        detail::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided),
                          "MPI_Init_thread");
        if (provided < MPI_THREAD_MULTIPLE)
            throw Error("MPI: expected a library that any thread may call (MPI_THREAD_MULTIPLE); this one "
                        "allows less");
        detail::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
        detail::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
        MPI_Comm here = MPI_COMM_NULL;
        detail::check_mpi(
            MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
            "MPI_Comm_split_type");
        detail::check_mpi(MPI_Comm_rank(here, &local_rank_), "MPI_Comm_rank");
        detail::check_mpi(MPI_Comm_free(&here), "MPI_Comm_free");
    }
    MpiProcess(const MpiProcess&) = delete;
    MpiProcess& operator=(const MpiProcess&) = delete;
    ~MpiProcess() {
        if (std::uncaught_exceptions() == exceptions_ && !detail::any_mpi_group_failed())
            (void)MPI_Finalize();
    }

    /// This process, from 0.
    int rank() const noexcept { return rank_; }
    /// All processes.
    int ranks() const noexcept { return ranks_; }
    /// This process among those of its host, from 0: its GPU.
    int local_rank() const noexcept { return local_rank_; }

private:
    int exceptions_;
    int rank_ = 0;
    int ranks_ = 1;
    int local_rank_ = 0;
};

/// This process's rank of a group of all processes of `processes`, on this thread's current device. All of them call it. On CUDA
/// MPI hands NCCL's id around, and NCCL does the rest; on the Host backend MPI moves the data, up to 2 GB a rank and
/// collective, and sums are made in the order of the ranks, with the same bits as in one process. Any number of groups may be
/// made. Throws `Error`.
template <Backend B = DefaultBackend>
Communicator<B> mpi_communicator(MPI_Comm processes, const CommunicatorOptions& options = {}) {
    detail::require_timeout("CommunicatorOptions::timeout", options.timeout.count());
    int rank = 0;
    int ranks = 1;
    detail::check_mpi(MPI_Comm_rank(processes, &rank), "MPI_Comm_rank");
    detail::check_mpi(MPI_Comm_size(processes, &ranks), "MPI_Comm_size");
    if constexpr (detail::has_host_streams<B>) {
        return Communicator<B>(std::make_shared<detail::HostRankEnd<B>>(
            std::make_shared<detail::MpiTransport>(processes, rank, ranks, options.timeout), rank, ranks,
            B::current_device()));
    } else {
        std::vector<char> id;
        std::string problem;
        int size = 0;
        if (rank == 0) {
            try {
                id = Communicator<B>::make_group_id();
                size = static_cast<int>(id.size());
            } catch (const Error& error) { // the others wait
                problem = error.what();
            }
        }
        detail::check_mpi(MPI_Bcast(&size, 1, MPI_INT, 0, processes), "MPI_Bcast");
        if (size == 0)
            throw Error(problem.empty() ? "communicator: rank 0 has no id for the group" : problem);
        id.resize(static_cast<std::size_t>(size));
        detail::check_mpi(MPI_Bcast(id.data(), size, MPI_CHAR, 0, processes), "MPI_Bcast");
        return Communicator<B>::for_process(id, rank, ranks, options);
    }
}

} // namespace sluice

#endif
