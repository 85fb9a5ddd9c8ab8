/// \file
/// readback_cost: what a push of a `Readback` adds to a batch of a stage that pushes, in each schedule.
///
///     readback_cost          all rows; exits with 1 where a result is wrong
///
/// The stage is one block that spins for 180 or for 20 microseconds and writes the number of its batch. `none` pushes nothing,
/// `4 B` one float, `1 KiB` 256 of them, `2 KiB` 512: eagerly the largest goes by the copy engine, the others by a kernel. Times are
/// microseconds a batch, from the first `submit` of a burst of 300 until the device is done, the middle of nine bursts that the rows
/// take in turns; `submit` is what of that the host was in `submit`, with its waits for room and for places.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline_shapes/spin.cuh"

namespace {

using sluice::Cuda;
using sluice::DeviceBuffer;
using sluice::DeviceSpan;
using sluice::PipelineOptions;
using sluice::Readback;
using sluice::Schedule;
using sluice::Stage;
using sluice::Stages;
using sluice::StreamRef;
using Clock = std::chrono::steady_clock;

__global__ void spin_and_count(long long cycles, float* values, int size) {
    const long long start = clock64();
    const float next = values[0] + 1;
    while (clock64() - start < cycles) {
    }
    for (int i = size - 1; i >= 0; --i)
        values[i] = next;
}

constexpr int batches = 300;
constexpr int most = 512;

/// A pipeline of one stage, and what its pushes are told to be.
class Subject {
public:
    Subject(Schedule schedule, double microseconds, std::size_t size)
        : cycles_(bench::cycles_in(microseconds)), size_(size),
          readback_(
              most,
              [this](std::size_t index, std::span<const float> values) {
                  const auto expected = static_cast<float>(index + 1);
                  right = right && values.size() == size_ &&
                          std::all_of(values.begin(), values.end(), [&](float of) { return of == expected; });
              },
              16),
          pipeline_(Stages{Stage{"spin", [this](StreamRef stream, const int&) { work(stream); }}},
                    sluice::Slots{}, PipelineOptions{.schedule = schedule}) {
        CHECK(cudaMemset(values_.data(), 0, most * sizeof(float)));
        CHECK(cudaDeviceSynchronize());
        run(40);
    }
    /// Microseconds a batch.
    double run(int count) {
        const auto begun = Clock::now();
        for (int batch = 0; batch < count; ++batch)
            pipeline_.submit(0);
        enqueued = std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / count;
        pipeline_.finish();
        const auto ended = Clock::now();
        readback_.finish();
        return std::chrono::duration<double, std::micro>(ended - begun).count() / count;
    }
    bool right = true;
    double enqueued = 0; // of the last run: the host's microseconds a batch

private:
    void work(StreamRef stream) {
        spin_and_count<<<1, 1, 0, stream>>>(cycles_, values_.data(), size_ > 0 ? static_cast<int>(size_) : 1);
        if (size_ > 0)
            readback_.push(stream, DeviceSpan<const float>(values_.data(), size_));
    }
    long long cycles_;
    std::size_t size_;
    DeviceBuffer<float> values_{most};
    Readback<float> readback_;
    sluice::AnyPipeline<int> pipeline_;
};

} // namespace

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("no CUDA device");
        return EXIT_SUCCESS;
    }
    cudaDeviceProp properties{};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s\n%-12s %5s %8s %8s %8s %8s   %s\n", properties.name, "schedule", "stage", "none", "4 B",
                "1 KiB", "2 KiB", "submit of none, 4 B, 1 KiB, 2 KiB");
    bool right = true;
    for (const double microseconds : {180.0, 20.0, 1.0}) {
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
            constexpr std::size_t sizes[] = {0, 1, 256, 512};
            std::vector<std::unique_ptr<Subject>> subjects;
            for (const std::size_t size : sizes)
                subjects.push_back(std::make_unique<Subject>(schedule, microseconds, size));
            std::vector<double> times[4];
            std::vector<double> enqueued[4];
            for (int round = 0; round < 9; ++round) {
                for (std::size_t i = 0; i < 4; ++i) {
                    times[i].push_back(subjects[i]->run(batches));
                    enqueued[i].push_back(subjects[i]->enqueued);
                }
            }
            const auto middle = [](std::vector<double>& of) {
                std::sort(of.begin(), of.end());
                return of[of.size() / 2];
            };
            const char* const name = schedule == Schedule::serial       ? "serial"
                                     : schedule == Schedule::overlapped ? "overlapped"
                                                                        : "graphed";
            std::printf("%-12s %5.0f", name, microseconds);
            for (auto& of : times)
                std::printf(" %8.2f", middle(of));
            std::printf("  ");
            for (auto& of : enqueued)
                std::printf(" %6.2f", middle(of));
            std::puts("");
            for (const auto& subject : subjects)
                right = right && subject->right;
        }
    }
    std::puts(right ? "all results are right" : "WRONG results");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
