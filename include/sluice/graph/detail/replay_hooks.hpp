// What captured work wants to be told of each replay.
#pragma once

#include <utility>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// What a graph of `B` is launched as.
template <class B>
struct ReplayExecOf {
    using type = void*;
};
template <class B>
requires requires { typename B::NativeGraphExec; }
struct ReplayExecOf<B> {
    using type = typename B::NativeGraphExec;
};
template <class B>
using ReplayExec = typename ReplayExecOf<B>::type;

/// Told of each launch of the graph that it was captured into, on the thread that launches.
template <Backend B>
class ReplayHook {
public:
    ReplayHook& operator=(ReplayHook&&) = delete;
    virtual ~ReplayHook() = default;

    /// The graph is about to be launched as `executable`. May wait for what its last launch left to be picked up. Throws `Error`.
    virtual void before_replay(ReplayExec<B> executable) = 0;
    /// The graph has been launched on `stream`. Throws `Error`.
    virtual void after_replay(BasicStreamRef<B> stream) = 0;
    /// Appends the addresses that this capture alone was given, and that another capture of the same work will not have.
    virtual void append_own_memory(std::vector<const void*>& addresses) const = 0;
    /// Whether it changes nodes of the executable, which has to be made from this capture then: one that was updated still knows
    /// the nodes of the capture that it was made from.
    virtual bool changes_nodes() const noexcept { return false; }
};

template <Backend B>
using ReplayHooks = List<Shared<ReplayHook<B>>>;

/// Where the capture on the calling thread keeps hooks; null where none is under way, or they would not be called, as
/// in a plain `capture`.
template <Backend B>
ReplayHooks<B>*& replay_hooks() noexcept {
    thread_local ReplayHooks<B>* hooks = nullptr;
    return hooks;
}

/// Makes `hooks` the place for hooks for the length of a scope.
template <Backend B>
class ReplayHooksScope {
public:
    explicit ReplayHooksScope(ReplayHooks<B>* hooks) noexcept
        : former_(std::exchange(replay_hooks<B>(), hooks)) {}
    ReplayHooksScope& operator=(ReplayHooksScope&&) = delete;
    ~ReplayHooksScope() { replay_hooks<B>() = former_; }

private:
    ReplayHooks<B>* former_;
};

} // namespace sluice::detail
