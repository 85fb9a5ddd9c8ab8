// What the README's examples take for granted.
#pragma once

#include <cstddef>
#include <fstream>

#include <sluice/sluice.hpp>

namespace documents {

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

// The loop that fills one batch.
extern int steps;
extern Batch batch;
void load(int step, Batch& to);
extern sluice::Pipeline<sluice::Stages<sluice::Stage<void (*)(sluice::StreamRef, const Batch&)>>, sluice::Slots<>> pipeline;

// The stages that are no chain.
struct Images {};
struct Targets {};
struct Loss {
    sluice::PinnedBuffer<float> value{1};
};
extern std::ofstream file;
inline Images make_images(int) { return {}; }
inline Features make_features(int) { return Features{batch_size}; }
inline Targets make_targets(int) { return {}; }
inline Loss make_loss(int) { return {}; }

} // namespace documents
