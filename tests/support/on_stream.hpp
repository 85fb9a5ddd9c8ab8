// Host code in stream order, on every backend.
#pragma once

#include <utility>

#include <sluice/backend/stream.hpp>

#include "support/latch.hpp"

namespace sluice::test {

/// Runs `callable` on the host when `stream` gets there. On CUDA it must not call CUDA, and those of several streams
/// may run one after another: one that waits can hold up those of other streams.
template <Backend B, class F>
void run_on(BasicStreamRef<B> stream, F callable) {
    stream.enqueue(std::move(callable));
}

template <Backend B, class F>
void run_on(const BasicStream<B>& stream, F callable) {
    run_on(stream.ref(), std::move(callable));
}

/// Holds `stream` up until `latch` opens.
template <Backend B>
void hold(const BasicStream<B>& stream, const ScopedLatch& latch) {
    run_on(stream, [handle = latch.handle()] { handle.pass(); });
}

} // namespace sluice::test
