/// \file
/// Any callable as a graph, captured once a key and replayed afterwards.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/graph/capture.hpp>

namespace sluice {

/// Is told, once a key, why work runs eagerly instead of as a graph.
using RefusalHandler = void (*)(const char* reason);

/// Writes the reason to the standard error stream.
inline void print_refusal(const char* reason) {
    (void)std::fprintf(stderr, "sluice: %s; the work runs eagerly\n", reason);
}

/// How a `GraphCapture` works.
struct GraphOptions {
    /// Executables kept, at least 1; beyond, the least recently used one makes way.
    std::size_t capacity = 16;
    /// How often the work of a new key runs eagerly, on a side stream, before it is captured: libraries load kernels
    /// and make workspaces in their first calls. Each such run is the result of its call; none is repeated.
    int warmup = 1;
    /// See `capture`.
    CaptureOptions capture = {};
    /// After so many new keys in a row without a replay, further ones are not captured, since keys that never come again
    /// only cost; a replay lifts that. 0: never.
    std::size_t give_up_after = 64;
    /// Hands each new executable to the device at once, instead of with its first replay.
    bool upload = true;
    /// For looking for a fault, slow: before each replay the work is captured again and compared with what will be
    /// replayed, down to the arguments of kernels, and the device memory that it names is looked up. Where the work
    /// has changed under its key, or memory has been freed, `run` throws.
    bool check = false;
    RefusalHandler on_refusal = &print_refusal;
};

/// What a `GraphCapture` has done so far.
struct GraphCounters {
    std::uint64_t captures = 0;       ///< graphs recorded
    std::uint64_t instantiations = 0; ///< executables made
    std::uint64_t updates = 0;        ///< executables changed in place instead
    std::uint64_t replays = 0;        ///< executables launched
    std::uint64_t evictions = 0;      ///< keys that made way for others
    std::uint64_t refusals = 0;       ///< captures that were refused, or broke
};

/// The key of work that is always the same.
struct NoKey {
    friend bool operator==(NoKey, NoKey) noexcept { return true; }
};

/// One run of a `GraphCapture`, which must outlive it.
class Replay {
public:
    Replay() = default;
    Replay(const std::uint64_t* runs, bool replayed) : runs_(runs), run_(*runs), replayed_(replayed) {}

    /// Whether an executable was launched; otherwise the work ran eagerly.
    bool replayed() const noexcept { return replayed_; }
    /// Whether the outputs are still this run's: no later run of the same key has overwritten them.
    bool is_current() const noexcept { return runs_ == nullptr || *runs_ == run_; }
    /// Throws `Error` if they are not.
    void require_current() const {
        if (!is_current())
            throw Error(
                "the outputs of this run have been overwritten by a later run of the same key; copy them "
                "before, or give each run in flight a key and outputs of its own");
    }

private:
    const std::uint64_t* runs_ = nullptr;
    std::uint64_t run_ = 0;
    bool replayed_ = false;
};

/// Runs work as a graph: eagerly at first sight of a key, capturing it, and by one launch from then on.
///
/// A key stands for everything that the work reads on the host: shapes, pointers, scalars. Work that would enqueue
/// something else needs another key; what changes on the device, in buffers and `DeviceScalar`s, does not. Keys are of
/// any type with `==` that can be copied.
///
/// A capture that is refused (see `capture` for the reasons) costs nothing but the eager run: the key's work goes on
/// running eagerly, the reason is told once, `counters().refusals` counts it. Work called within another capture on
/// the same thread becomes part of that one.
///
/// Executables are kept in a cache of fixed size. A new graph goes into an executable that made way, where the driver
/// can update it, and into a new one otherwise. Steady state creates and allocates nothing.
///
/// One thread at a time. Belongs to the device that was current when it was made. Buffers that the work uses must
/// outlive the replays.
///
/// \code
/// sluice::GraphCapture<int> graphs;
/// graphs.run(stream, batch_size, [&](sluice::StreamRef s) { model.forward(s, input, output); });
/// \endcode
template <class Key = NoKey, Backend B = DefaultBackend>
requires std::equality_comparable<Key> && GraphBackend<B>
class GraphCapture {
public:
    using backend = B;
    using Ref = BasicStreamRef<B>;

    /// Throws `Error` when the capacity is 0 or the warm-up negative.
    explicit GraphCapture(const GraphOptions& options = {});

    GraphCapture(const GraphCapture&) = delete;
    GraphCapture& operator=(const GraphCapture&) = delete;

    /// Enqueues the key's work on `stream`: by replaying it, or by calling `work(stream)`. Throws `Error`, and what
    /// `work` throws when it runs eagerly.
    template <class F>
    Replay run(Ref stream, const Key& key, F&& work) {
        if constexpr (detail::check_work<B, F>())
            return run_fitting(stream, key, work);
        else
            return {};
    }
    template <class F>
    Replay run(Ref stream, F&& work) requires std::same_as<Key, NoKey> {
        return run(stream, NoKey{}, work);
    }

    /// Captures the key's work anew, since it has changed, and replays that. The executable is updated in place where
    /// the driver can. Throws `Error`, and what `work` throws when it runs eagerly.
    template <class F>
    Replay recapture(Ref stream, const Key& key, F&& work) {
        if constexpr (detail::check_work<B, F>())
            return recapture_fitting(stream, key, work);
        else
            return {};
    }

    /// Waits for eager runs that are under way on the side stream. Throws `Error` for a fault of their work, which on the
    /// Host backend no other stream knows of. Replays are the caller's stream's.
    void finish() const {
        if (side_)
            side_->synchronize();
    }
    /// Forgets such a fault.
    void clear_failure() noexcept {
        if (side_)
            B::clear_failure(side_->native());
    }

    const GraphCounters& counters() const noexcept { return counters_; }
    const GraphOptions& options() const noexcept { return options_; }

    /// Keys in the cache, those refused included.
    std::size_t size() const noexcept { return entries_.size(); }
    /// The key's graph and executable; null when it has none.
    const BasicGraph<B>* graph(const Key& key) const noexcept;
    const BasicExecutable<B>* executable(const Key& key) const noexcept;
    /// Whether keys come again, so that new ones are captured.
    bool settled() const noexcept {
        return options_.give_up_after == 0 || unsettled_ < options_.give_up_after;
    }
    /// Why the key's last capture was refused; empty when it was not.
    const std::string& refusal(const Key& key) const noexcept;

    /// Forgets all keys and their executables. Launches in flight come to their end.
    void clear() noexcept {
        entries_.clear();
        last_ = nullptr;
    }

private:
    enum class State { warming, ready, refused };
    struct Entry {
        explicit Entry(const Key& of) : key(of) {}
        Key key;
        State state = State::warming;
        int warm = 0;           // Eager runs so far.
        std::uint64_t used = 0; // When, counted in runs of the cache.
        std::uint64_t runs = 0;
        Entry* next = nullptr; // Whose turn it was after this one the last time.
        // In this order: an executable goes before the graph that it was made from.
        std::optional<BasicGraph<B>> graph;
        std::optional<BasicExecutable<B>> executable;
        std::vector<const void*> memory; // Device memory that the graph names; where checking is on.
        std::string reason;
    };

    template <class F>
    Replay run_fitting(Ref stream, const Key& key, F& work);
    template <class F>
    Replay recapture_fitting(Ref stream, const Key& key, F& work);
    Entry* find(const Key& key) noexcept;
    const Entry* find(const Key& key) const noexcept;
    Entry& admit(const Key& key);
    template <class F>
    void record(Entry& entry, Ref stream, F& work);
    template <class F>
    void check(Entry& entry, Ref stream, F& work);
    template <class F>
    void run_aside(Ref stream, F& work);
    void refuse(Entry& entry, const char* reason);
    void tell(const char* reason);

    GraphOptions options_;
    int device_;
    GraphCounters counters_;
    std::vector<std::unique_ptr<Entry>> entries_;
    Entry* last_ = nullptr;
    std::uint64_t clock_ = 0;
    std::size_t unsettled_ = 0; // New keys since the last replay.
    std::optional<BasicStream<B>> side_;
    int side_priority_ = 0;
    BasicEvent<B> fence_;
};

} // namespace sluice

#include <sluice/graph/detail/graph_capture.inl>
