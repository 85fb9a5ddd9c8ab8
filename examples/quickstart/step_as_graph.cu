// A step of many small kernels as one graph: captured once, then replayed with a single launch.
#include <cstddef>
#include <cstdio>
#include <span>

#include "for_each.hpp"

constexpr std::size_t size = 1024;
constexpr int runs = 100;

SLUICE_HOST_DEVICE void add(std::size_t i, float* x, const float* value) { x[i] += value[0]; }
SLUICE_HOST_DEVICE void mean(std::size_t, float* result, const float* x) {
    result[0] = 0;
    for (std::size_t i = 0; i < size; ++i)
        result[0] += x[i] / static_cast<float>(size);
}

// Any code that enqueues work on a stream can be captured.
void step(sluice::StreamRef stream, float* x, const float* value) {
    for (int kernel = 0; kernel < 20; ++kernel)
        for_each<add>(stream, size, x, value);
}

bool graph_alone() {
    const sluice::Stream stream;
    sluice::DeviceBuffer<float> x{size};
    sluice::DeviceScalar<float> value; // may change between replays, since kernels read it on the device
    sluice::fill_bytes(stream, x, 0);

    sluice::GraphCapture<> graph;
    for (int i = 0; i < runs; ++i) {
        value.set(stream, static_cast<float>(i % 2));
        // Eager the first time, captured and launched the second time, replayed from then on.
        graph.run(stream, [&](sluice::StreamRef s) { step(s, x.data(), value.data()); });
    }

    sluice::PinnedBuffer<float> result{size};
    sluice::copy_and_wait(stream, result, x);
    const bool right = result[0] == 20 * runs / 2;
    std::printf("GraphCapture: %d steps, %d captured, %d replayed: %s\n", runs,
                static_cast<int>(graph.counters().captures), static_cast<int>(graph.counters().replays),
                right ? "right" : "WRONG");
    return right && graph.counters().captures == 1;
}

bool graphs_of_a_pipeline() {
    const sluice::Stream stream;
    sluice::DeviceBuffer<float> x{size}, average{1};
    sluice::fill_bytes(stream, x, 0);
    stream.sync();

    struct Copy {
        sluice::DeviceBuffer<float> value{1};
    };
    float last = 0;
    sluice::Readback<float> averages{1, [&](std::size_t, std::span<const float> value) { last = value[0]; }};
    sluice::Stage copy{"copy", [](sluice::StreamRef s, const sluice::PinnedBuffer<float>& in, Copy& out) {
                           sluice::copy(s, out.value, in);
                       }};
    sluice::Stage train{"train", [&](sluice::StreamRef s, const Copy& in) {
                            step(s, x.data(), in.value.data());
                            for_each<mean>(s, 1, average.data(), x.data());
                            averages.push(s, average); // each replay hands a result over
                        }};
    sluice::TwoStreamPipeline pipeline{
        copy, train, [](int) { return Copy{}; }, {.schedule = sluice::Schedule::graphed}};
    sluice::PinnedBuffer<float> batch{1};
    for (int i = 0; i < runs; ++i) {
        batch[0] = static_cast<float>(i % 2);
        pipeline.submit(batch).wait(); // returns when the batch has been read
    }
    pipeline.finish();
    averages.finish();

    const bool right = last == 20 * runs / 2 && averages.pushed() == runs;
    const sluice::GraphCounters counters = pipeline.graph_counters();
    std::printf("graphed pipeline: %d steps, %d captured, %d replayed: %s\n", runs,
                static_cast<int>(counters.captures), static_cast<int>(counters.replays),
                right ? "right" : "WRONG");
    return right && counters.replays > 0;
}

int main() {
    const bool first = graph_alone();
    const bool second = graphs_of_a_pipeline();
    return exit_code(first && second);
}
