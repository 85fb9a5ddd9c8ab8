/// \file
/// Setting device memory up, before any streams of the caller's are at work.
#pragma once

#include <utility>
#include <vector>

#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace nn {

/// Calls `work(stream)` with a stream made for it, and waits for what it enqueued.
template <sluice::Backend B, class Work>
void on_own_stream(Work&& work) {
    const sluice::BasicStream<B> stream;
    std::forward<Work>(work)(stream.ref());
    stream.sync();
}

/// A copy of `values` in device memory, ready for every stream.
template <sluice::Backend B, class T>
sluice::DeviceBuffer<T, B> to_device(const std::vector<T>& values) {
    sluice::DeviceBuffer<T, B> buffer(values.size());
    on_own_stream<B>(
        [&](sluice::BasicStreamRef<B> stream) { sluice::copy_and_wait(stream, buffer, values); });
    return buffer;
}

/// A copy of `values` in host memory, once `stream` gets there; waits for it.
template <sluice::Backend B, class T>
std::vector<T> to_host(sluice::BasicStreamRef<B> stream, const sluice::DeviceBuffer<T, B>& values) {
    std::vector<T> result(values.size());
    sluice::copy_and_wait(stream, result, values);
    return result;
}

} // namespace nn
