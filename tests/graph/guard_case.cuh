// Work on a device that captures refuse, and what is said of it.
#pragma once

#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"

namespace graph_guard {

using namespace sluice;

static __global__ void add(int* value, int amount) { *value += amount; }

inline std::string told;
inline void listen(const char* reason) { told += reason; }

/// A number on the device, and a cache whose refusals are heard.
struct Fixture {
    Fixture() : number(2) {
        told.clear();
        clear();
    }
    void clear() {
        fill_bytes(stream, number, 0);
        stream.sync();
    }
    int value() {
        std::vector<int> values(2);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        copy_and_wait(stream, values, number);
        return values[0];
    }
    /// Runs `work` five times and says what came of it.
    template <class F>
    std::string refusal_of(F&& work, GraphOptions options = {}) {
        options.on_refusal = &listen;
        GraphCapture<NoKey, Cuda> graphs{options};
        for (int run = 0; run < 5; ++run)
            graphs.run(stream, work);
        CHECK(graphs.counters().refusals == (told.empty() ? 0 : 1));
        CHECK(graphs.counters().replays == (told.empty() ? 4 : 0));
        CHECK(cudaGetLastError() == cudaSuccess);
        return told;
    }
    CudaStream stream;
    DeviceBuffer<int, Cuda> number;
};

} // namespace graph_guard
