// What the calling thread does at the moment, as the checker takes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::detail::checked {

/// Above 0 while the calling thread tells the checker something: what it allocates is the checker's.
inline int& bookkeeping() noexcept {
    thread_local int depth = 0;
    return depth;
}

struct BookkeepingScope {
    BookkeepingScope() noexcept { ++bookkeeping(); }
    BookkeepingScope& operator=(BookkeepingScope&&) = delete;
    ~BookkeepingScope() { --bookkeeping(); }
};

/// A stream's, an event's, a graph's… handle.
using Key = const void*;

template <class Native>
Key key_of(Native native) noexcept {
    return static_cast<Key>(native);
}

/// Calls within sluice, whose unnecessary waits are not reported.
class InternalScope {
public:
    InternalScope() noexcept { ++depth(); }
    InternalScope& operator=(InternalScope&&) = delete;
    ~InternalScope() { --depth(); }
    static int& depth() noexcept {
        thread_local int depth = 0;
        return depth;
    }
};

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

/// Copies within which the host's side is the caller's alone: they are waited for.
class HostSideScope {
public:
    HostSideScope() noexcept { ++depth(); }
    HostSideScope& operator=(HostSideScope&&) = delete;
    ~HostSideScope() { --depth(); }
    static bool active() noexcept { return depth() > 0; }

private:
    static int& depth() noexcept {
        thread_local int depth = 0;
        return depth;
    }
};

/// Calls whose accesses are not noted: they write what is undefined anyway.
class BlindScope {
public:
    BlindScope() noexcept { ++depth(); }
    BlindScope& operator=(BlindScope&&) = delete;
    ~BlindScope() { --depth(); }
    static bool active() noexcept { return depth() > 0; }

private:
    static int& depth() noexcept {
        thread_local int depth = 0;
        return depth;
    }
};

/// Calls that must not throw: what is found is left to the next call of others.
class QuietScope {
public:
    explicit QuietScope(bool quiet) noexcept : quiet_(quiet) { depth() += quiet ? 1 : 0; }
    QuietScope& operator=(QuietScope&&) = delete;
    ~QuietScope() { depth() -= quiet_ ? 1 : 0; }
    static bool active() noexcept { return depth() > 0; }

private:
    static int& depth() noexcept {
        thread_local int depth = 0;
        return depth;
    }
    bool quiet_;
};

} // namespace sluice::detail::checked
