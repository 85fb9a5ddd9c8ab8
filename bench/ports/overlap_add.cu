/// \file
/// A filter by overlap-add: blocks of many channels, each padded with zeros, transformed, multiplied with the filter's
/// transform and transformed back where they are; what hangs over the end is added to the next block.
#include <cuda_runtime.h>
#include <cufft.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/sluice.hpp>

#include "ports.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using sluice::DeviceBuffer;
using sluice::PinnedBuffer;
using sluice::StreamRef;

constexpr unsigned size = 4096; ///< of a transform
constexpr unsigned taps = 1025;
constexpr unsigned fresh = size - taps + 1; ///< samples of a block
constexpr std::size_t frames = 4;           ///< that come in turns
constexpr unsigned threads = 256;

void check(cufftResult result) {
    if (result != CUFFT_SUCCESS)
        throw sluice::Error("cuFFT's error " + std::to_string(result));
}

__global__ void pad(float2* block, const float2* in) {
    const unsigned at = blockIdx.x * threads + threadIdx.x, channel = blockIdx.y;
    block[channel * size + at] = at < fresh ? in[channel * fresh + at] : float2{0, 0};
}
__global__ void multiply(float2* block, const float2* filter) {
    const unsigned at = blockIdx.x * threads + threadIdx.x;
    float2& value = block[blockIdx.y * size + at];
    const float2 a = value, b = filter[at];
    value = {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
/// `before` is null for the first block.
__global__ void add_tail(float2* out, const float2* block, const float2* before) {
    const unsigned at = blockIdx.x * threads + threadIdx.x, channel = blockIdx.y;
    float2 sum = block[channel * size + at];
    if (at < size - fresh && before != nullptr) {
        const float2 tail = before[channel * size + fresh + at];
        sum = {sum.x + tail.x, sum.y + tail.y};
    }
    out[channel * fresh + at] = sum;
}

/// A transform's plan belongs to one side: it has memory of its own.
class Plan {
public:
    explicit Plan(unsigned channels) {
        check(cufftPlan1d(&plan_, static_cast<int>(size), CUFFT_C2C, static_cast<int>(channels)));
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() { cufftDestroy(plan_); }
    void set(cudaStream_t stream) const { check(cufftSetStream(plan_, stream)); }
    void run(float2* values, int direction) const { check(cufftExecC2C(plan_, values, values, direction)); }

private:
    cufftHandle plan_ = 0;
};

using Sample = std::complex<float>;

/// Where a block comes from and goes to: on the device, or pinned.
struct Frame {
    const float2* in;
    float2* out;
    friend auto graph_key(const Frame& frame) { return std::pair(frame.in, frame.out); }
};

/// The samples, the filter, and the stages' work, for both sides.
class Filter {
public:
    Filter(unsigned channels, bool on_device) : channels_(channels), on_device_(on_device) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        const auto draw = [&] {
            return Sample(uniform(bench::fresh_random()), uniform(bench::fresh_random()));
        };
        const sluice::Stream stream;
        std::vector<Sample> padded(size);
        for (unsigned tap = 0; tap < taps; ++tap)
            padded[tap] = draw() / std::sqrt(static_cast<float>(taps));
        taps_.assign(padded.begin(), padded.begin() + taps);
        const std::size_t bytes = size * sizeof(float2);
        CHECK(cudaMemcpy(filter_.data(), padded.data(), bytes, cudaMemcpyHostToDevice));
        Plan(1).run(filter_.data(), CUFFT_FORWARD);
        CHECK(cudaMemcpy(padded.data(), filter_.data(), bytes, cudaMemcpyDeviceToHost));
        for (Sample& value : padded)
            value /= static_cast<float>(size); // which transforms leave to the caller
        CHECK(cudaMemcpy(filter_.data(), padded.data(), bytes, cudaMemcpyHostToDevice));

        for (std::size_t frame = 0; frame < frames; ++frame) {
            pinned_in_.emplace_back(samples());
            pinned_out_.emplace_back(samples());
            for (float2& sample : pinned_in_.back()) {
                const Sample drawn = draw();
                sample = {drawn.real(), drawn.imag()};
            }
            if (on_device) {
                device_in_.emplace_back(samples());
                device_out_.emplace_back(samples());
                copy_and_wait(stream, device_in_.back(), pinned_in_.back());
            }
        }
    }
    unsigned channels() const { return channels_; }
    std::size_t samples() const { return std::size_t{channels_} * fresh; }
    std::size_t padded_samples() const { return std::size_t{channels_} * size; }
    Frame frame(std::size_t number) {
        number %= frames;
        if (on_device_)
            return {device_in_[number].data(), device_out_[number].data()};
        return {pinned_in_[number].data(), pinned_out_[number].data()};
    }

    void load(cudaStream_t stream, const Frame& frame, float2* block) const {
        if (on_device_) {
            pad<<<dim3(size / threads, channels_), threads, 0, stream>>>(block, frame.in);
            return;
        }
        constexpr std::size_t pitch = size * sizeof(float2), bytes = fresh * sizeof(float2);
        CHECK(cudaMemcpy2DAsync(block, pitch, frame.in, bytes, bytes, channels_, cudaMemcpyHostToDevice,
                                stream));
        CHECK(cudaMemset2DAsync(block + fresh, pitch, 0, pitch - bytes, channels_, stream));
    }
    void filter(cudaStream_t stream, const Plan& plan, float2* block) const {
        plan.run(block, CUFFT_FORWARD);
        multiply<<<dim3(size / threads, channels_), threads, 0, stream>>>(block, filter_.data());
        plan.run(block, CUFFT_INVERSE);
    }
    void add(cudaStream_t stream, const float2* block, const float2* before, float2* out) const {
        add_tail<<<dim3(fresh / threads, channels_), threads, 0, stream>>>(out, block, before);
    }
    void fetch(cudaStream_t stream, const float2* sum, float2* out) const {
        CHECK(cudaMemcpyAsync(out, sum, samples() * sizeof(float2), cudaMemcpyDeviceToHost, stream));
    }

    void forget_outputs() {
        for (std::size_t frame = 0; frame < frames; ++frame) {
            for (float2& value : pinned_out_[frame])
                value = {std::numeric_limits<float>::quiet_NaN(), 0};
            if (on_device_)
                CHECK(cudaMemset(device_out_[frame].data(), 0xff, samples() * sizeof(float2)));
        }
    }
    /// Of every frame some samples, the ends of the tail and of the block among them. There was a frame before each.
    bool is_right() {
        for (std::size_t frame = 0; frame < frames; ++frame) {
            if (on_device_)
                copy_and_wait(sluice::Stream(), pinned_out_[frame], device_out_[frame]);
            std::vector<unsigned> places{0, taps - 2, taps - 1, fresh - 1};
            while (places.size() < 200)
                places.push_back(static_cast<unsigned>(bench::fresh_random()()) % fresh);
            for (const unsigned channel :
                 {0U, static_cast<unsigned>(bench::fresh_random()()) % channels_, channels_ - 1}) {
                for (const unsigned place : places) {
                    const float2 got = pinned_out_[frame][std::size_t{channel} * fresh + place];
                    const std::complex<double> expected = expected_at(frame, channel, place);
                    if (!(std::abs(std::complex<double>(got.x, got.y) - expected) < 1e-4))
                        return false;
                }
            }
        }
        return true;
    }

private:
    static_assert(size % threads == 0 && fresh % threads == 0 && size - fresh <= fresh);

    std::complex<double> expected_at(std::size_t frame, unsigned channel, unsigned place) const {
        const float2* const now = pinned_in_[frame].data() + std::size_t{channel} * fresh;
        const float2* const before =
            pinned_in_[(frame + frames - 1) % frames].data() + std::size_t{channel} * fresh;
        std::complex<double> sum = 0;
        for (unsigned tap = 0; tap < taps; ++tap) {
            const float2 sample = tap <= place ? now[place - tap] : before[fresh + place - tap];
            sum += std::complex<double>(taps_[tap]) * std::complex<double>(sample.x, sample.y);
        }
        return sum;
    }

    unsigned channels_;
    bool on_device_;
    std::vector<Sample> taps_;
    DeviceBuffer<float2> filter_{size};
    std::vector<PinnedBuffer<float2>> pinned_in_, pinned_out_;
    std::vector<DeviceBuffer<float2>> device_in_, device_out_;
};

/// A stream a stage, or one for all. Three blocks, since that of the batch before is still needed; in device memory the last
/// stage writes the output itself.
class FilterByHand {
public:
    FilterByHand(Filter& filter, bool on_device, bool one_stream)
        : filter_(filter), on_device_(on_device), plan_(filter.channels()) {
        for (std::size_t stage = 0; stage < streams_.size(); ++stage)
            streams_[stage] = one_stream && stage > 0 ? streams_[0] : bench::make_stream();
        for (int block = 0; block < 3; ++block)
            blocks_.emplace_back(filter.padded_samples());
        for (int sum = 0; sum < 2 && !on_device; ++sum)
            sums_.emplace_back(filter.samples());
        plan_.set(streams_[1]);
    }
    FilterByHand(const FilterByHand&) = delete;
    FilterByHand& operator=(const FilterByHand&) = delete;
    ~FilterByHand() {
        for (std::size_t stage = 0; stage < streams_.size(); ++stage) {
            if (stage == 0 || streams_[stage] != streams_[0])
                cudaStreamDestroy(streams_[stage]);
        }
    }

    void step() {
        const auto [load, filter, add, fetch] = streams_;
        const bool one_stream = load == filter;
        const auto wait = [&](cudaStream_t stream, cudaEvent_t event) {
            if (!one_stream)
                CHECK(cudaStreamWaitEvent(stream, event));
        };
        const auto record = [&](cudaEvent_t event, cudaStream_t stream) {
            if (!one_stream)
                CHECK(cudaEventRecord(event, stream));
        };
        const Frame frame = filter_.frame(step_);
        const int at = static_cast<int>(step_ % 3), sum = static_cast<int>(step_ % 2);
        float2* const block = blocks_[step_ % 3].data();
        const float2* const before = step_ > 0 ? blocks_[(step_ - 1) % 3].data() : nullptr;

        wait(load, added_[(at + 1) % 3]); // the batch before the last one was the last to read this block
        filter_.load(load, frame, block);
        CHECK(cudaGetLastError());
        record(loaded_[at], load);

        wait(filter, loaded_[at]);
        filter_.filter(filter, plan_, block);
        CHECK(cudaGetLastError());
        record(filtered_[at], filter);

        wait(add, filtered_[at]);
        if (!on_device_)
            wait(add, fetched_[sum]);
        float2* const out = on_device_ ? frame.out : sums_[step_ % 2].data();
        filter_.add(add, block, before, out);
        CHECK(cudaGetLastError());
        record(added_[at], add);

        if (!on_device_) {
            wait(fetch, added_[at]);
            filter_.fetch(fetch, out, frame.out);
            record(fetched_[sum], fetch);
        }
        ++step_;
    }
    void sync() {
        for (const cudaStream_t stream : streams_)
            CHECK(cudaStreamSynchronize(stream));
    }

private:
    Filter& filter_;
    bool on_device_;
    Plan plan_;
    std::size_t step_ = 0;
    std::array<cudaStream_t, 4> streams_{};
    bench::Events loaded_{3}, filtered_{3}, added_{3}, fetched_{2};
    std::vector<DeviceBuffer<float2>> blocks_, sums_;
};

// The same with sluice, from here
struct Block {
    DeviceBuffer<float2> values;
};
struct Sum {
    DeviceBuffer<float2> values;
};
using Blocks = sluice::Last<2, Block>;
const float2* tail_before(const Blocks& blocks) {
    return blocks.size() == 2 ? blocks[1].values.data() : nullptr;
}

auto make_filter_on_device(const Filter& filter, const Plan& plan, sluice::Schedule schedule) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"load", [&](StreamRef stream, const Frame& frame,
                                      Block& out) { filter.load(stream, frame, out.values.data()); }},
            sluice::Stage{"filter",
                          [&](StreamRef stream, sluice::InPlace<Block>& block) {
                              plan.set(stream);
                              filter.filter(stream, plan, block->values.data());
                          }},
            sluice::Stage{"add",
                          [&](StreamRef stream, const Frame& frame, const Blocks& blocks) {
                              filter.add(stream, blocks[0].values.data(), tail_before(blocks), frame.out);
                          }}},
        sluice::Slots{[&](int) { return Block{DeviceBuffer<float2>(filter.padded_samples())}; }},
        sluice::PipelineOptions{.schedule = schedule}};
}
// to here: 18 lines. And from pinned memory and back:
auto make_filter_on_host(const Filter& filter, const Plan& plan, sluice::Schedule schedule) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"load", [&](StreamRef stream, const Frame& frame,
                                      Block& out) { filter.load(stream, frame, out.values.data()); }},
            sluice::Stage{"filter",
                          [&](StreamRef stream, sluice::InPlace<Block>& block) {
                              plan.set(stream);
                              filter.filter(stream, plan, block->values.data());
                          }},
            sluice::Stage{"add",
                          [&](StreamRef stream, const Blocks& blocks, Sum& out) {
                              filter.add(stream, blocks[0].values.data(), tail_before(blocks),
                                         out.values.data());
                          }},
            sluice::Stage{"fetch",
                          [&](StreamRef stream, const Frame& frame, const Sum& in) {
                              filter.fetch(stream, in.values.data(), frame.out);
                          }}},
        sluice::Slots{[&](int) { return Block{DeviceBuffer<float2>(filter.padded_samples())}; },
                      [&](int) { return Sum{DeviceBuffer<float2>(filter.samples())}; }},
        sluice::PipelineOptions{.schedule = schedule}};
}

template <class Pipeline>
class PipelineOfFrames {
public:
    /// Of what `make(filter, plan)` makes.
    template <class Make>
    PipelineOfFrames(Filter& filter, Make make)
        : filter_(filter), plan_(filter.channels()),
          pipeline_(make(std::as_const(filter), std::as_const(plan_))) {}
    void step() { pipeline_.submit(filter_.frame(step_++)); }
    void sync() { pipeline_.finish(); }

private:
    Filter& filter_;
    Plan plan_;
    std::size_t step_ = 0;
    Pipeline pipeline_;
};
template <class Make>
PipelineOfFrames(Filter&, Make) -> PipelineOfFrames<std::invoke_result_t<Make, const Filter&, const Plan&>>;

/// `make(filter, plan, schedule)` makes the pipelines.
template <class Make>
void compare(benchmark::State& state, unsigned channels, bool on_device, Make make) {
    Filter filter(channels, on_device);
    FilterByHand by_hand(filter, on_device, false), one_stream(filter, on_device, true);
    const auto scheduled = [make](sluice::Schedule schedule) {
        return [make, schedule](const Filter& of, const Plan& plan) { return make(of, plan, schedule); };
    };
    PipelineOfFrames serial(filter, scheduled(sluice::Schedule::serial));
    PipelineOfFrames overlapped(filter, scheduled(sluice::Schedule::overlapped));
    PipelineOfFrames graphed(filter, scheduled(sluice::Schedule::graphed));

    const bench::Burst burst{.stages = 4, .steps = 48, .until = bench::Until::done};
    bench::Rounds rounds;
    const auto add = [&](const char* name, auto& subject, bench::Counted counted) {
        filter.forget_outputs();
        bench::expect_right(name, subject, 6 * frames, [&] { return filter.is_right(); });
        rounds.add(name, subject, burst, counted);
    };
    add("by hand", by_hand, bench::Counted::no);
    add("one stream by hand", one_stream, bench::Counted::no);
    add("serial", serial, bench::Counted::yes);
    add("overlapped", overlapped, bench::Counted::yes);
    add("graphed", graphed, bench::Counted::yes);
    rounds.compare("by hand", "overlapped", ">= 0.97");
    rounds.compare("by hand", "graphed");
    rounds.compare("one stream by hand", "serial", ">= 0.97");
    rounds.run(state, sluice::Cuda::counts());
}

} // namespace

void bench::add_overlap_add() {
    for (const unsigned channels : {16U, 256U}) {
        const std::string name = "overlap_add/" + std::to_string(channels) + " channels, ";
        add_rounds(
            name + "device memory",
            [=](benchmark::State& state) { compare(state, channels, true, make_filter_on_device); }, 25);
        add_rounds(
            name + "pinned memory",
            [=](benchmark::State& state) { compare(state, channels, false, make_filter_on_host); }, 25);
    }
}
