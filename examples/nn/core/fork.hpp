/// \file
/// Work beside a stream, which waits for it in the end, whatever happens in between.
#pragma once

#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// For the scope that it lives in, a second stream beside the caller's. The caller's waits for it at the end of the
/// scope, also when that is left by an exception: memory that the second stream is still at work on is then as safe
/// as before, and a capture of the caller's stream can be ended.
template <sluice::Backend B>
class Fork {
public:
    /// Nothing is forked yet. `joined` is recorded when the streams meet again; it outlives the fork, as both streams
    /// do.
    Fork(sluice::BasicStreamRef<B> stream, sluice::BasicStreamRef<B> side,
         sluice::BasicEvent<B>& joined) noexcept
        : stream_(stream), side_(side), joined_(joined) {}
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;
    /// Joins, unless that is done: then an exception is on its way, and a second one is left out.
    ~Fork();

    /// What is enqueued on the side from here on comes after what the stream holds so far, which `reached` marks.
    /// Throws `sluice::Error`.
    void follow(sluice::BasicEvent<B>& reached);

    /// What is enqueued on the stream from here on comes after all that is on the side. Throws `sluice::Error`.
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
