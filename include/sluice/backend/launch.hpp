/// \file
/// Kernels that begin while the one before them on their stream ends (programmatic dependent launch): what it takes to start a
/// kernel is hidden, in captured graphs too.
#pragma once

#include <type_traits>

#include <sluice/backend/error.hpp>
#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

/// In a kernel that may begin early: waits until all that comes before it on its stream, or in its graph, is over and can be seen.
///
/// - **Every thread calls it before it touches memory** that earlier work writes, or writes what earlier work reads; work behind
///   an event that the stream waits for is earlier work too. Before, a thread may compute, fill shared memory, and read its
///   arguments and memory that nothing under way writes, such as constant tables.
/// - **A kernel that never calls it may end before the kernels in front of it**, and what comes next, be it a kernel, a copy, an
///   event or the host, takes these for done. So each kernel that may begin early calls it, also one that reads nothing of theirs.
///
/// Returns at once in a kernel that was launched as usual, and in a function that the host calls.
SLUICE_HOST_DEVICE inline void wait_for_earlier_kernels() noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// In a kernel: the next one may begin, once a thread of each block has called this or the block has ended; without a call, when
/// all blocks have ended. Says nothing of memory: the next kernel waits by itself for all that this one writes.
///
/// Best called after `wait_for_earlier_kernels`: what the next kernel meets before its own wait is then this kernel alone. Called
/// before, kernels further ahead may still run as well. Waiting blocks take room on the device, so a kernel with much work calls
/// it near its end.
SLUICE_HOST_DEVICE inline void let_next_kernel_begin() noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Enqueues `kernel(arguments...)` on `stream`; it may begin as soon as the kernel before it there lets it
/// (`let_next_kernel_begin`) or has ended, and calls `wait_for_earlier_kernels`, with what that asks of a kernel.
///
/// It pairs a kernel with the kernel right before it: behind a copy, a fill, a host function, a graph's launch, and on a stream
/// that was idle, it begins as usual. In a capture, and in a replay, the edge between the two is a programmatic one. A launch as
/// usual where code of the kernel for this device cannot wait, on GPUs older than compute capability 9.0 or compiled for such, and
/// with CUDA before 12.3.
/// On the Host backend `kernel` is a function that does the work of all threads; it is called in the order of the stream, and
/// `dims` says nothing.
///
/// Arguments convert to the kernel's parameters, and are copied. Throws `Error`. Waits for nothing.
///
/// \code
/// __global__ void scale(float* x, std::size_t count, float factor) {
///     const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
///     sluice::wait_for_earlier_kernels();
///     if (i < count)
///         x[i] *= factor;
///     sluice::let_next_kernel_begin();
/// }
/// sluice::launch_early(stream, {.grid = blocks, .block = 256}, scale, x.data(), x.size(), 2.0f);
/// \endcode
template <GraphBackend B, class... Params>
void launch_early(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...),
                  const std::type_identity_t<Params>&... arguments);
/// Does not compile: a kernel is a function, and the stream a reference.
template <class S, class Kernel, class... Arguments>
requires(std::is_class_v<Kernel> || requires(const S& stream) {
    stream.ref();
}) void launch_early(const S&, const KernelDims&, const Kernel&, const Arguments&...) {
    static_assert(sizeof(S) == 0, "sluice::launch_early: takes a StreamRef, dims, a kernel, which is a "
                                  "function and no lambda, and its arguments");
}

namespace detail {

/// Whether a kernel of `B` is a function that its stream calls.
template <class B>
inline constexpr bool calls_functions = std::is_same_v<typename B::NativeStream, host::Queue*>;

template <GraphBackend B, class... Params>
void launch_kernel(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...), bool early,
                   std::decay_t<Params>... values) {
    if constexpr (calls_functions<B>) {
        require_callable("launch: the kernel", kernel);
        B::enqueue(stream.get(), [=] { kernel(values...); });
    } else {
        void* pointers[] = {static_cast<void*>(__builtin_addressof(values))..., nullptr};
        B::launch_kernel(stream.get(), dims, reinterpret_cast<void*>(kernel), pointers, early);
    }
}

} // namespace detail

template <GraphBackend B, class... Params>
void launch_early(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...),
                  const std::type_identity_t<Params>&... arguments) {
    static_assert(detail::calls_functions<B> || KernelGraphBackend<B>,
                  "sluice::launch_early: the stream's backend launches no kernels");
    detail::launch_kernel<B, Params...>(stream, dims, kernel, true, arguments...);
}

} // namespace sluice
