/// \file
/// graph_overhead: what replaying a graph costs through sluice. See support/main.cpp for how to run it.
///
/// - `BACKEND/replay/chain:N`: N empty kernels, one after another, through GraphCapture, beside `cudaGraphLaunch` of
///   the same graph. `…/host` is until the host has enqueued it, `…/total` until the device is done.
/// - `BACKEND/two_stage/graphed/…`: the two-stage step of pipeline_overhead under `graphed`, beside the same
///   step by hand: launch by launch (`beside_launches`), and as one forked graph for each of two slots
///   (`beside_graphs`). `graphed:16` is the same with 16 steps a graph, the waits between them inside, beside the
///   launches and beside graphs of as many steps by hand. The aims: `graphed/beside_graphs` at most 1.02,
///   `graphed:16/beside_launches` at most 0.06.
/// - `BACKEND/while:N/unroll:U/…`: a loop of N tiny kernels whose condition is found on the device, through
///   `while_nonzero` in a GraphCapture, until the device is done; beside a loop on the host that reads the condition
///   back after every U kernels (`beside_readback`), and beside the same graph by hand (`beside_graph`).
#pragma once

#include <string>
#include <utility>

#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/sluice.hpp>

#include "pipeline_overhead.hpp"
#include "support/benchmarks.hpp"
#include "support/paired.hpp"

namespace bench {

/// Work, replayed through GraphCapture, as a subject. Calls it as `work(stream)`; `make()` makes it.
template <class B, class Work>
class ReplaySubject {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    template <class Make>
    explicit ReplaySubject(Make&& make) : work_(make()) {
        step(); // by itself
        step(); // captured
        sync();
        if (graph_.counters().replays == 0)
            throw sluice::Error("there is nothing to measure, since the work was not replayed as a graph");
    }
    void step() {
        graph_.run(stream_.ref(), [this](StreamRef stream) { work_(stream); });
    }
    void sync() { stream_.sync(); }

private:
    Work work_;
    sluice::BasicStream<B> stream_;
    sluice::GraphCapture<sluice::NoKey, B> graph_;
};

/// `length` empty launches, one after another.
template <class B, class Launch>
struct ChainWork {
    int length;

    void operator()(sluice::BasicStreamRef<B> stream) const {
        for (int link = 0; link < length; ++link)
            Launch::enqueue(stream);
    }
};

/// Counts to `limit` on the device: `Count::enqueue(stream, counted, limit, again)` enqueues one more step, which sets
/// `again`, begins anew when it has come to the limit, and does nothing where `again` is 0.
template <class B, class Count>
class WhileWork {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    WhileWork(unsigned limit, int unroll) : limit_(limit), unroll_(unroll), counted_(1) {
        const sluice::BasicStream<B> stream;
        sluice::fill_bytes(stream, counted_, 0);
        stream.sync();
    }
    void operator()(StreamRef stream) {
        while_nonzero(
            stream, again_,
            [this](StreamRef body) { Count::enqueue(body, counted_.data(), limit_, again_.setter(body)); },
            sluice::WhileOptions{.unroll = unroll_});
    }

private:
    unsigned limit_;
    int unroll_;
    sluice::DeviceBuffer<unsigned, B> counted_;
    sluice::BasicCondition<B> again_;
};

/// The chains beside what `make_baseline(length)` returns.
template <class B, class Launch, class MakeBaseline>
void add_chain(const std::string& prefix, int length, MakeBaseline make_baseline) {
    for (const Until until : {Until::enqueued, Until::done}) {
        // Few enough that the device takes them all ahead of time.
        const Burst burst{.stages = 1, .steps = 20, .until = until};
        const std::string name = prefix + "/replay/chain:" + std::to_string(length) +
                                 (until == Until::enqueued ? "/host" : "/total");
        add(name, burst, [=](benchmark::State& state) {
            using Work = ChainWork<B, Launch>;
            auto baseline = make_baseline(length);
            ReplaySubject<B, Work> subject{[length] { return Work{length}; }};
            measure(state, subject, baseline, B::counts(), burst);
        });
    }
}

/// The loop beside what `make_baseline(limit, unroll)` returns.
template <class B, class Count, class MakeBaseline>
void add_while(const std::string& prefix, const std::string& suffix, unsigned limit, int unroll,
               MakeBaseline make_baseline) {
    const Burst burst{.stages = 1, .steps = 2, .until = Until::done};
    const std::string name =
        prefix + "/while:" + std::to_string(limit) + "/unroll:" + std::to_string(unroll) + suffix;
    add(name, burst, [=](benchmark::State& state) {
        using Work = WhileWork<B, Count>;
        auto baseline = make_baseline(limit, unroll);
        ReplaySubject<B, Work> subject{[=] { return Work{limit, unroll}; }};
        measure(state, subject, baseline, B::counts(), burst);
    });
}

} // namespace bench
