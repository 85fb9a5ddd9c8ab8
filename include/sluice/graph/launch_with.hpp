/// \file
/// Kernels in captured graphs whose arguments change from launch to launch.
#pragma once

#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

/// Launches `kernel` on `stream` with what `arguments()` gives: a `std::tuple` of values that convert to the kernel's parameters.
///
/// Where the launch is captured, by a `GraphCapture` or a graphed pipeline, `arguments()` is asked again before each launch of the
/// graph, on the thread that launches it, in the order of the captured launches. The kernel gets what it gives then; launches in
/// flight keep what they had. The sizes in `dims` stay. `arguments` is kept as long as the graph: what it refers to must outlive
/// that, so it is neither a local variable of the work nor, in a pipeline, a batch or a slot.
///
/// In a plain `capture`, whose launches are not reported, and in the body of a branch or a loop it is refused, as other work
/// that cannot be captured is. On the Host backend `kernel` is a function that does the work of all threads, and `dims` says nothing.
/// Throws `Error`, and what `arguments` throws.
///
/// \code
/// graph.run(stream, [&](sluice::StreamRef s) {
///     project(s, ...);
///     sluice::launch_with(s, {.grid = heads, .block = 128}, attend, [&] { return std::tuple(cache.data(), position); });
/// }); // `position` is a member: each token is one launch of the same graph
/// \endcode
template <GraphBackend B, class... Params, class Arguments>
void launch_with(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...),
                 Arguments arguments);
/// Does not compile: a kernel is a function, and the stream a reference.
template <class S, class Kernel, class Arguments>
void launch_with(const S&, const KernelDims&, const Kernel&, const Arguments&) {
    static_assert(sizeof(S) == 0, "sluice::launch_with: takes a StreamRef, dims, a kernel, which is a "
                                  "function and no lambda, and the lambda that gives its arguments");
}

} // namespace sluice

#include <sluice/graph/detail/launch_with.inl>
