// What the README's example takes for granted.
#pragma once

#include <cstddef>

#include <sluice/sluice.hpp>

namespace documents_readme {

inline constexpr std::size_t batch_size = 8;

struct Batch {
    sluice::PinnedBuffer<unsigned char> images{batch_size};
    sluice::PinnedBuffer<unsigned char> labels{batch_size};
};

struct Features {
    explicit Features(std::size_t count) : values(count), labels(count) {}
    sluice::DeviceBuffer<float> values;
    sluice::DeviceBuffer<unsigned char> labels;
};

struct Encoder {
    void forward(sluice::StreamRef, sluice::PinnedSpan<const unsigned char>, sluice::DeviceSpan<float>) {}
};
struct Decoder {
    void step(sluice::StreamRef, Features&) {}
};
extern Encoder encoder;
extern Decoder decoder;

extern sluice::Source<Batch, sluice::NoState, void (*)(std::size_t, Batch&)> source;

} // namespace documents_readme
