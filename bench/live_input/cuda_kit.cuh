/// \file
/// The stages' kernels of live_input, and the log of when batches are out of them. In one file only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "live_input.hpp"

namespace bench::live {

namespace {

[[noreturn]] void fail(const char* why) {
    std::fprintf(stderr, "live_input: %s\n", why);
    std::exit(EXIT_FAILURE);
}

void check(cudaError_t error) {
    if (error != cudaSuccess)
        fail(cudaGetErrorString(error));
}

__device__ long long device_time() {
    long long time = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

/// In device memory: the ends of the batches, in order.
struct Log {
    long long* times = nullptr;
    std::uint32_t* numbers = nullptr;
    std::uint32_t* count = nullptr;
    std::uint32_t room = 0;
};

__device__ void note_end(const Log* log, std::uint32_t number) {
    const long long time = device_time();
    const std::uint32_t place = (*log->count)++;
    if (place < log->room) {
        log->times[place] = time;
        log->numbers[place] = number;
    }
}

__global__ void grab_kernel(std::uint32_t number, std::uint32_t* out) { *out = number; }

__global__ void infer_kernel(const std::uint32_t* in, long long nanoseconds, const Log* log) {
    const long long begun = device_time();
    while (device_time() - begun < nanoseconds) {
    }
    note_end(log, *in);
}

__global__ void tiny_kernel(float* memory, const Log* log) {
    float value = memory[threadIdx.x];
    for (int round = 0; round < 200; ++round)
        value = value * 0.5F + 0.5F;
    memory[threadIdx.x] = value;
    __syncthreads();
    if (log != nullptr && threadIdx.x == 0)
        note_end(log, 0);
}

__global__ void empty_kernel() {}

/// Says the device's time each time that it is asked.
__global__ void answer_kernel(const volatile unsigned* asked, volatile unsigned* answered,
                              volatile long long* times, unsigned begin, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
        const unsigned next = begin + round + 1;
        while (static_cast<int>(*asked - next) < 0) {
        }
        times[round] = device_time();
        __threadfence_system();
        *answered = next;
    }
}

__global__ void step_kernel(long long* step) {
    long long least = 1 << 30;
    long long last = device_time();
    for (int i = 0; i < 200'000; ++i) {
        const long long time = device_time();
        if (time != last)
            least = min(least, time - last);
        last = time;
    }
    *step = least;
}

/// The kernels' log, and what its times are on the host's clock: the clocks are compared by questions to a kernel on a stream of
/// its own, of which the one counts that came back soonest, and in between they drift evenly.
class CudaEnds final : public Ends {
public:
    CudaEnds() {
        check(cudaMalloc(&log_, sizeof *log_));
        check(cudaMalloc(&memory_.count, sizeof *memory_.count));
        int least = 0, greatest = 0;
        check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
        check(cudaHostAlloc(&shared_, sizeof *shared_, cudaHostAllocMapped));
        *shared_ = {};
        restart(0);           // What is not measured finds a log without room.
        compare_clocks(true); // loads the kernel
        widest_ = 0;
    }
    CudaEnds(const CudaEnds&) = delete;
    CudaEnds& operator=(const CudaEnds&) = delete;
    ~CudaEnds() override {
        (void)cudaStreamDestroy(stream_);
        (void)cudaFreeHost(shared_);
        (void)cudaFree(memory_.times);
        (void)cudaFree(memory_.numbers);
        (void)cudaFree(memory_.count);
        (void)cudaFree(log_);
    }

    void restart(std::size_t most) override {
        if (most > memory_.room) {
            check(cudaFree(memory_.times));
            check(cudaFree(memory_.numbers));
            check(cudaMalloc(&memory_.times, most * sizeof *memory_.times));
            check(cudaMalloc(&memory_.numbers, most * sizeof *memory_.numbers));
            memory_.room = static_cast<std::uint32_t>(most);
        }
        check(cudaMemcpy(log_, &memory_, sizeof memory_, cudaMemcpyHostToDevice));
        check(cudaMemset(memory_.count, 0, sizeof *memory_.count));
        check(cudaDeviceSynchronize());
        anchors_.clear();
    }

    void compare_clocks(bool must) override {
        const cudaError_t idle = cudaStreamQuery(stream_);
        if (idle != cudaErrorNotReady)
            check(idle);
        else if (must)
            check(cudaStreamSynchronize(stream_));
        else
            return;
        const unsigned begin = begin_;
        begin_ += rounds;
        answer_kernel<<<1, 1, 0, stream_>>>(&shared_->asked, &shared_->answered, shared_->times, begin,
                                            rounds);
        check(cudaGetLastError());
        const std::atomic_ref<unsigned> asked(shared_->asked), answered(shared_->answered);
        Anchor best{0, 0, std::numeric_limits<Time>::max()};
        for (unsigned round = 0; round < rounds; ++round) {
            const Time from = now();
            asked.store(begin + round + 1, std::memory_order_release);
            while (answered.load(std::memory_order_acquire) != begin + round + 1) {
                const Time waited = now() - from;
                if (!must && waited > patience) {
                    // It is let go whenever it begins.
                    asked.store(begin + rounds, std::memory_order_release);
                    return;
                }
                if (waited > patience_at_rest)
                    fail("the device does not answer");
            }
            const Time to = now();
            if (to - from < best.wide)
                best = {shared_->times[round], from + (to - from) / 2, to - from};
        }
        anchors_.push_back(best);
        widest_ = std::max(widest_, best.wide);
    }

    std::vector<End> read() override {
        std::uint32_t count = 0;
        check(cudaMemcpy(&count, memory_.count, sizeof count, cudaMemcpyDeviceToHost));
        std::vector<long long> times(std::min(count, memory_.room));
        std::vector<std::uint32_t> numbers(times.size());
        check(cudaMemcpy(times.data(), memory_.times, times.size() * sizeof(long long),
                         cudaMemcpyDeviceToHost));
        check(cudaMemcpy(numbers.data(), memory_.numbers, numbers.size() * sizeof(std::uint32_t),
                         cudaMemcpyDeviceToHost));
        std::vector<End> ends(count); // more than there was room for are no ends of ours
        for (std::size_t i = 0; i < times.size(); ++i)
            ends[i] = {on_host(times[i]), numbers[i]};
        return ends;
    }

    std::size_t memory() override {
        std::size_t left = 0, all = 0;
        check(cudaMemGetInfo(&left, &all));
        return all - left;
    }

    const Log* log() const { return log_; }
    std::string precision() const override {
        long long* step = nullptr;
        check(cudaMalloc(&step, sizeof *step));
        step_kernel<<<1, 1>>>(step);
        check(cudaGetLastError());
        long long least = 0;
        check(cudaMemcpy(&least, step, sizeof least, cudaMemcpyDeviceToHost));
        check(cudaFree(step));
        return "the device's timer steps by " + std::to_string(least) +
               " ns; clocks were compared to within " + std::to_string(widest_ / 2) + " ns";
    }

private:
    static constexpr unsigned rounds = 8;
    static constexpr Time patience = 300'000;
    static constexpr Time patience_at_rest = 30'000'000'000;
    struct Anchor {
        long long device;
        Time host;
        Time wide; // from the question to the answer
    };
    struct Shared {
        unsigned asked, answered;
        long long times[rounds];
    };

    double on_host(long long time) const {
        const auto behind = std::upper_bound(anchors_.begin(), anchors_.end(), time,
                                             [](long long a, const Anchor& b) { return a < b.device; });
        const std::size_t last = anchors_.size() - 1;
        const std::size_t to =
            std::clamp<std::size_t>(static_cast<std::size_t>(behind - anchors_.begin()), 1, last);
        const Anchor& a = anchors_[to - 1];
        const Anchor& b = anchors_[to];
        const double rate = static_cast<double>(b.host - a.host) / static_cast<double>(b.device - a.device);
        return static_cast<double>(a.host) + static_cast<double>(time - a.device) * rate;
    }

    Log memory_;
    Log* log_ = nullptr;
    cudaStream_t stream_ = nullptr;
    Shared* shared_ = nullptr;
    unsigned begin_ = 0;
    std::vector<Anchor> anchors_;
    Time widest_ = 0;
};

class CudaKit {
public:
    using Backend = sluice::Cuda;
    using Data = sluice::DeviceBuffer<std::uint32_t>;
    static constexpr int burst_steps = 200;

    explicit CudaKit(const CudaEnds& ends) : log_(ends.log()) {
        check(cudaMalloc(&memory_, most_stages * threads * sizeof(float)));
        check(cudaMemset(memory_, 0, most_stages * threads * sizeof(float)));
    }
    CudaKit(const CudaKit&) = delete;
    CudaKit& operator=(const CudaKit&) = delete;
    ~CudaKit() { (void)cudaFree(memory_); }

    Data make_data() const { return Data{1}; }
    void grab(cudaStream_t stream, const Frame& frame, std::uint32_t* out) const {
        grab_kernel<<<1, 1, 0, stream>>>(frame.number, out);
    }
    void grab(cudaStream_t stream, const Frame& frame, Data& out) const { grab(stream, frame, out.data()); }
    void infer(cudaStream_t stream, const std::uint32_t* in) const {
        infer_kernel<<<1, 1, 0, stream>>>(in, infer_time, log_);
    }
    void infer(cudaStream_t stream, const Data& in) const { infer(stream, in.data()); }
    void tiny(cudaStream_t stream, std::size_t stage, bool is_last) const {
        tiny_kernel<<<1, threads, 0, stream>>>(memory_ + stage * threads, is_last ? log_ : nullptr);
    }
    void empty(cudaStream_t stream) const { empty_kernel<<<1, 1, 0, stream>>>(); }

private:
    static constexpr unsigned threads = 128;
    const Log* log_;
    float* memory_ = nullptr;
};

} // namespace

} // namespace bench::live
