// What the examples of docs/guide/reports.md take for granted.
#pragma once

#include <cstddef>
#include <cstdio>

#include <sluice/report/timeline.hpp>
#include <sluice/sluice.hpp>

namespace documents_reports {

struct Batch {
    sluice::PinnedBuffer<float> images{64};
};
struct Features {
    sluice::DeviceBuffer<float> values{64};
};
using Encode = sluice::Stage<void (*)(sluice::StreamRef, const Batch&, Features&)>;
using Train = sluice::Stage<void (*)(sluice::StreamRef, const Features&)>;
extern Encode encode;
extern Train train;
Features make_features(int slot);
void load(std::size_t index, Batch& to);
extern sluice::Source<Batch, sluice::NoState, void (*)(std::size_t, Batch&)> source;
extern sluice::Pipeline<sluice::Stages<Encode, Train>, sluice::Slots<Features (*)(int)>> one, other;
extern const sluice::Timeline before, after;

} // namespace documents_reports
