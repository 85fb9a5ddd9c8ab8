// Input that doesn't wait: a camera sends faster than a stage works. The newest frames are taken, and each one is accounted for.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>

#include "for_each.hpp"

constexpr std::size_t pixels = 256;
constexpr std::size_t frames_sent = 200;

struct Frame {
    sluice::PinnedBuffer<int> values{pixels};
    int number = 0;
};
struct Image {
    sluice::DeviceBuffer<int> values{pixels};
};
struct Result {
    sluice::PinnedBuffer<int> values{pixels};
    sluice::DeviceBuffer<unsigned> scores{pixels};
};

// Slow on purpose.
SLUICE_HOST_DEVICE void work(std::size_t i, const int* in, unsigned* scores) {
    scores[i] = static_cast<unsigned>(in[i]);
    for (int round = 0; round < 4000; ++round)
        scores[i] = scores[i] * 1664525u + 1013904223u;
}

int main() {
    sluice::Source camera{
        [](int /*slot*/) { return Frame{}; },
        [](std::size_t index, Frame& frame) { // a frame each 200 us, at any load
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            frame.number = static_cast<int>(index);
            for (std::size_t i = 0; i < pixels; ++i)
                frame.values[i] = frame.number;
        },
        {.workers = 1, .slots = 5, .batches = frames_sent, .when_ahead = sluice::WhenAhead::drop_oldest}};
    sluice::Stage upload{"upload", [](sluice::StreamRef stream, const Frame& frame, Image& out) {
                             sluice::copy(stream, out.values, frame.values);
                         }};
    sluice::Stage infer{"infer", [](sluice::StreamRef stream, const Image& image, Result& out) {
                            for_each<work>(stream, pixels, image.values.data(), out.scores.data());
                            sluice::copy(stream, out.values, image.values);
                        }};
    // At most two frames are under way, so that none is old when its turn comes.
    sluice::Pipeline pipeline{sluice::Stages{upload, infer},
                              sluice::Slots{[](int) { return Image{}; }, [](int) { return Result{}; }},
                              {.in_flight = 2}};

    std::size_t seen = 0;
    int last = -1;
    bool right = true;
    for (const Result& result : pipeline.run(camera)) {
        const int number = result.values[0]; // of the frame that it is of: they come in order, with gaps
        right = right && number > last && result.values[pixels - 1] == number;
        last = number;
        ++seen;
    }
    right = right && seen + camera.dropped() == frames_sent && last == static_cast<int>(frames_sent) - 1;
    std::printf("%zu frames, %zu dropped: %s\n", seen, camera.dropped(), right ? "right" : "WRONG");
    return exit_code(right);
}
