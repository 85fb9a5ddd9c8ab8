// Holds streams up until the host lets them go on.
#pragma once

#include <atomic>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

#include "support/stream_ops.hpp"

namespace sluice::test {

/// A gate that streams wait at until the host opens it, on any backend. Must outlive the work that waits; a
/// test that forgets to open it goes on after `ops::hold_limit_milliseconds`, and fails.
template <Backend B>
class Gate {
public:
    Gate() : flag_(1) {
        flag_[0] = 0;
        // A kernel is loaded at its first launch, which may wait for kernels that run: not for this one.
        const BasicStream<B> stream;
        ops::load_kernels(stream.native());
    }

    /// Later work of `stream` waits until the gate is open.
    void hold(BasicStreamRef<B> stream) { ops::hold(stream.native(), flag_.data()); }
    void open() { std::atomic_ref<Word>(flag_[0]).store(1); }

private:
    PinnedBuffer<Word, B> flag_;
};

} // namespace sluice::test
