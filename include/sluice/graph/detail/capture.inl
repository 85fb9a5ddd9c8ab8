// The body of capture.hpp, and what GraphCapture shares with it.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice {

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

/// Work on a stream of `B`, of whatever type.
template <Backend B>
using WorkRef = CallRef<void(BasicStreamRef<B>)>;

/// The text of what `call()` throws; empty if it throws nothing.
std::string thrown_text(CallRef<void()> call);

/// Throws `Error` for an error that a call before `this_one` has left behind, and forgets it.
template <GraphBackend B>
void throw_if_left_behind(const char* this_one) {
    try {
        B::check_launches();
    } catch (const Error& error) {
        std::throw_with_nested(error.after("an earlier call, before this " + std::string(this_one) +
                                           ", had left an error behind: "));
    }
}

/// Makes the ledger the capture's own for the length of a scope.
class LedgerScope {
public:
    LedgerScope() noexcept : former_(capture_ledger()) {
        capture_ledger() = CaptureLedger{.depth = former_.depth + 1};
    }
    LedgerScope& operator=(LedgerScope&&) = delete;
    ~LedgerScope() { capture_ledger() = former_; }

private:
    CaptureLedger former_;
};

/// Looks after the per-thread default stream, on backends that have one.
template <GraphBackend B>
class PerThreadWatch {
public:
    bool used() const noexcept { return false; }
};
template <GraphBackend B>
requires requires { typename B::PerThreadStreamWatch; }
class PerThreadWatch<B> : public B::PerThreadStreamWatch {};

/// Why work was not captured.
struct Refusal {
    std::string reason;
    bool quiet = false; // Known before, and not reported.
};

/// Whether the error is the driver's way to forbid a call during a capture.
bool forbidden_by_capture(const Error& error);

/// Why work that has thrown `thrown` cannot be captured. Throws it on where the capture is not to blame: it was `intact`
/// then, and no forbidden call has failed.
Refusal refusal_of(const std::exception_ptr& thrown, bool intact);

/// Throws `Error` for a mode that has no name.
void require_capture_mode(const CaptureOptions& options);

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void require_capture_mode(const CaptureOptions& options) {
    require_named("CaptureOptions::mode", options.mode, CaptureMode::relaxed,
                  "this_thread, global or relaxed");
}

SLUICE_BODY std::string thrown_text(CallRef<void()> call) {
    try {
        call();
    } catch (...) {
        return words_of_handled();
    }
    return {};
}

SLUICE_BODY bool forbidden_by_capture(const Error& error) {
    return error.name().starts_with("cudaErrorStreamCapture") || error.name() == "cudaErrorCapturedEvent";
}

SLUICE_BODY Refusal refusal_of(const std::exception_ptr& thrown, bool intact) {
    try {
        std::rethrow_exception(thrown);
    } catch (const NotCapturable& exception) {
        return {exception.what(), exception.quiet()};
    } catch (const Error& error) {
        if (intact && !forbidden_by_capture(error))
            throw;
        return {std::string("the work threw: ") + error.what()};
    } catch (const std::exception& exception) {
        if (intact)
            throw;
        return {std::string("the work threw: ") + exception.what()};
    } catch (...) {
        if (intact)
            throw;
        return {"the work threw an exception of an unknown type"};
    }
}
#endif

/// Records once, on `stream` itself. Returns the graph, or why there is none in `refusal`. Throws what the work throws,
/// where that has nothing to do with the capture.
template <GraphBackend B>
Maybe<BasicGraph<B>> capture_once(BasicStreamRef<B> stream, WorkRef<B> work, const CaptureOptions& options,
                                  ReplayHooks<B>* hooks, Refusal& refusal) {
    refusal = {};
    std::string& reason = refusal.reason;
    if (hooks != nullptr)
        hooks->clear();
    const LedgerScope ledger_scope;
    const ReplayHooksScope<B> hooks_scope(hooks);
    Maybe<PerThreadWatch<B>> watch;
    if (options.watch_per_thread_stream)
        watch.emplace();
    reason = thrown_text([&] { B::begin_capture(stream.get(), options.mode); });
    if (!reason.empty())
        return nullptr;

    std::exception_ptr thrown;
    try {
        work(stream);
    } catch (...) {
        thrown = std::current_exception();
    }
    // Both before the end of the capture, which has an error of its own for all that went wrong.
    bool intact = true;
    if constexpr (requires { B::capturing_graph(stream.get()); })
        intact = thrown_text([&] { (void)B::capturing_graph(stream.get()); }).empty();
    try {
        B::check_launches();
    } catch (const Error& error) {
        reason = std::string("a call within the work failed and was left out: ") + error.what();
        intact = intact && !forbidden_by_capture(error);
    }

    Maybe<BasicGraph<B>> graph;
    const std::string ended =
        thrown_text([&] { graph.emplace(GraphAccess::own<B>(B::end_capture(stream.get()))); });
    const bool per_thread_used = watch && watch->used();
    if (thrown != nullptr) {
        if constexpr (!requires { B::capturing_graph(stream.get()); })
            intact = intact && ended.empty();
        refusal = refusal_of(thrown, intact);
        return nullptr;
    }
    if (reason.empty())
        reason = ended;
    if (!reason.empty())
        return nullptr;

    const CaptureLedger& ledger = capture_ledger();
    const std::size_t nodes = graph->nodes() + ledger.in_bodies - ledger.marks;
    if (per_thread_used) {
        reason = "the per-thread default stream was used meanwhile, and a capture sees nothing of that; use "
                 "the stream that the work is handed";
    } else if (ledger.outside > 0) {
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
    return nullptr;
}

/// What `capture` does, on `stream` itself, which no other code may use meanwhile; what wants to be told of replays goes to
/// `hooks`. Returns the graph, or why there is none in `refusal`. Throws what the work throws, where that has nothing to
/// do with the capture.
template <GraphBackend B>
Maybe<BasicGraph<B>> try_capture(BasicStreamRef<B> stream, WorkRef<B> work, const CaptureOptions& options,
                                 ReplayHooks<B>* hooks, Refusal& refusal) {
    // Within another capture on this thread, the watch would break that one, which has a watch of its own.
    const bool watches = options.watch_default_stream && !capturing();
    const int attempts = watches ? 6 : 1;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        Maybe<typename B::DefaultStreamWatch> watch;
        if (watches)
            watch.emplace(attempt);
        Maybe<BasicGraph<B>> graph = capture_once(stream, work, options, hooks, refusal);
        if (!graph || !watch || !watch->used())
            return graph;
        refusal.reason = "the default stream was used meanwhile, by the work or by another thread, and a "
                         "capture sees nothing of that; use the stream that the work is handed";
    }
    return nullptr;
}

} // namespace detail

template <Backend B, class F>
requires GraphBackend<B> BasicGraph<B> capture(BasicStreamRef<B> stream, F&& work,
                                               const CaptureOptions& options) {
    static_assert(detail::check_work<B, F>());
    detail::require_callable("capture: the work", work);
    if (B::is_default_stream(stream.get()))
        throw Error("capture refused: the default stream cannot be captured; expected a stream of its own");
    detail::require_capture_mode(options);
    detail::throw_if_left_behind<B>("capture");
    const DeviceGuard<B> device(stream.device());
    const BasicStream<B> recording(detail::options_like(stream));
    detail::Refusal refusal;
    detail::Maybe<BasicGraph<B>> graph =
        detail::try_capture<B>(recording.ref(), work, options, nullptr, refusal);
    if (!graph)
        throw Error("capture refused: " + refusal.reason);
    return std::move(*graph);
}

} // namespace sluice
