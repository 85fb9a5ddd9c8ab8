// What the fragments of guide/streams.md take for granted.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <sluice/sluice.hpp>

namespace documents_streams {

extern sluice::Stream stream;
extern sluice::DeviceBuffer<float> values;
extern sluice::PinnedBuffer<float> in;
extern std::uint32_t epoch;
extern std::uint64_t sample;
void fill(sluice::PinnedBuffer<float>& buffer);

} // namespace documents_streams
