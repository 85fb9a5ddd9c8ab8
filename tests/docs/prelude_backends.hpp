// What the examples of docs/guide/backends.md take for granted.
#pragma once

#include <atomic>
#include <cstddef>

#include <sluice/sluice.hpp>

namespace documents_backends {

inline constexpr std::size_t count = 64;
struct HostBatch {
    sluice::PinnedBuffer<float, sluice::Host> values{count};
};
extern const sluice::Stream stream;
extern sluice::DeviceBuffer<float> device;
extern sluice::PinnedBuffer<float> result;
extern std::atomic<int> done_batches;

} // namespace documents_backends
