#include <resnet18/rungs.hpp>

#include <array>

namespace resnet18 {
namespace {

using enum images::HostMemory;
using enum Pixels;
using enum Precision;
using enum sluice::Schedule;

// number, change, workers, memory, pixels, batch, narrow batch, zeroes gradients, precision, compiled, schedule
constexpr std::array<Rung, last_rung + 1> rungs{{
    {0, "one loading thread", false, pageable, floats, 32, 16, true, tf32, false, serial},
    {1, "loading workers", true, pageable, floats, 32, 16, true, tf32, false, serial},
    {2, "pinned memory, copies beside the training", true, pinned, floats, 32, 16, true, tf32, false,
     overlapped},
    {3, "larger batches", true, pinned, floats, 512, 32, true, tf32, false, overlapped},
    {4, "copies of bytes, normalised on the device", true, pinned, bytes, 512, 32, true, tf32, false,
     overlapped},
    {5, "gradients not zeroed", true, pinned, bytes, 512, 32, false, tf32, false, overlapped},
    {6, "float16", true, pinned, bytes, 1024, 32, false, float16, false, overlapped},
    {7, "the step as a graph", true, pinned, bytes, 1024, 32, false, float16, true, graphed},
    {8, "copies of 32x32 bytes, enlarged on the device", true, pinned, small_bytes, 1024, 32, false, float16,
     true, graphed},
}};

} // namespace

std::string to_string(Precision precision) {
    switch (precision) {
    case float32:
        return "float32";
    case tf32:
        return "tf32";
    case float16:
        break;
    }
    return "float16";
}

std::span<const Rung> all_rungs() { return rungs; }

} // namespace resnet18
