/// \file
/// Two stages that take times drawn at random, until the device is done: what schedules and slots gain. The times lie in
/// device memory, so that a captured launch takes another one each time, and are the same for all subjects.
#include <cuda_runtime.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline_overhead.hpp"
#include "shapes.hpp"
#include "spin.cuh"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using bench::SpinList;
using sluice::Schedule;
using sluice::StreamRef;

/// Microseconds of each stage, batch by batch.
struct Times {
    std::vector<double> first;
    std::vector<double> last;
    /// Of the stage that takes longer in all.
    const std::vector<double>& slower() const {
        double more = 0;
        for (std::size_t i = 0; i < first.size(); ++i)
            more += first[i] - last[i];
        return more >= 0 ? first : last;
    }
};

/// Each stage's times are drawn by themselves, between `least` and `most`.
Times drawn(int steps, double least, double most) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> time(least, most);
    Times times;
    for (int step = 0; step < steps; ++step) {
        times.first.push_back(time(random));
        times.last.push_back(time(random));
    }
    return times;
}
Times fixed(int steps, double first, double last) {
    const auto count = static_cast<std::size_t>(steps);
    return {std::vector<double>(count, first), std::vector<double>(count, last)};
}
/// Ragged batches: 32 rows of up to 32 boxes, most of them few; both stages take a time by the batch's own boxes.
Times ragged(int steps) {
    std::mt19937 random(1);
    std::geometric_distribution<int> boxes(0.15);
    Times times;
    for (int step = 0; step < steps; ++step) {
        // A batch holds 4 to 32 images, so that its size is far from even.
        const int images = std::uniform_int_distribution<int>(4, 32)(random);
        int total = 0;
        for (int image = 0; image < images; ++image)
            total += std::min(32, boxes(random));
        times.first.push_back(5 + 0.30 * total);
        times.last.push_back(5 + 0.25 * total);
    }
    return times;
}

/// Its lists, and the pipeline that works through them.
template <class Subject>
struct WithLists {
    template <class Make>
    WithLists(const Times& times, Make make)
        : first(times.first), last(times.last), subject(make(first.stage(), last.stage())) {}
    void step() { subject.step(); }
    void sync() { subject.sync(); }

    SpinList first;
    SpinList last;
    Subject subject;
};
template <class Make>
WithLists(const Times&, Make) -> WithLists<std::invoke_result_t<Make, SpinList::Stage, SpinList::Stage>>;

auto make_pipeline(SpinList::Stage first, SpinList::Stage last, const sluice::PipelineOptions& options) {
    return bench::PipelineSubject{[&] {
        return sluice::TwoStreamPipeline{
            sluice::Stage{"first", [first](StreamRef s, const int&, bench::EmptySlot&) { first.launch(s); }},
            sluice::Stage{"last", [last](StreamRef s, bench::EmptySlot&) { last.launch(s); }},
            bench::make_empty_slot, options};
    }};
}

/// A case with `slots` slots. Bursts last about 5 ms, for which each list holds a time a step.
void add_case(const std::string& name, int slots, int steps, Times (*make_times)(int)) {
    bench::add_rounds("uneven/" + name + "/slots:" + std::to_string(slots), [=](benchmark::State& state) {
        const Times times = make_times(steps);
        const bench::Burst burst{.stages = 2, .steps = steps, .until = bench::Until::done};
        const auto pipeline = [&](Schedule schedule, int steps_per_graph) {
            return WithLists{times, [=](SpinList::Stage first, SpinList::Stage last) {
                                 return make_pipeline(first, last,
                                                      {.schedule = schedule,
                                                       .slots = slots,
                                                       .steps_per_graph = steps_per_graph});
                             }};
        };
        const SpinList slower(times.slower());
        bench::AloneByHand alone{slower.stage()};
        WithLists launches{times, [=](SpinList::Stage first, SpinList::Stage last) {
                               return bench::LaunchesByHand{slots, first, last};
                           }};
        WithLists graphs{times, [=](SpinList::Stage first, SpinList::Stage last) {
                             return bench::GraphByHand{slots, 16, first, last};
                         }};
        auto overlapped = pipeline(Schedule::overlapped, 0);
        auto graphed_1 = pipeline(Schedule::graphed, 1);
        auto graphed_4 = pipeline(Schedule::graphed, 4);
        auto graphed_16 = pipeline(Schedule::graphed, 16);

        using enum bench::Counted;
        bench::Rounds rounds;
        rounds.add("slower alone", alone, burst);
        rounds.add("by_hand", launches, burst);
        rounds.add("by_hand:16", graphs, burst);
        rounds.add("overlapped", overlapped, burst, yes);
        rounds.add("graphed:1", graphed_1, burst, yes);
        rounds.add("graphed:4", graphed_4, burst, yes);
        rounds.add("graphed:16", graphed_16, burst, yes);
        rounds.compare("overlapped", "by_hand");
        rounds.compare("graphed:16", "by_hand:16");
        rounds.compare("graphed:16", "overlapped", "<= 1.03");
        rounds.compare("graphed:1", "graphed:16", ">= 1.12 if uneven, 4 slots");
        rounds.run(state, sluice::Cuda::counts());
    });
}

} // namespace

void bench::add_uneven() {
    const struct {
        const char* name;
        int steps;
        Times (*times)(int);
    } cases[] = {
        {"20_and_20", 256, [](int n) { return fixed(n, 20, 20); }},
        {"4_to_40", 256, [](int n) { return drawn(n, 4, 40); }},
        {"10_to_100", 128, [](int n) { return drawn(n, 10, 100); }},
        {"2_and_2", 1024, [](int n) { return fixed(n, 2, 2); }},
        {"ragged", 128, [](int n) { return ragged(n); }},
        {"fixed_1_to_2", 256, [](int n) { return fixed(n, 15, 30); }},
        {"fixed_1_to_5", 256, [](int n) { return fixed(n, 6, 30); }},
        {"fixed_1_to_10", 256, [](int n) { return fixed(n, 3, 30); }},
    };
    for (const auto& one : cases) {
        for (const int slots : {2, 4})
            add_case(one.name, slots, one.steps, one.times);
    }
}
