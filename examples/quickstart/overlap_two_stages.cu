// Two stages on two streams: while `train` works on one batch, `encode` works on the next one.
#include <chrono>
#include <cstddef>
#include <cstdio>

#include "for_each.hpp"

constexpr std::size_t size = 512;

struct Batch { // what goes in
    sluice::PinnedBuffer<float> samples{size};
};
struct Features { // what `encode` hands to `train`
    sluice::DeviceBuffer<float> values{size};
};

// Some work that takes a while.
SLUICE_HOST_DEVICE float slow_root(float x) {
    float root = 1;
    for (int round = 0; round < 4000; ++round)
        root = 0.5f * (root + x / root);
    return root;
}
// The work on element i: a thread of a kernel on a GPU, a turn of a loop on a CPU.
SLUICE_HOST_DEVICE void encode_one(std::size_t i, float* values) { values[i] = slow_root(values[i]); }
SLUICE_HOST_DEVICE void train_one(std::size_t i, float* sums, const float* values) {
    sums[i] += slow_root(values[i]);
}

bool run(sluice::Schedule schedule) {
    const sluice::Stream stream;
    sluice::DeviceBuffer<float> sums{size};

    sluice::Stage encode{"encode", [&](sluice::StreamRef s, const Batch& in, Features& out) {
                             sluice::copy(s, out.values, in.samples);
                             for_each<encode_one>(s, size, out.values.data());
                         }};
    sluice::Stage train{"train", [&](sluice::StreamRef s, const Features& in) {
                            for_each<train_one>(s, size, sums.data(), in.values.data());
                        }};

    sluice::TwoStreamPipeline pipeline{
        encode, train, [](int /*slot*/) { return Features{}; }, {.schedule = schedule}};

    sluice::fill_bytes(stream, sums, 0);
    pipeline.wait_for(stream); // what is submitted from here on comes after what is on `stream` now
    const auto start = std::chrono::steady_clock::now();
    Batch batches[2];
    sluice::BatchRead read[2];
    for (int step = 0; step < 40; ++step) {
        Batch& batch = batches[step % 2];
        read[step % 2].wait(); // until the pipeline has read what was in it two steps ago
        for (float& sample : batch.samples)
            sample = step % 2 == 0 ? 16.0f : 81.0f;
        read[step % 2] = pipeline.submit(batch); // returns at once
    }
    pipeline.finish();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;

    sluice::PinnedBuffer<float> result{size};
    sluice::copy_and_wait(stream, result, sums);
    bool right = true;
    for (const float sum : result)
        right = right && sum == 20 * 2 + 20 * 3; // of the roots' roots
    std::printf("%-10s %6.1f ms: %s\n", to_string(schedule), time.count(), right ? "right" : "WRONG");
    return right;
}

int main() {
    bool right = true;
    for (const auto schedule :
         {sluice::Schedule::serial, sluice::Schedule::overlapped, sluice::Schedule::graphed})
        right = run(schedule) && right;
    return exit_code(right);
}
