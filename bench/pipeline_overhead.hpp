/// \file
/// pipeline_overhead: what one step of a pipeline costs the host when its stages do nothing but one launch. See
/// support/main.cpp for how to run it.
///
/// - `BACKEND/two_stage/SCHEDULE`: two stages, two slots, through TwoStreamPipeline. On CUDA, the aim is at
///   most 1.05 times the hand-written baseline under `overlapped`.
/// - `BACKEND/stages:N/slots:M`: the curve, through Pipeline, overlapped.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/sluice.hpp>

#include "support/benchmarks.hpp"
#include "support/paired.hpp"

namespace bench {

/// What the stages exchange: there is nothing to hand on but the order.
struct EmptySlot {};
inline constexpr auto make_empty_slot = [](int) { return EmptySlot{}; };

/// One empty piece of work a stage, as `Launch` enqueues it.
template <class B, class Launch>
struct EmptyStages {
    static constexpr auto first = [](sluice::BasicStreamRef<B> stream, const int&, EmptySlot&) {
        Launch::enqueue(stream);
    };
    static constexpr auto middle = [](sluice::BasicStreamRef<B> stream, EmptySlot&, EmptySlot&) {
        Launch::enqueue(stream);
    };
    static constexpr auto last = [](sluice::BasicStreamRef<B> stream, EmptySlot&) {
        Launch::enqueue(stream);
    };
};

template <class B, class Launch>
auto make_two_stream_pipeline(const sluice::PipelineOptions& options) {
    using Empty = EmptyStages<B, Launch>;
    return sluice::TwoStreamPipeline{sluice::Stage{"first", Empty::first}, sluice::Stage{"last", Empty::last},
                                     make_empty_slot, options};
}

/// Host time of two stages, of steps that are `steps_per_graph` to a graph. The first graphs after a synchronisation
/// fill, and run eagerly: they lead.
inline Burst two_stage_burst(int steps_per_graph) {
    constexpr int stages = 2;
    return {.stages = stages,
            .steps = steps_per_burst(stages) / steps_per_graph * steps_per_graph,
            .lead = 2 * steps_per_graph};
}

/// `value`, once for each index of a pack.
template <std::size_t, class T>
T repeated(T value) {
    return value;
}

/// `sizeof...(Middle) + 2` stages.
template <class B, class Launch, std::size_t... Middle>
auto make_chain(int slots, std::index_sequence<Middle...>) {
    using Empty = EmptyStages<B, Launch>;
    return sluice::Pipeline{sluice::Stages{sluice::Stage{"first", Empty::first},
                                           repeated<Middle>(sluice::Stage{"middle", Empty::middle})...,
                                           sluice::Stage{"last", Empty::last}},
                            sluice::Slots{make_empty_slot, repeated<Middle>(make_empty_slot)...},
                            sluice::PipelineOptions{.slots = slots}};
}

/// A pipeline as a subject.
template <class Pipeline>
class PipelineSubject {
public:
    template <class Make>
    explicit PipelineSubject(Make make) : pipeline_(make()) {}
    void step() { pipeline_.submit(batch_); }
    void sync() { pipeline_.finish(); }

private:
    int batch_ = 0;
    Pipeline pipeline_;
};
template <class Make>
PipelineSubject(Make) -> PipelineSubject<std::invoke_result_t<Make>>;

/// Two stages under `schedule`, beside what `make_baseline()` returns.
template <class B, class Launch, class MakeBaseline>
void add_two_stage(const std::string& name, sluice::Schedule schedule, MakeBaseline make_baseline,
                   int steps_per_graph = 1) {
    const sluice::PipelineOptions options{.schedule = schedule, .steps_per_graph = steps_per_graph};
    const Burst burst = two_stage_burst(steps_per_graph);
    add(name, burst, [=](benchmark::State& state) {
        auto baseline = make_baseline();
        PipelineSubject subject{[&] { return make_two_stream_pipeline<B, Launch>(options); }};
        measure(state, subject, baseline, B::counts(), burst);
    });
}

/// The curve: 2 to 8 overlapped stages with 2 to 4 slots, each beside what `make_baseline(stages, slots)`
/// returns.
template <class B, class Launch, class MakeBaseline>
void add_curve(const std::string& prefix, MakeBaseline make_baseline) {
    const auto add_chains = [&]<std::size_t Middle>(std::integral_constant<std::size_t, Middle>) {
        constexpr int stages = static_cast<int>(Middle) + 2;
        for (const int slots : {2, 3, 4}) {
            const std::string name =
                prefix + "/stages:" + std::to_string(stages) + "/slots:" + std::to_string(slots);
            add(name, {.stages = stages}, [slots, make_baseline](benchmark::State& state) {
                auto baseline = make_baseline(stages, slots);
                PipelineSubject subject{
                    [slots] { return make_chain<B, Launch>(slots, std::make_index_sequence<Middle>{}); }};
                measure(state, subject, baseline, B::counts(), {.stages = stages});
            });
        }
    };
    [&]<std::size_t... Middle>(std::index_sequence<Middle...>) {
        (add_chains(std::integral_constant<std::size_t, Middle>{}), ...);
    }
    (std::make_index_sequence<7>{});
}

} // namespace bench
