/// \file
/// Guarded capture: a stream's work as a graph, or the reason why not.
#pragma once

#include <cstddef>
#include <utility>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/cuda/launches_per_thread.hpp>
#include <sluice/graph/graph.hpp>

namespace sluice {

/// How work is captured.
struct CaptureOptions {
    /// The threads whose calls the driver refuses during the capture where they could disturb it.
    CaptureMode mode = CaptureMode::this_thread;
    /// Checks whether the work uses the legacy default stream, of which a capture sees nothing. Work of any thread on that
    /// stream is held back during the capture, for at most 10 ms. If another thread keeps using it, the capture is tried up
    /// to six times, in the end with 40 ms.
    bool watch_default_stream = true;
    /// Checks whether the work uses the per-thread default stream (`cudaStreamPerThread`), of which a capture sees nothing
    /// either. During the capture the driver refuses the legacy default stream to every thread, so that a plain
    /// `cudaMemcpy` elsewhere in the program fails, and the work cannot fork onto the per-thread stream. On by default only
    /// in programs compiled with `--default-stream per-thread`, where a launch without a stream uses it.
    bool watch_per_thread_stream = detail::launches_per_thread;
};

/// Calls `work(s)` with a stream `s` that records instead of running, and returns what was recorded. Nothing runs.
///
/// `s` is made for the capture, with the device, the priority and the share of `stream`, and destroyed at its end. What other
/// threads enqueue on `stream` during the capture runs as usual. The work must use `s`, not `stream`. While it is called
/// the device of `stream` is current.
///
/// The work may fork onto other streams with events, and must join them again. It may not wait, allocate without a
/// stream, use the default stream, or wait for an event recorded before. A capture that would replay something else
/// than the work is refused; `Error` says why. The reasons are
///
/// - the default stream, as `stream` or within the work,
/// - a call within the work that a capture forbids, or that failed, also one whose result the work ignores,
/// - a fork that is not joined, and a capture without any operation,
/// - an operation that was issued (see `expect_operations`) and left out, or went to a stream that records nothing.
///
/// Throws what the work throws for another reason than that it was captured. Throws `Error` for an error that an earlier
/// call left behind, without calling the work, and clears that error. After an exception nothing is being recorded any
/// longer. The work may have been called up to six times.
template <Backend B, class F>
requires GraphBackend<B> BasicGraph<B> capture(BasicStreamRef<B> stream, F&& work,
                                               const CaptureOptions& options = {});

/// The same, with the stream's owner.
template <Backend B, class F>
requires GraphBackend<B> BasicGraph<B> capture(const BasicStream<B>& stream, F&& work,
                                               const CaptureOptions& options = {}) {
    return capture(stream.ref(), std::forward<F>(work), options);
}

/// Tells a capture in progress on this thread that the work has issued `operations` by calls of its own, each of which
/// should be a node. What sluice itself enqueues is counted already. Without a capture it does nothing.
inline void expect_operations(std::size_t operations) noexcept {
    detail::CaptureLedger& ledger = detail::capture_ledger();
    if (ledger.depth > 0)
        ledger.issued += operations;
}

/// Whether a guarded capture runs on this thread: what is enqueued now is recorded and does not run.
inline bool capturing() noexcept { return detail::capture_ledger().depth > 0; }

} // namespace sluice

#include <sluice/graph/detail/capture.inl>
