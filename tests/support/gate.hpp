// Holds streams up until the host lets them go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

#include "support/doctest.hpp"
#include "support/latch.hpp"
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
        ops::load_kernels(stream.get());
    }

    /// Later work of `stream` waits until the gate is open.
    void hold(BasicStreamRef<B> stream) { ops::hold(stream.get(), flag_.data()); }
    void open() { std::atomic_ref<Word>(flag_[0]).store(1); }

private:
    PinnedBuffer<Word, B> flag_;
};

/// Whether streams run beside the host and beside each other. They do, but for tools that look at one kernel
/// at a time, and CUDA_LAUNCH_BLOCKING: tests that need it end there, and this says so.
template <Backend B>
bool streams_overlap() {
    using Clock = std::chrono::steady_clock;
    static const bool overlap = [] {
        Gate<B> gate;
        PinnedBuffer<Word, B> word(1);
        word[0] = 0;
        const BasicStream<B> held, other;
        const auto start = Clock::now();
        ops::spin(held.get(), 50000);
        if (Clock::now() - start >= std::chrono::milliseconds(50))
            return false; // the launch has waited
        gate.hold(held);
        ops::add_racing(other.get(), word.data(), word.data(), 1, 1);
        const auto limit = Clock::now() + patience;
        while (!other.is_done() && Clock::now() < limit)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const bool passed = other.is_done();
        gate.open();
        held.sync();
        other.sync();
        return passed;
    }();
    if (!overlap)
        MESSAGE("skipped: streams do not run beside each other here");
    return overlap;
}

} // namespace sluice::test
