// What the calling thread does at the moment, as the checker takes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::detail::checked {

/// While there are any on the calling thread, it is within what `Kind` names.
template <class Kind>
class CountedScope {
public:
    /// Where `counts` is false it does nothing.
    explicit CountedScope(bool counts = true) noexcept : counts_(counts) { depth() += counts_ ? 1 : 0; }
    CountedScope& operator=(CountedScope&&) = delete;
    ~CountedScope() { depth() -= counts_ ? 1 : 0; }
    static bool active() noexcept { return depth() > 0; }
    static int& depth() noexcept {
        thread_local int depth = 0;
        return depth;
    }

private:
    bool counts_;
};

/// The calling thread tells the checker something: what it allocates is the checker's.
using BookkeepingScope = CountedScope<struct Bookkeeping>;
/// Calls within sluice, whose unnecessary waits are not reported.
using InternalScope = CountedScope<struct Internal>;
/// Copies within which the host's side is the caller's alone: they are waited for.
using HostSideScope = CountedScope<struct HostSide>;
/// Calls whose accesses are not noted: they write what is undefined anyway.
using BlindScope = CountedScope<struct Blind>;
/// Calls that must not throw: what is found is left to the next call of others.
using QuietScope = CountedScope<struct Quiet>;

/// A stream's, an event's, a graph's… handle.
using Key = const void*;

template <class Native>
Key key_of(Native native) noexcept {
    return static_cast<Key>(native);
}

struct NoScope {
    NoScope() noexcept {}
};

/// The stage that the calling thread calls.
struct StageScope {
    StageScope(std::uint32_t stage, std::uint64_t batch, Key stream) noexcept
        : label(stage), number(batch), on(stream), outer(current()), outer_depth(InternalScope::depth()) {
        current() = this;
        InternalScope::depth() = 0;
    }
    StageScope& operator=(StageScope&&) = delete;
    ~StageScope() {
        current() = outer;
        InternalScope::depth() = outer_depth;
    }
    static StageScope*& current() noexcept {
        thread_local StageScope* scope = nullptr;
        return scope;
    }
    std::uint32_t label;
    std::uint64_t number;
    Key on;
    std::size_t waits = 0; ///< That the callable has made so far.
    StageScope* outer;
    int outer_depth;
};

} // namespace sluice::detail::checked
