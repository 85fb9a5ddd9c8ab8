/// \file
/// The processes that `mpirun` has started this program in.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#include <common/bad_input.hpp>
#include <common/options.hpp>
#include <common/text.hpp>
#include <sluice/collective/mpi.hpp>

namespace examples {

/// This process among all. Known before MPI is initialised, which takes time that a program by itself need not spend.
struct Processes {
    int rank = 0;
    int ranks = 1;

    /// As the launcher says in the environment: Open MPI's, or one that speaks PMI.
    static Processes launched() {
        using Names = std::pair<const char*, const char*>;
        for (const auto& [rank, ranks] :
             {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Names{"PMI_RANK", "PMI_SIZE"}}) {
            const char* const rank_text = std::getenv(rank);
            const char* const ranks_text = std::getenv(ranks);
            if (rank_text != nullptr && ranks_text != nullptr)
                return {std::atoi(rank_text), std::atoi(ranks_text)};
        }
        return {};
    }
};

/// How long a rank waits for the others: when one is killed, the rest ends within ten seconds.
inline constexpr std::chrono::milliseconds rank_timeout{8000};

/// What is to be set before the backends are asked for the first time, where `gpus` ranks of this process or all processes train
/// together. Returns the processes. Throws BadInput where there are several of both.
inline Processes prepare_for_ranks(int gpus) {
    const Processes processes = Processes::launched();
    if (gpus > 1 && processes.ranks > 1) {
        throw BadInput("--gpus: expected 1 under mpirun, where each process has one GPU, not " +
                       std::to_string(gpus));
    }
    if (gpus > 1 || processes.ranks > 1) {
        // The Host backend has as many devices as are asked for.
        (void)setenv("SLUICE_HOST_DEVICES", std::to_string(gpus).c_str(), 0);
    }
    if (gpus > 1) {
        // A kernel that is loaded when it is first launched may wait for a device whose collective waits for a launch by another
        // thread of this process, which waits for the loading. Processes launch without waiting for each other.
        (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    }
    return processes;
}

/// Throws BadInput where `option`, which says something of several ranks, was given to `ranks` that are one.
inline void require_several_ranks(const CommandLine& app, const std::string& option, int ranks) {
    if (ranks == 1 && app.was_given(option)) {
        throw BadInput(option +
                       ": is for several ranks, expected --gpus with it, or mpirun before the program");
    }
}

/// This process's rank of all, on the device of its number on this host, which becomes the calling thread's current one; on the
/// CPU on device 0. Initialises MPI for the rest of the program. Throws BadInput where there are fewer devices, or the
/// program was built without MPI.
template <sluice::Backend B>
sluice::Communicator<B> make_process_rank() {
#if SLUICE_HAS_MPI
    static const sluice::MpiProcess process;
    if (!std::is_same_v<B, sluice::Host>) {
        if (process.local_rank() >= B::device_count()) {
            throw BadInput("mpirun: expected at most " +
                           counted(static_cast<unsigned>(B::device_count()), "process") +
                           " on this host, one for each device");
        }
        B::set_device(process.local_rank());
    }
    return sluice::mpi_communicator<B>(MPI_COMM_WORLD, {.timeout = rank_timeout});
#else
    throw BadInput("mpirun: this program was built without MPI; expected one process (install libopenmpi-dev "
                   "and build again)");
#endif
}

} // namespace examples
