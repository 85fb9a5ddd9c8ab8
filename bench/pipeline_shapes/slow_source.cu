/// \file
/// A source that takes longer for a batch than the stages, and one that takes less. Under `graphed`, batches that the
/// automatic length of graphs held back for long would show in the first case, as the stages would idle.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <type_traits>

#include <sluice/sluice.hpp>

#include "shapes.hpp"
#include "spin.cuh"
#include "spin_host.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using bench::Spin;
using sluice::DeviceBuffer;
using sluice::PinnedBuffer;
using sluice::Schedule;
using sluice::StreamRef;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int source_slots = 32;
constexpr int slots = 2;
constexpr std::size_t words = 64;

auto make_source(Microseconds fill) {
    return sluice::Source{[](int) { return PinnedBuffer<unsigned>(words); },
                          [fill](std::size_t index, PinnedBuffer<unsigned>& out) {
                              bench::spin_on_cpu(fill);
                              out[0] = static_cast<unsigned>(index);
                          },
                          sluice::SourceOptions<>{.workers = 1, .slots = source_slots}};
}

auto make_pipeline(Schedule schedule) {
    const Spin spin(50);
    return sluice::TwoStreamPipeline{
        sluice::Stage{"copy",
                      [spin](StreamRef s, const PinnedBuffer<unsigned>& in, DeviceBuffer<unsigned>& out) {
                          sluice::copy(s, out, in);
                          spin.launch(s);
                      }},
        sluice::Stage{"use", [spin](StreamRef s, const DeviceBuffer<unsigned>&) { spin.launch(s); }},
        [](int) { return DeviceBuffer<unsigned>(words); },
        sluice::PipelineOptions{.schedule = schedule, .slots = slots}};
}

/// Two stages of 50 us behind a source that takes its time.
template <class Source, class Pipeline>
class SourceSubject {
public:
    template <class MakeSource, class MakePipeline>
    SourceSubject(MakeSource make_source, MakePipeline make_pipeline)
        : source_(make_source()), pipeline_(make_pipeline()) {}
    void step() { pipeline_.submit(source_.next()); }
    void sync() { pipeline_.finish(); }

private:
    Source source_;
    Pipeline pipeline_;
};
template <class MakeSource, class MakePipeline>
SourceSubject(MakeSource, MakePipeline)
    -> SourceSubject<std::invoke_result_t<MakeSource>, std::invoke_result_t<MakePipeline>>;

/// The same with a thread that fills a ring of pinned buffers.
class SourceByHand {
public:
    explicit SourceByHand(Microseconds fill)
        : fill_(fill), read_(source_slots), stages_(slots, Copy{this}, Spin(50)) {
        CHECK(cudaHostAlloc(&pinned_, source_slots * words * sizeof(unsigned), cudaHostAllocDefault));
        CHECK(cudaMalloc(&device_, slots * words * sizeof(unsigned)));
        worker_ = std::thread([this] { work(); });
    }
    SourceByHand(const SourceByHand&) = delete;
    SourceByHand& operator=(const SourceByHand&) = delete;
    ~SourceByHand() {
        stopping_ = true;
        worker_.join();
        stages_.sync();
        cudaFree(device_);
        cudaFreeHost(pinned_);
    }

    void step() {
        while (filled_.load(std::memory_order_acquire) <= taken_)
            std::this_thread::yield();
        stages_.step(); // which copies batch `taken_`
        ++taken_;
        submitted_.store(taken_, std::memory_order_release);
    }
    void sync() { stages_.sync(); }

private:
    struct Copy {
        SourceByHand* self;
        void operator()(cudaStream_t stream) const { self->copy(stream); }
    };
    void copy(cudaStream_t stream) {
        const std::size_t place = taken_ % source_slots;
        CHECK(cudaMemcpyAsync(device_ + taken_ % slots * words, pinned_ + place * words,
                              words * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
        CHECK(cudaEventRecord(read_[static_cast<int>(place)], stream));
        spin_(stream);
    }
    void work() {
        for (std::size_t batch = 0;; ++batch) {
            const std::size_t place = batch % source_slots;
            while (batch >= submitted_.load(std::memory_order_acquire) + source_slots) {
                if (stopping_)
                    return;
                std::this_thread::sleep_for(std::chrono::microseconds(10));
            }
            if (stopping_)
                return;
            CHECK(cudaEventSynchronize(read_[static_cast<int>(place)]));
            bench::spin_on_cpu(fill_);
            pinned_[place * words] = static_cast<unsigned>(batch);
            filled_.store(batch + 1, std::memory_order_release);
        }
    }

    Microseconds fill_;
    Spin spin_{50};
    unsigned* pinned_ = nullptr;
    unsigned* device_ = nullptr;
    bench::Events read_;
    bench::LaunchesByHand<Copy, Spin> stages_;
    std::size_t taken_ = 0;
    std::atomic<std::size_t> filled_{0};
    std::atomic<std::size_t> submitted_{0};
    std::atomic<bool> stopping_{false};
    std::thread worker_;
};

void add_case(const std::string& name, Microseconds fill) {
    bench::add_rounds("slow_source/" + name, [fill](benchmark::State& state) {
        // The batches that are ready beforehand come first, and so many more that the device catches up.
        const bench::Burst burst{
            .stages = 2, .steps = 64, .until = bench::Until::done, .lead = source_slots + 16};
        SourceByHand by_hand(fill);
        const auto source = [fill] { return make_source(fill); };
        SourceSubject overlapped(source, [] { return make_pipeline(Schedule::overlapped); });
        SourceSubject graphed(source, [] { return make_pipeline(Schedule::graphed); });
        bench::Rounds rounds;
        rounds.add("by_hand", by_hand, burst);
        rounds.add("overlapped", overlapped, burst, bench::Counted::yes);
        rounds.add("graphed:auto", graphed, burst, bench::Counted::yes);
        rounds.compare("overlapped", "by_hand");
        rounds.compare("graphed:auto", "overlapped", "<= 1.01");
        rounds.run(state, sluice::Cuda::counts());
    });
}

} // namespace

void bench::add_slow_source() {
    add_case("fill_200_stages_50", Microseconds(200));
    add_case("fill_20_stages_50", Microseconds(20));
}
