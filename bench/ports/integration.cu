/// \file
/// Radio-astronomy integration: blocks of complex samples of many frequencies come from pinned memory, the power of 16, 4 or 1 of
/// them is added up, and each sum is written.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <sluice/sluice.hpp>

#include "ports.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

bool bench::describe() { return describe_device(); }

namespace {

using sluice::DeviceBuffer;
using sluice::PinnedBuffer;
using sluice::StreamRef;

constexpr std::size_t frequencies = 1024;
constexpr std::size_t blocks = 32; ///< that come in turns
constexpr int slots = 2;

/// Integers, so that the order of the additions does not matter.
__global__ void add_power(unsigned* power, const char2* samples) {
    constexpr unsigned times = 32;
    const std::size_t frequency = blockIdx.x * blockDim.x + threadIdx.x;
    samples += std::size_t{blockIdx.y} * times * frequencies + frequency;
    int sum = 0;
    for (unsigned time = 0; time < times; ++time) {
        const char2 sample = samples[time * frequencies];
        sum += sample.x * sample.x + sample.y * sample.y;
    }
    atomicAdd(power + frequency, static_cast<unsigned>(sum));
}

/// What both sides read, and what comes of it.
class Observation {
public:
    /// Of blocks of `times` samples of each frequency.
    explicit Observation(std::size_t times) : times_(times) {
        for (std::size_t block = 0; block < blocks; ++block) {
            blocks_.emplace_back(times * frequencies);
            for (char2& sample : blocks_.back()) {
                const auto drawn = static_cast<std::uint32_t>(bench::fresh_random()());
                sample = {static_cast<signed char>(drawn), static_cast<signed char>(drawn >> 8)};
            }
        }
    }
    std::size_t samples() const { return times_ * frequencies; }
    const PinnedBuffer<char2>& block(std::size_t number) const { return blocks_[number % blocks]; }
    void launch(cudaStream_t stream, unsigned* power, const char2* samples) const {
        add_power<<<dim3(frequencies / 256, static_cast<unsigned>(times_ / 32)), 256, 0, stream>>>(power,
                                                                                                   samples);
    }
    /// The sum of `every` blocks, the first of which is block `first`.
    std::vector<unsigned> expected(std::size_t first, std::size_t every) const {
        std::vector<unsigned> power(frequencies);
        for (std::size_t i = 0; i < every; ++i) {
            const PinnedBuffer<char2>& samples = block(first + i);
            for (std::size_t at = 0; at < samples.size(); ++at)
                power[at % frequencies] +=
                    static_cast<unsigned>(samples[at].x * samples[at].x + samples[at].y * samples[at].y);
        }
        return power;
    }

private:
    std::size_t times_;
    std::vector<PinnedBuffer<char2>> blocks_;
};

/// Where sums are written.
class Spectra {
public:
    void write(const unsigned* power) {
        std::memcpy(last_[written_++ % blocks].data(), power, frequencies * sizeof *power);
    }
    /// That the last sums, and how many there were, are those of so many steps.
    bool are_right(const Observation& observation, std::size_t every, std::size_t steps) const {
        if (written_ != steps / every)
            return false;
        for (std::size_t i = 0; i < blocks && i < written_; ++i) {
            const std::size_t number = written_ - 1 - i;
            if (last_[number % blocks] != observation.expected(number * every, every))
                return false;
        }
        return true;
    }

private:
    std::vector<std::vector<unsigned>> last_{blocks, std::vector<unsigned>(frequencies)};
    std::size_t written_ = 0;
};

class IntegrationByHand {
public:
    IntegrationByHand(const Observation& observation, std::size_t every, Spectra& spectra)
        : observation_(observation), every_(every) {
        for (int slot = 0; slot < slots; ++slot) {
            samples_.emplace_back(observation.samples());
            sums_.emplace_back(frequencies);
            pinned_.emplace_back(frequencies);
        }
        for (int slot = 0; slot < slots; ++slot)
            writes_[slot] = {&spectra, pinned_[static_cast<std::size_t>(slot)].data()};
    }
    IntegrationByHand(const IntegrationByHand&) = delete;
    IntegrationByHand& operator=(const IntegrationByHand&) = delete;
    ~IntegrationByHand() {
        for (const cudaStream_t stream : {upload_, integrate_, fetch_})
            cudaStreamDestroy(stream);
    }

    void step() {
        const PinnedBuffer<char2>& block = observation_.block(step_);
        const int slot = static_cast<int>(step_ % slots);
        DeviceBuffer<char2>& samples = samples_[step_ % slots];
        CHECK(cudaStreamWaitEvent(upload_, read_[slot]));
        CHECK(cudaMemcpyAsync(samples.data(), block.data(), block.size() * sizeof(char2),
                              cudaMemcpyHostToDevice, upload_));
        CHECK(cudaEventRecord(there_[slot], upload_));

        const std::size_t turn = step_ % every_;
        const int output = static_cast<int>(step_ / every_ % slots);
        unsigned* const sum = sums_[static_cast<std::size_t>(output)].data();
        CHECK(cudaStreamWaitEvent(integrate_, there_[slot]));
        if (turn == 0) {
            CHECK(cudaStreamWaitEvent(integrate_, fetched_[output]));
            CHECK(cudaMemsetAsync(sum, 0, frequencies * sizeof *sum, integrate_));
        }
        observation_.launch(integrate_, sum, samples.data());
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(read_[slot], integrate_));

        if (turn + 1 == every_) {
            CHECK(cudaEventRecord(summed_[output], integrate_));
            CHECK(cudaStreamWaitEvent(fetch_, summed_[output]));
            CHECK(cudaMemcpyAsync(pinned_[static_cast<std::size_t>(output)].data(), sum,
                                  frequencies * sizeof *sum, cudaMemcpyDeviceToHost, fetch_));
            CHECK(cudaEventRecord(fetched_[output], fetch_));
            CHECK(cudaLaunchHostFunc(
                fetch_,
                [](void* given) {
                    const Write& write = *static_cast<Write*>(given);
                    write.spectra->write(write.power);
                },
                &writes_[output]));
        }
        ++step_;
    }
    void sync() {
        for (const cudaStream_t stream : {upload_, integrate_, fetch_})
            CHECK(cudaStreamSynchronize(stream));
    }

private:
    struct Write {
        Spectra* spectra;
        const unsigned* power;
    };
    const Observation& observation_;
    std::size_t every_;
    std::size_t step_ = 0;
    cudaStream_t upload_ = bench::make_stream(), integrate_ = bench::make_stream(),
                 fetch_ = bench::make_stream();
    bench::Events there_{slots}, read_{slots}, summed_{slots}, fetched_{slots};
    std::vector<DeviceBuffer<char2>> samples_;
    std::vector<DeviceBuffer<unsigned>> sums_;
    std::vector<PinnedBuffer<unsigned>> pinned_;
    Write writes_[slots] = {};
};

// The same with sluice, from here
struct Samples {
    DeviceBuffer<char2> values;
};
struct Sum {
    DeviceBuffer<unsigned> power;
};
struct Spectrum {
    PinnedBuffer<unsigned> power;
};

auto make_integration(const Observation& observation, int every, Spectra& spectra,
                      sluice::Schedule schedule) {
    return sluice::Pipeline{
        sluice::Stages{
            sluice::Stage{"upload", [](StreamRef stream, const PinnedBuffer<char2>& block,
                                       Samples& out) { sluice::copy(stream, out.values, block); }},
            sluice::Stage{"integrate",
                          [&](StreamRef stream, const Samples& in, Sum& out, sluice::Turn turn) {
                              if (turn.first())
                                  sluice::fill_bytes(stream, out.power, 0);
                              observation.launch(stream, out.power.data(), in.values.data());
                          },
                          sluice::StageOptions<>{.every = every}},
            sluice::Stage{"fetch", [](StreamRef stream, const Sum& in,
                                      Spectrum& out) { sluice::copy(stream, out.power, in.power); }},
            sluice::Stage{"write", [&](const Spectrum& in) { spectra.write(in.power.data()); }}},
        sluice::Slots{[&](int) { return Samples{DeviceBuffer<char2>(observation.samples())}; },
                      [](int) { return Sum{DeviceBuffer<unsigned>(frequencies)}; },
                      [](int) { return Spectrum{PinnedBuffer<unsigned>(frequencies)}; }},
        sluice::PipelineOptions{.schedule = schedule, .slots = slots}};
}
// to here: 22 lines, of which none counts.

template <class Pipeline>
class PipelineOfBlocks {
public:
    template <class Make>
    PipelineOfBlocks(const Observation& observation, Make make)
        : observation_(observation), pipeline_(make()) {}
    void step() { pipeline_.submit(observation_.block(step_++)).stays(); }
    void sync() { pipeline_.finish(); }

private:
    const Observation& observation_;
    std::size_t step_ = 0;
    Pipeline pipeline_;
};
template <class Make>
PipelineOfBlocks(const Observation&, Make) -> PipelineOfBlocks<std::invoke_result_t<Make>>;

void integrate(benchmark::State& state, std::size_t times, int every) {
    const Observation observation(times);
    const std::size_t count = static_cast<std::size_t>(every);
    Spectra spectra[3];
    IntegrationByHand by_hand(observation, count, spectra[0]);
    PipelineOfBlocks overlapped(observation, [&] {
        return make_integration(observation, every, spectra[1], sluice::Schedule::overlapped);
    });
    PipelineOfBlocks graphed(observation, [&] {
        return make_integration(observation, every, spectra[2], sluice::Schedule::graphed);
    });
    constexpr int steps = 8 * 16;
    const auto right = [&](const Spectra& of) {
        return [&] { return of.are_right(observation, count, steps); };
    };
    bench::expect_right("by hand", by_hand, steps, right(spectra[0]));
    bench::expect_right("overlapped", overlapped, steps, right(spectra[1]));
    bench::expect_right("graphed", graphed, steps, right(spectra[2]));

    const bench::Burst burst{.stages = 4, .steps = 96, .until = bench::Until::done};
    bench::Rounds rounds;
    rounds.add("by hand", by_hand, burst);
    rounds.add("overlapped", overlapped, burst, bench::Counted::yes);
    rounds.add("graphed", graphed, burst, bench::Counted::yes);
    rounds.compare("by hand", "overlapped");
    rounds.compare("by hand", "graphed");
    rounds.run(state, sluice::Cuda::counts());
}

} // namespace

void bench::add_integration() {
    for (const std::size_t times : {std::size_t{128}, std::size_t{1024}}) {
        for (const int every : {16, 4, 1}) {
            const std::size_t kibibytes = times * frequencies * sizeof(char2) / 1024;
            add_rounds(
                "integration/" + std::to_string(kibibytes) + " KiB, " + std::to_string(every) + " an output",
                [=](benchmark::State& state) { integrate(state, times, every); }, 25);
        }
    }
}
