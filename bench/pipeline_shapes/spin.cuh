/// \file
/// Kernels of one block that take a given time.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/cuda_baselines.cuh"

namespace bench {

static __global__ void spin_kernel(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

/// Takes `cycles[*next]`, and then the next one: what a captured launch takes changes from replay to replay.
static __global__ void spin_next_kernel(const unsigned* cycles, unsigned count, unsigned* next) {
    const long long start = clock64();
    const unsigned index = *next;
    const long long wanted = cycles[index];
    while (clock64() - start < wanted) {
    }
    *next = index + 1 == count ? 0 : index + 1;
}

static __global__ void clock_kernel(long long cycles, long long* nanoseconds) {
    long long begin = 0;
    long long end = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    *nanoseconds = end - begin;
}

/// Cycles of the multiprocessors' clock in a nanosecond, measured once.
inline double cycles_per_nanosecond() {
    static const double rate = [] {
        constexpr long long cycles = 20'000'000;
        long long* taken = nullptr;
        CHECK(cudaMalloc(&taken, sizeof *taken));
        std::vector<long long> times;
        for (int time = 0; time < 5; ++time) { // The first ones wake the clock up.
            clock_kernel<<<1, 1>>>(cycles, taken);
            CHECK(cudaGetLastError());
            long long nanoseconds = 0;
            CHECK(cudaMemcpy(&nanoseconds, taken, sizeof nanoseconds, cudaMemcpyDeviceToHost));
            times.push_back(nanoseconds);
        }
        CHECK(cudaFree(taken));
        return static_cast<double>(cycles) / static_cast<double>(std::max(1LL, times.back()));
    }();
    return rate;
}

inline long long cycles_in(double microseconds) {
    return static_cast<long long>(microseconds * 1e3 * cycles_per_nanosecond());
}

/// A stage that takes the same time for each batch.
class Spin {
public:
    explicit Spin(double microseconds) : cycles_(cycles_in(microseconds)) {}
    void launch(cudaStream_t stream) const { spin_kernel<<<1, 1, 0, stream>>>(cycles_); }
    void operator()(cudaStream_t stream) const {
        launch(stream);
        CHECK(cudaGetLastError());
    }

private:
    long long cycles_;
};

/// A stage that takes the times of a list, over and over.
class SpinList {
public:
    /// Refers to the owner, which must outlive it.
    class Stage {
    public:
        explicit Stage(const SpinList& list) : list_(&list) {}
        void launch(cudaStream_t stream) const {
            spin_next_kernel<<<1, 1, 0, stream>>>(list_->cycles_, list_->count_, list_->next_);
        }
        void operator()(cudaStream_t stream) const {
            launch(stream);
            CHECK(cudaGetLastError());
        }

    private:
        const SpinList* list_;
    };

    explicit SpinList(const std::vector<double>& microseconds)
        : count_(static_cast<unsigned>(microseconds.size())) {
        std::vector<unsigned> cycles;
        for (const double time : microseconds)
            cycles.push_back(static_cast<unsigned>(cycles_in(time)));
        CHECK(cudaMalloc(&cycles_, cycles.size() * sizeof(unsigned)));
        CHECK(cudaMalloc(&next_, sizeof(unsigned)));
        CHECK(cudaMemcpy(cycles_, cycles.data(), cycles.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(next_, 0, sizeof(unsigned)));
        stage()(nullptr); // Loads the kernel before it is captured.
        CHECK(cudaMemset(next_, 0, sizeof(unsigned)));
        CHECK(cudaDeviceSynchronize());
    }
    SpinList(const SpinList&) = delete;
    SpinList& operator=(const SpinList&) = delete;
    ~SpinList() {
        cudaFree(cycles_);
        cudaFree(next_);
    }
    Stage stage() const { return Stage{*this}; }

private:
    unsigned count_;
    unsigned* cycles_ = nullptr;
    unsigned* next_ = nullptr;
};

/// One stage alone, 16 launches a graph, so that the host is not the bound.
template <class Launch>
class AloneByHand {
public:
    explicit AloneByHand(Launch launch) {
        launch(stream_); // Loads the kernel. A burst goes round a list once, wherever it begins.
        CHECK(cudaStreamSynchronize(stream_));
        CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (int step = 0; step < steps; ++step)
            launch(stream_);
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamEndCapture(stream_, &graph));
        CHECK(cudaGraphInstantiate(&executable_, graph, 0));
        CHECK(cudaGraphDestroy(graph));
    }
    AloneByHand(const AloneByHand&) = delete;
    AloneByHand& operator=(const AloneByHand&) = delete;
    ~AloneByHand() {
        cudaGraphExecDestroy(executable_);
        cudaStreamDestroy(stream_);
    }
    void step() {
        if (++held_ < steps)
            return;
        held_ = 0;
        CHECK(cudaGraphLaunch(executable_, stream_));
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    static constexpr int steps = 16;
    int held_ = 0;
    cudaStream_t stream_ = make_stream();
    cudaGraphExec_t executable_ = nullptr;
};

} // namespace bench
