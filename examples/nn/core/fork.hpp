/// \file
/// A second stream for a scope, joined at its end even if an exception leaves the scope.
#pragma once

#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// Forks work to a second stream. The caller's stream waits for it at the end of the scope, also when an exception leaves
/// the scope: the caller may then free what the second stream uses, in the order of its own stream, and may end a
/// capture.
template <sluice::Backend B>
class Fork {
public:
    /// Does not fork yet. `joined` is recorded by `join`; it must outlive the fork, as both streams must.
    Fork(sluice::BasicStreamRef<B> stream, sluice::BasicStreamRef<B> side,
         sluice::BasicEvent<B>& joined) noexcept
        : stream_(stream), side_(side), joined_(joined) {}
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;
    /// Joins, unless that is done. Drops an error, since the scope is then left by an exception.
    ~Fork();

    /// The side stream waits for the work that the stream holds so far; `reached` is recorded there.
    /// Throws `sluice::Error`.
    void follow(sluice::BasicEvent<B>& reached);

    /// The stream waits for all work of the side stream. Throws `sluice::Error`.
    void join();

private:
    sluice::BasicStreamRef<B> stream_;
    sluice::BasicStreamRef<B> side_;
    sluice::BasicEvent<B>& joined_;
    bool forked_ = false;
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
void Fork<B>::follow(sluice::BasicEvent<B>& reached) {
    reached.record(stream_);
    side_.wait(reached);
    forked_ = true;
}

template <sluice::Backend B>
void Fork<B>::join() {
    if (!forked_)
        return;
    joined_.record(side_);
    stream_.wait(joined_);
    forked_ = false;
}

template <sluice::Backend B>
Fork<B>::~Fork() {
    try {
        join();
    } catch (...) {
    }
}

} // namespace nn
