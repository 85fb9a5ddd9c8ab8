// What the examples of docs/guide/sources.md take for granted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "pipeline_parts.hpp"

namespace documents_sources {

using namespace documents_pipeline_parts;

struct Pose {
    sluice::PinnedBuffer<float> values{16};
};
struct Camera {
    bool wait_for_frame(std::chrono::milliseconds limit);
    void copy_to(Batch& to);
};
extern Camera camera;
extern float total;
extern std::vector<std::string> files;
extern std::vector<float> history;
void read_images(std::size_t index, Batch& to);
void read_pose(std::size_t index, Pose& to);
void read(std::ifstream& file, std::size_t index, Batch& to);
void load(const std::string& file, std::size_t place, Batch& to);

} // namespace documents_sources
