/// \file
/// A CPU stage between two GPU stages: what it adds to one batch by itself, and the rate of many.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <sluice/sluice.hpp>

#include "shapes.hpp"
#include "spin.cuh"
#include "spin_host.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using sluice::PinnedBuffer;
using sluice::Schedule;
using sluice::StreamRef;

constexpr int words = 8;

/// What the stages take, in microseconds.
struct Takes {
    double first;
    double cpu;
    double last;
    double slowest() const { return std::max({first, cpu, last}); }
};

__global__ void spin_and_copy(long long cycles, const unsigned* in, unsigned* out) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
    out[threadIdx.x] = in != nullptr ? in[threadIdx.x] : threadIdx.x;
}

/// The stages, for each way of running them.
struct Work {
    explicit Work(const Takes& takes)
        : first_cycles(bench::cycles_in(takes.first)), last_cycles(bench::cycles_in(takes.last)),
          cpu_time(takes.cpu) {}
    void first(cudaStream_t stream, unsigned* out) const {
        spin_and_copy<<<1, words, 0, stream>>>(first_cycles, nullptr, out);
    }
    void cpu(const unsigned* in, unsigned* out) const {
        if (cpu_time > cpu_time.zero())
            bench::spin_on_cpu(cpu_time);
        for (int word = 0; word < words; ++word)
            out[word] = in[word] + 1;
    }
    void last(cudaStream_t stream, const unsigned* in) const {
        spin_and_copy<<<1, words, 0, stream>>>(last_cycles, in, seen.data());
    }
    long long first_cycles;
    long long last_cycles;
    std::chrono::duration<double, std::micro> cpu_time;
    mutable sluice::DeviceBuffer<unsigned> seen{words};
};

struct Raw {
    PinnedBuffer<unsigned> words;
};
struct Cooked {
    PinnedBuffer<unsigned> words;
};

auto make_with_cpu(const Work& work, const sluice::PipelineOptions& options) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"first",
                          [&work](StreamRef s, const int&, Raw& out) { work.first(s, out.words.data()); }},
            sluice::Stage{
                "cpu", [&work](const Raw& in, Cooked& out) { work.cpu(in.words.data(), out.words.data()); }},
            sluice::Stage{"last", [&work](StreamRef s, const Cooked& in) { work.last(s, in.words.data()); }}},
        sluice::Slots{[](int) { return Raw{PinnedBuffer<unsigned>(words)}; },
                      [](int) { return Cooked{PinnedBuffer<unsigned>(words)}; }},
        options};
}
auto make_without_cpu(const Work& work, const sluice::PipelineOptions& options) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"first",
                          [&work](StreamRef s, const int&, Raw& out) { work.first(s, out.words.data()); }},
            sluice::Stage{"last", [&work](StreamRef s, const Raw& in) { work.last(s, in.words.data()); }}},
        sluice::Slots{[](int) { return Raw{PinnedBuffer<unsigned>(words)}; }}, options};
}

/// One batch a step, which is waited for, or many.
template <class Pipeline>
class Batches {
public:
    template <class Make>
    Batches(Make make, bool one_by_one) : pipeline_(make()), one_by_one_(one_by_one) {}
    void step() {
        pipeline_.submit(0);
        if (one_by_one_)
            pipeline_.finish();
    }
    void sync() { pipeline_.finish(); }

private:
    Pipeline pipeline_;
    bool one_by_one_;
};
template <class Make>
Batches(Make, bool) -> Batches<std::invoke_result_t<Make>>;

/// One batch at a time: the host waits for the first stage, and works itself.
class OneByHand {
public:
    explicit OneByHand(const Work& work) : work_(work) {}
    OneByHand(const OneByHand&) = delete;
    OneByHand& operator=(const OneByHand&) = delete;
    ~OneByHand() { cudaStreamDestroy(stream_); }
    void step() {
        work_.first(stream_, raw_.data());
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream_));
        work_.cpu(raw_.data(), cooked_.data());
        work_.last(stream_, cooked_.data());
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream_));
    }
    void sync() {}

private:
    const Work& work_;
    PinnedBuffer<unsigned> raw_{words};
    PinnedBuffer<unsigned> cooked_{words};
    cudaStream_t stream_ = bench::make_stream();
};

/// Many: a thread waits for the first stage's event, works, and launches the last stage.
class ManyByHand {
public:
    explicit ManyByHand(const Work& work) : work_(work) {
        worker_ = std::thread([this] { run(); });
    }
    ManyByHand(const ManyByHand&) = delete;
    ManyByHand& operator=(const ManyByHand&) = delete;
    ~ManyByHand() {
        stopping_ = true;
        worker_.join();
        sync();
        cudaStreamDestroy(first_);
        cudaStreamDestroy(last_);
    }
    void step() {
        while (submitted_ - worked_.load(std::memory_order_acquire) >= slots) // The slot must have been read.
            std::this_thread::yield();
        const int slot = static_cast<int>(submitted_ % slots);
        work_.first(first_, raw_[slot].data());
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(ready_[slot], first_));
        launched_.store(++submitted_, std::memory_order_release);
    }
    void sync() {
        while (worked_.load(std::memory_order_acquire) < submitted_)
            std::this_thread::yield();
        CHECK(cudaStreamSynchronize(last_));
    }

private:
    static constexpr int slots = 2;
    void run() {
        for (std::size_t batch = 0;; ++batch) {
            while (launched_.load(std::memory_order_acquire) <= batch) {
                if (stopping_)
                    return;
                std::this_thread::yield();
            }
            const int slot = static_cast<int>(batch % slots);
            CHECK(cudaEventSynchronize(ready_[slot]));
            CHECK(cudaEventSynchronize(free_[slot]));
            work_.cpu(raw_[slot].data(), cooked_[slot].data());
            work_.last(last_, cooked_[slot].data());
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(free_[slot], last_));
            worked_.store(batch + 1, std::memory_order_release);
        }
    }
    const Work& work_;
    PinnedBuffer<unsigned> raw_[slots] = {PinnedBuffer<unsigned>(words), PinnedBuffer<unsigned>(words)};
    PinnedBuffer<unsigned> cooked_[slots] = {PinnedBuffer<unsigned>(words), PinnedBuffer<unsigned>(words)};
    cudaStream_t first_ = bench::make_stream();
    cudaStream_t last_ = bench::make_stream();
    bench::Events ready_{slots};
    bench::Events free_{slots};
    std::size_t submitted_ = 0;
    std::atomic<std::size_t> launched_{0};
    std::atomic<std::size_t> worked_{0};
    std::atomic<bool> stopping_{false};
    std::thread worker_;
};

/// The slowest stage's work by itself, batch after batch.
class SlowestAlone {
public:
    SlowestAlone(const Work& work, const Takes& takes)
        : work_(work), on_cpu_(takes.cpu == takes.slowest()), on_first_(takes.first == takes.slowest()) {}
    SlowestAlone(const SlowestAlone&) = delete;
    SlowestAlone& operator=(const SlowestAlone&) = delete;
    ~SlowestAlone() { cudaStreamDestroy(stream_); }
    void step() {
        if (on_cpu_) {
            work_.cpu(in_.data(), out_.data());
            return;
        }
        if (on_first_)
            work_.first(stream_, out_.data());
        else
            work_.last(stream_, in_.data());
        CHECK(cudaGetLastError());
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    const Work& work_;
    bool on_cpu_;
    bool on_first_;
    PinnedBuffer<unsigned> in_{words};
    PinnedBuffer<unsigned> out_{words};
    cudaStream_t stream_ = bench::make_stream();
};

/// One batch at a time. A thread that waits long for a stage may sleep meanwhile, so that there is a long one as well.
void add_latency(Schedule schedule, const Takes& takes, const char* name) {
    const std::string full = std::string("cpu_stage/latency/") + name + "/" + sluice::to_string(schedule);
    bench::add_rounds(full, [schedule, takes](benchmark::State& state) {
        const Work work(takes);
        const sluice::PipelineOptions options{.schedule = schedule, .steps_per_graph = 1};
        OneByHand by_hand(work);
        Batches with([&] { return make_with_cpu(work, options); }, true);
        Batches without([&] { return make_without_cpu(work, options); }, true);
        const bench::Burst burst{.stages = 3, .steps = 50, .until = bench::Until::done};
        bench::Rounds rounds;
        rounds.add("by_hand", by_hand, burst);
        rounds.add("with", with, burst, bench::Counted::yes);
        rounds.add("without", without, burst, bench::Counted::yes);
        rounds.subtract("with", "without", "<= 8 us");
        rounds.compare("with", "by_hand");
        rounds.run(state, sluice::Cuda::counts());
    });
}

void add_rate(const Takes& takes, const char* name) {
    bench::add_rounds(std::string("cpu_stage/rate/") + name, [takes](benchmark::State& state) {
        const Work work(takes);
        SlowestAlone alone(work, takes);
        ManyByHand by_hand(work);
        Batches overlapped([&] { return make_with_cpu(work, {.schedule = Schedule::overlapped}); }, false);
        Batches graphed([&] { return make_with_cpu(work, {.schedule = Schedule::graphed}); }, false);
        const bench::Burst burst{.stages = 3, .steps = 256, .until = bench::Until::done};
        bench::Rounds rounds;
        rounds.add("slowest alone", alone, burst);
        rounds.add("by_hand", by_hand, burst);
        rounds.add("overlapped", overlapped, burst, bench::Counted::yes);
        rounds.add("graphed", graphed, burst, bench::Counted::yes);
        rounds.compare("overlapped", "slowest alone", "<= 1.03");
        rounds.compare("graphed", "slowest alone");
        rounds.compare("overlapped", "by_hand");
        rounds.run(state, sluice::Cuda::counts());
    });
}

} // namespace

void bench::add_cpu_stage() {
    add_latency(Schedule::overlapped, {20, 0, 20}, "20_20");
    add_latency(Schedule::graphed, {20, 0, 20}, "20_20");
    add_latency(Schedule::overlapped, {400, 0, 20}, "400_20");
    add_rate({100, 60, 100}, "100_60_100");
    add_rate({100, 150, 100}, "100_150_100");
    add_rate({60, 30, 120}, "60_30_120");
    add_rate({120, 30, 60}, "120_30_60");
    add_rate({200, 120, 200}, "200_120_200");
}
