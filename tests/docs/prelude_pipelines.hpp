// What the examples of docs/guide/pipelines.md take for granted.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

namespace documents_pipelines {

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

struct Pose {
    sluice::PinnedBuffer<float> values{16};
};

struct Encoder {
    void forward(sluice::StreamRef, sluice::PinnedSpan<const float>, sluice::DeviceSpan<float>) {}
};
struct Decoder {
    void step(sluice::StreamRef, const Features&) {}
    sluice::DeviceSpan<const float> loss() const { return {}; }
};
struct Workspace {
    void decode(sluice::StreamRef, const Batch&, Features&) {}
};
extern Workspace workspaces[3];
extern Encoder encoder;
extern Decoder decoder;
extern sluice::DeviceBuffer<float> scores;
extern float top, total;
extern int steps;
extern std::vector<std::string> files;
extern std::vector<float> history;
void fill(int step, Batch& to);
void scale(sluice::StreamRef, sluice::DeviceSpan<float>);
extern sluice::DeviceBuffer<float> zeros;
void accumulate(sluice::StreamRef, sluice::DeviceSpan<const float>, sluice::PinnedSpan<float>);
void read_pose(std::size_t index, Pose& to);
void read(std::ifstream& file, std::size_t index, Batch& to);
struct Camera {
    bool wait_for_frame(std::chrono::milliseconds limit);
    void copy_to(Batch& to);
};
extern Camera camera;
void load(const std::string& file, std::size_t place, Batch& to);
std::vector<float> losses_of_a_run(sluice::Schedule schedule);

template <class Make>
auto on_device(int device, Make make) {
    const sluice::DeviceGuard<> guard(device);
    return make();
}

extern sluice::Source<Batch, sluice::NoState, void (*)(std::size_t, Batch&)> source;
using Encode = sluice::Stage<void (*)(sluice::StreamRef, const Batch&, Features&)>;
extern Encode encode;
extern sluice::Pipeline<sluice::Stages<Encode, sluice::Stage<void (*)(sluice::StreamRef, const Features&)>>,
                        sluice::Slots<Features (*)(int)>>
    pipeline;
extern sluice::Pipeline<sluice::Stages<sluice::Stage<void (*)(sluice::StreamRef, const Batch&, Scores&)>>,
                        sluice::Slots<Scores (*)(int)>>
    scorer;

} // namespace documents_pipelines
