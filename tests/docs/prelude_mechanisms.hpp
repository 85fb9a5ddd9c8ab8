// What the example of a ragged batch takes for granted.
#pragma once

#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

namespace documents_mechanisms {

struct Box {
    float x1, y1, x2, y2;
};

struct Image {
    std::vector<Box> boxes;
};

inline void areas(sluice::StreamRef, sluice::RaggedView<const Box>, sluice::DeviceSpan<float>) {}

extern std::vector<std::vector<Image>> batches;
extern sluice::DeviceBuffer<float> result;

} // namespace documents_mechanisms
