// What a GraphCapture does below the type of its keys: runs, and the cache of graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>
#include <sluice/graph/graph_options.hpp>

namespace sluice::detail {

/// What can be done with keys of one type.
struct KeyOps {
    bool (*equal)(const void* a, const void* b);
    void* (*copy)(const void* key);
    void (*destroy)(void* key) noexcept;

    template <class Key>
    static bool equal_as(const void* a, const void* b) {
        return *static_cast<const Key*>(a) == *static_cast<const Key*>(b);
    }
    template <class Key>
    static void* copy_as(const void* key) {
        return new Key(*static_cast<const Key*>(key));
    }
    template <class Key>
    static void destroy_as(void* key) noexcept {
        delete static_cast<Key*>(key);
    }
};
template <class Key>
inline constexpr KeyOps key_ops{&KeyOps::equal_as<Key>, &KeyOps::copy_as<Key>, &KeyOps::destroy_as<Key>};

/// A key of a cache's own.
class KeptKey {
public:
    KeptKey(const KeyOps& ops, const void* key) : ops_(&ops), key_(ops.copy(key)) {}
    KeptKey& operator=(KeptKey&&) = delete;
    ~KeptKey() { ops_->destroy(key_); }
    bool is(const void* key) const { return ops_->equal(key_, key); }
    void swap(KeptKey& other) noexcept { std::swap(key_, other.key_); }

private:
    const KeyOps* ops_; // The same for all of a cache.
    void* key_;
};

/// Keys are passed by their addresses. Its functions do what the functions of `GraphCapture` of the same names do.
template <GraphBackend B>
class CaptureCore {
public:
    using Ref = BasicStreamRef<B>;
    using Work = WorkRef<B>;

    CaptureCore(const GraphOptions& options, const KeyOps& keys);
    CaptureCore& operator=(CaptureCore&&) = delete;
    ~CaptureCore();
    /// Refusals that are for the keys begin with this.
    void set_owner(const std::string& name) { whose_ = name + ": "; }

    Replay run(Ref stream, const void* key, Work work);
    /// `eagerly(warming)`: whether that is the eager run of a new key.
    Replay run_or(Ref stream, const void* key, Work work, CallRef<void(bool)> eagerly,
                  CallRef<bool()> is_warm, CallRef<void()> before_launch);
    bool replay(Ref stream, const void* key, CallRef<void()> before_launch);
    Replay recapture(Ref stream, const void* key, Work work);
    void finish() const {
        if (own_)
            own_->sync();
    }
    std::optional<Ref> capture_stream() const noexcept {
        return own_ ? std::optional<Ref>(own_->ref()) : std::nullopt;
    }
    void clear_failure() noexcept {
        if (own_)
            B::clear_failure(own_->get());
    }
    const GraphCounters& counters() const noexcept { return counters_; }
    const GraphOptions& options() const noexcept { return options_; }
    std::size_t size() const noexcept;
    const BasicGraph<B>* graph(const void* key) const;
    const BasicGraphExec<B>* executable(const void* key) const;
    bool settled() const noexcept { return options_.give_up_after == 0 || allowance_ > 0; }
    const std::string& refusal(const void* key) const;
    const std::string& first_refusal() const noexcept { return first_refusal_; }
    void clear() noexcept;

private:
    enum class State { warming, ready, refused };
    struct Entry;
    struct Running; // While there is one, no entry goes.

    Entry* find(const void* key);
    const Entry* find(const void* key) const;
    Entry& admit(const void* key);
    struct Room {
        bool is_there = false;
        Entry* instead_of = nullptr; // Whose executable the new graph takes over.
    };
    Room find_room(const Entry& entry, bool is_new);
    void forget_graph(Entry& entry) noexcept;
    std::size_t most_known() const noexcept {
        return options_.capacity + (options_.capacity < 16 ? 16 : options_.capacity);
    }
    Replay launch(Entry& entry, Ref stream);
    void launch_entry(Entry& entry, Ref stream);
    void record(Entry& entry, Ref stream, Work work, Entry* instead_of = nullptr);
    void check(Entry& entry, Ref stream, Work work);
    void compare(Entry& entry, Ref stream, Work work);
    bool is_new(const Entry& entry) const noexcept;
    static std::string change_of(const BasicGraph<B>& a, const ReplayHooks<B>& hooks_of_a,
                                 const BasicGraph<B>& b, const ReplayHooks<B>& hooks_of_b);
    void make_executable(Entry& entry, Ref stream, BasicGraph<B> graph, ReplayHooks<B> hooks);
    void run_aside(Ref stream, Work work);
    Ref own_stream(Ref like);
    void refuse(Entry& entry, const std::string& reason, bool quiet = false);
    void tell(const std::string& reason);
    // Counts a run, which from time to time allows another graph that may not pay.
    std::uint64_t tick() noexcept {
        if (++clock_ % runs_an_allowance == 0 && allowance_ < options_.give_up_after)
            ++allowance_;
        return clock_;
    }

    static constexpr std::uint64_t runs_an_allowance = 64;
    static constexpr std::size_t most_told = 32; // Further reasons are told each time.

    const KeyOps& keys_;
    GraphOptions options_;
    int device_;
    GraphCounters counters_;
    std::string first_refusal_;
    std::string whose_; // keys these are, before what is said of them
    List<Owned<Entry>> entries_;
    Entry* last_ = nullptr;
    int running_ = 0;
    bool cleared_ = false; // By the work that runs, whose entries go behind it.
    std::uint64_t clock_ = 0;
    std::size_t new_in_a_row_ = 0; // New keys since the last launch.
    std::size_t allowance_;        // Graphs that may be made now without knowing that they pay.
    List<std::string> told_;       // Reasons.
    Maybe<BasicStream<B>> own_;    // Where work is warmed up and captured.
    StreamOptions own_like_;
    BasicEvent<B> fence_;
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/graph/detail/capture_core.inl>
#include <sluice/graph/detail/capture_entries.inl>
#endif
