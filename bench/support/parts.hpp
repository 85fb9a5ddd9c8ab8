/// \file
/// What the programs that time the parts of a network share. They have no baselines; parts_main.cpp is their `main`.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA
#include <sluice/backend/stream.hpp>

namespace bench {

/// Registers a program's benchmarks, which the program defines. Called once, and only where there is a device.
void add_parts();

/// Calls `work()`, which enqueues on `stream`, `calls` times an iteration. An iteration's time goes until the device
/// is done, and is divided by `measured`: how often that does what is measured.
template <class Work>
void time_calls(benchmark::State& state, const sluice::CudaStream& stream, int calls, double measured,
                const Work& work) {
    for (auto _ : state) {
        const auto begin = std::chrono::steady_clock::now();
        for (int call = 0; call < calls; ++call)
            work();
        stream.sync();
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        state.SetIterationTime(time.count() / measured);
    }
}

} // namespace bench
#endif
