// What the examples of docs/guide/pipelines.md take for granted.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "pipeline_parts.hpp"

namespace documents_pipelines {

using namespace documents_pipeline_parts;

struct Workspace {
    void decode(sluice::StreamRef, const Batch&, Features&) {}
};
extern Workspace workspaces[3];
extern sluice::DeviceBuffer<float> scores;
extern float top;
void scale(sluice::StreamRef, sluice::DeviceSpan<float>);
extern sluice::DeviceBuffer<float> zeros;
void accumulate(sluice::StreamRef, sluice::DeviceSpan<const float>, sluice::PinnedSpan<float>);
std::vector<float> losses_of_a_run(sluice::Schedule schedule);

template <class Make>
auto on_device(int device, Make make) {
    const sluice::DeviceGuard<> guard(device);
    return make();
}

} // namespace documents_pipelines
