// What the examples of the guide's pages on pipelines take for granted, beside what only one of them does.
#pragma once

#include <cstddef>

#include <sluice/sluice.hpp>

namespace documents_pipeline_parts {

inline constexpr std::size_t count = 64;

struct Batch {
    sluice::PinnedBuffer<float> images{count};
    sluice::PinnedBuffer<int> labels{count};
};
struct Features {
    sluice::DeviceBuffer<float> values{count};
    sluice::DeviceBuffer<int> labels{count};
};
struct Scores {
    sluice::PinnedBuffer<float> values{count};
};

struct Encoder {
    void forward(sluice::StreamRef, sluice::PinnedSpan<const float>, sluice::DeviceSpan<float>) {}
};
struct Decoder {
    void step(sluice::StreamRef, const Features&) {}
    sluice::DeviceSpan<const float> loss() const { return {}; }
};
extern Encoder encoder;
extern Decoder decoder;

extern sluice::Source<Batch, sluice::NoState, void (*)(std::size_t, Batch&)> source;
using Encode = sluice::Stage<void (*)(sluice::StreamRef, const Batch&, Features&)>;
extern Encode encode;
extern sluice::Pipeline<sluice::Stages<Encode, sluice::Stage<void (*)(sluice::StreamRef, const Features&)>>,
                        sluice::Slots<Features (*)(int)>>
    pipeline;
extern sluice::Pipeline<sluice::Stages<sluice::Stage<void (*)(sluice::StreamRef, const Batch&, Scores&)>>,
                        sluice::Slots<Scores (*)(int)>>
    scorer;

} // namespace documents_pipeline_parts
