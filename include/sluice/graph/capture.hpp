/// \file
/// Guarded capture: a stream's work as a graph, or the reason why not.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <sluice/backend/capture_ledger.hpp>
#include <sluice/graph/graph.hpp>

namespace sluice {

/// How work is captured.
struct CaptureOptions {
    /// Whose other calls could disturb the capture, and are refused by the driver meanwhile.
    CaptureMode mode = CaptureMode::this_thread;
    /// Looks whether the work uses the legacy default stream, of which a capture sees nothing. Meanwhile work of any
    /// thread on that stream is held back, for at most 10 ms; if another thread keeps using it the capture is tried
    /// up to three times.
    bool watch_default_stream = true;
};

/// Calls `work(stream)` while `stream` records instead of running, and returns what was recorded. Nothing runs.
///
/// The work may fork onto other streams with events, and must join them again. It may not wait, allocate without a
/// stream, use the default stream, or wait for an event recorded before. A capture that would replay something else
/// than the work is refused: throws `Error` with the reason, for
///
/// - the default stream, as `stream` or within the work,
/// - an exception or a failed call within the work, also one whose result the work ignores,
/// - a fork that is not joined, and a capture without any operation,
/// - an operation that was issued (see `expect_operations`) and left out, or went to a stream that records nothing,
/// - an error that an earlier call left behind; it is forgotten then.
///
/// After a refusal nothing is being recorded any longer. The work may have been called up to three times.
template <Backend B, class F>
requires GraphBackend<B> BasicGraph<B> capture(BasicStreamRef<B> stream, F&& work,
                                               const CaptureOptions& options = {});

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

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

/// Refuses, with a readable message, what cannot be called as work on a stream of `B`.
template <GraphBackend B, class F>
constexpr bool check_work() {
    constexpr bool fits = std::invocable<F&, BasicStreamRef<B>>;
    static_assert(
        fits,
        "sluice: work to be captured must be callable as work(stream), with the stream that it enqueues on");
    return fits;
}

/// The text of what `call()` throws; empty if it throws nothing.
template <class F>
std::string thrown_text(F&& call) {
    try {
        call();
    } catch (const std::exception& exception) {
        return exception.what();
    } catch (...) {
        return "an exception of an unknown type";
    }
    return {};
}

/// Makes the ledger the capture's own for the length of a scope.
class LedgerScope {
public:
    LedgerScope() noexcept : former_(capture_ledger()) {
        capture_ledger() = CaptureLedger{.depth = former_.depth + 1};
    }
    LedgerScope(const LedgerScope&) = delete;
    LedgerScope& operator=(const LedgerScope&) = delete;
    ~LedgerScope() { capture_ledger() = former_; }

private:
    CaptureLedger former_;
};

/// Records once. Returns the graph, or why there is none in `reason`.
template <GraphBackend B, class F>
std::optional<BasicGraph<B>> capture_once(BasicStreamRef<B> stream, F& work, CaptureMode mode,
                                          std::string& reason) {
    const LedgerScope scope;
    B::begin_capture(stream.native(), mode);
    reason = thrown_text([&] { work(stream); });
    if (!reason.empty())
        reason = "the work threw: " + reason;
    // Before the end of the capture, which has an error of its own for all that went wrong.
    const std::string left = thrown_text([] { B::check_launches(); });
    if (reason.empty() && !left.empty())
        reason = "a call within the work failed and was left out: " + left;

    std::optional<BasicGraph<B>> graph;
    const std::string ended =
        thrown_text([&] { graph.emplace(GraphAccess::own<B>(B::end_capture(stream.native()))); });
    if (reason.empty() && !ended.empty())
        reason = ended;
    if (!reason.empty())
        return std::nullopt;

    const CaptureLedger& ledger = capture_ledger();
    const std::size_t nodes = graph->nodes() + ledger.in_bodies;
    if (ledger.outside > 0) {
        reason = std::to_string(ledger.outside) +
                 " of the work's operations went to a stream that was not being captured";
    } else if (nodes == 0) {
        reason = "nothing was captured: the work enqueued no operation on the stream that it was handed";
    } else if (nodes < ledger.issued) {
        reason = "the driver left operations out: " + std::to_string(ledger.issued) + " were issued and " +
                 std::to_string(nodes) + " captured";
    } else {
        return graph;
    }
    return std::nullopt;
}

} // namespace detail

template <Backend B, class F>
requires GraphBackend<B> BasicGraph<B> capture(BasicStreamRef<B> stream, F&& work,
                                               const CaptureOptions& options) {
    (void)detail::check_work<B, F>();
    if (B::is_default_stream(stream.native()))
        throw Error("capture refused: the default stream cannot be captured; expected a stream of its own");
    const std::string stale = detail::thrown_text([] { B::check_launches(); });
    if (!stale.empty())
        throw Error("capture refused: an earlier call had left an error behind: " + stale);

    std::string reason;
    const int attempts = options.watch_default_stream ? 3 : 1;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        std::optional<typename B::DefaultStreamWatch> watch;
        if (options.watch_default_stream)
            watch.emplace();
        std::optional<BasicGraph<B>> graph = detail::capture_once(stream, work, options.mode, reason);
        if (!graph)
            break;
        if (!watch || !watch->used())
            return std::move(*graph);
        reason =
            "the default stream was used meanwhile, by the work or by another thread, and a capture sees "
            "nothing of that; use the stream that the work is handed";
    }
    throw Error("capture refused: " + reason);
}

} // namespace sluice
