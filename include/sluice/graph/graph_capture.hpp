/// \file
/// Any callable as a graph, captured when a key comes again and replayed from then on.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

#include <sluice/graph/detail/capture_core.hpp>
#include <sluice/graph/graph_options.hpp>

namespace sluice {

/// The key of work that is always the same.
struct NoKey {
    /// Always true.
    friend bool operator==(NoKey, NoKey) noexcept { return true; }
};

/// Runs work as a graph: eagerly when a key comes for the first time, then by one launch. The second run captures the
/// work and launches what it has captured. Each run has the effect of the work exactly once.
///
/// A key stands for everything that the work reads on the host: shapes, pointers, scalars. Work that would enqueue
/// something else needs another key; what changes on the device, in buffers and `DeviceScalar`s, does not. Keys are of
/// any type with `==` that can be copied; what either throws, the call that is given the key throws, and enqueues nothing.
///
/// A capture that is refused (see `capture` for the reasons) costs no more than the attempt: the key's work continues to
/// run eagerly, the reason is reported once, and `counters().refusals` counts it. A run calls the work at most once, but for
/// an attempt to capture it that is made again (see `capture`) or is refused: then the work is called again, and does again what
/// it does on the host, such as counting. What the work itself throws, `run` throws, and the next run of the key tries again.
/// `run` also throws an error that earlier calls left behind, without running the work, when it is about to run a new key or to
/// capture. Work called within another capture on the same thread becomes part of that one.
///
/// Work is captured on a stream of the `GraphCapture`'s own, with the priority and the share of the caller's stream. What other threads
/// enqueue on the caller's stream during the capture runs as usual. So the work must use the stream that it is given, and
/// streams that it forks from that one. Launches go to the caller's stream.
///
/// Executables are kept in a cache of fixed size. A new graph goes into the executable of the key that it replaces where
/// the driver can update it, and into a new one otherwise. Keys without a graph are remembered, as many as the capacity again
/// and at least 16, so that it is known when they come again. Steady state creates and allocates nothing.
///
/// One thread at a time. Belongs to the device that was current when it was made. Buffers that the work uses must
/// outlive the replays.
///
/// \code
/// sluice::GraphCapture<int> graphs;
/// graphs.run(stream, batch_size, [&](sluice::StreamRef s) { model.forward(s, input, output); });
/// \endcode
template <class Key = NoKey, GraphBackend B = DefaultBackend>
class GraphCapture {
    static_assert(std::is_same_v<Key, std::decay_t<Key>> && std::copy_constructible<Key>,
                  "sluice::GraphCapture: keys are kept: a key's type can be copied, and is neither const, a "
                  "reference nor an array");
    static_assert(std::equality_comparable<Key>,
                  "sluice::GraphCapture: keys are compared: a key's type must have operator==");

public:
    using backend = B;             ///< What runs the graphs.
    using Ref = BasicStreamRef<B>; ///< What work is called with.

    /// Throws `Error` for options out of range.
    explicit GraphCapture(const GraphOptions& options = {}) : core_(options, detail::key_ops<Key>) {}

    GraphCapture(const GraphCapture&) = delete;
    GraphCapture& operator=(const GraphCapture&) = delete;

    /// Enqueues the key's work in the order of `stream`: by replaying it, or by calling `work(s)`, with `stream` or one
    /// that forks from it. Does not wait for the device. Throws `Error`, and what `work` throws.
    template <class F>
    Replay run(Ref stream, const Key& key, F&& work);
    /// The same, for work without a key.
    template <class F>
    Replay run(Ref stream, F&& work) {
        static_assert(std::is_same_v<Key, NoKey>,
                      "sluice::GraphCapture: the key is missing, as in run(stream, key, work); work that is "
                      "always the same needs none in a GraphCapture<>");
        return run(stream, Key{}, work);
    }
    /// Does not compile: what comes behind the stream is no key.
    template <class K, class F>
    requires(!std::convertible_to<K, const Key&>) void run(Ref, K&&, F&&) {
        static_assert(sizeof(K) == 0, "sluice::GraphCapture: behind the stream comes a key of this "
                                      "GraphCapture's type, and then the work, as in run(stream, key, work)");
    }

    /// Like `run`, but calls `eager()` wherever `run` would run the work eagerly: it enqueues the same work in its own
    /// way, in the order of `stream`, with whatever device is current. `work(s)` is only called to be captured, by this
    /// object or by the capture that the calling thread is making. Throws `Error`, and what `work` and `eager` throw.
    ///
    /// `is_warm()` is asked once about a new key: true means that work of its kind has run before under other keys, and
    /// needs no eager run of its own. `before_launch()` is called before each launch.
    template <class F, std::invocable<> Eager, std::predicate<> IsWarm, std::invocable<> BeforeLaunch>
    Replay run_or(Ref stream, const Key& key, F&& work, Eager&& eager, IsWarm&& is_warm,
                  BeforeLaunch&& before_launch);
    /// The same, for a new key that is not warm, and with nothing before a launch.
    template <class F, std::invocable<> Eager>
    Replay run_or(Ref stream, const Key& key, F&& work, Eager&& eager) {
        return run_or(
            stream, key, work, eager, [] { return false; }, [] {});
    }

    /// Replays the key's work after calling `before_launch()`, if it can be replayed by now, and says whether. Does nothing
    /// otherwise: `run_or` does the rest. Throws `Error`.
    template <std::invocable<> BeforeLaunch>
    bool replay(Ref stream, const Key& key, BeforeLaunch&& before_launch);

    /// Captures the key's work anew, since it has changed, and replays that. The executable is updated in place where
    /// the driver can. Throws `Error`, and what `work` throws: the next run of the key captures it again then.
    template <class F>
    Replay recapture(Ref stream, const Key& key, F&& work);

    /// Waits for eager runs that are under way on the object's own stream. Throws `Error` for a fault of their work, which
    /// on the Host backend no other stream knows of. Replays are the caller's stream's.
    void finish() const { core_.finish(); }
    /// The object's own stream, if there is one by now: CUDA's backend keeps the fault of a captured host function with it.
    std::optional<Ref> capture_stream() const noexcept { return core_.capture_stream(); }
    /// Forgets such a fault.
    void clear_failure() noexcept { core_.clear_failure(); }

    /// What has been done so far.
    const GraphCounters& counters() const noexcept { return core_.counters(); }
    /// What the constructor was given.
    const GraphOptions& options() const noexcept { return core_.options(); }

    /// Keys that have a graph.
    std::size_t size() const noexcept { return core_.size(); }
    /// The key's graph, until the next call that may capture; null when it has none.
    const BasicGraph<B>* graph(const Key& key) const { return core_.graph(__builtin_addressof(key)); }
    /// The key's executable, until the next call that may capture; null when it has none.
    const BasicGraphExec<B>* executable(const Key& key) const {
        return core_.executable(__builtin_addressof(key));
    }
    /// Whether a graph may be made of which it is not known that it pays: see `GraphOptions::give_up_after`.
    bool settled() const noexcept { return core_.settled(); }
    /// Why the key's last capture was refused; empty when it was not.
    const std::string& refusal(const Key& key) const { return core_.refusal(__builtin_addressof(key)); }
    /// Why a capture was refused first, of any key, or what a comparison has found to have changed; empty while all is well.
    const std::string& first_refusal() const noexcept { return core_.first_refusal(); }

    /// Forgets all keys and their executables. Waits for nothing; launches in flight complete. Within the work of a run: when that
    /// run ends.
    void clear() noexcept { core_.clear(); }

private:
    detail::CaptureCore<B> core_;
};

} // namespace sluice

#include <sluice/graph/detail/graph_capture.inl>
