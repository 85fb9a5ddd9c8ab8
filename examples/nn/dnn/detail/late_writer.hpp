/// \file
/// A kernel that lets the next one of its stream begin at once, and late writes what that one reads.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace nn::detail {

/// What the host and the kernel tell each other, in pinned memory; all 0 before a launch.
struct LateFlags {
    static constexpr unsigned most_blocks = 32;

    unsigned is_enqueued;            ///< the host's: what comes next is enqueued
    unsigned was_early;              ///< the kernel's: something was written before its end
    unsigned has_ended[most_blocks]; ///< the kernel's, set to 1 by its blocks when all else is done
};

/// What the kernel does. Addresses and sizes are multiples of 16 bytes.
struct LateWrite {
    struct Region {
        void* data = nullptr;
        std::size_t bytes = 0;
    };

    Region inputs;              ///< is written, last of all
    const void* kept = nullptr; ///< what to write there
    Region outputs;             ///< every byte must be 0xFF until then
    Region workspace;           ///< likewise
    LateFlags* flags = nullptr;
};

/// Enqueues the kernel: all its blocks trigger the next kernel's launch at once; they wait for `is_enqueued`, at most 20 ms, and
/// 0.2 ms more, so that the next kernel is at work if it does not wait; they look at outputs and workspace, and write the
/// inputs. It leaves at least half of the multiprocessors to the next kernel. That one may end first: look at `has_ended`.
cudaError_t launch_late_writer(cudaStream_t stream, const LateWrite& work);

/// Whether kernels may begin early on the current device (compute capability 9.0 and later), and this kernel was compiled
/// such that it lets them: for 9.0 or later.
cudaError_t late_writer_triggers(bool& does);

} // namespace nn::detail
