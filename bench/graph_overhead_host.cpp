/// \file
/// Graphs on the Host backend. There is no baseline: its graphs are sluice's own. The times show an order of magnitude,
/// the counts are exact.
#include "graph_overhead.hpp"

namespace {

struct EnqueueTask {
    static void enqueue(sluice::HostStreamRef stream) {
        stream.enqueue([] {});
    }
};

struct CountTask {
    static void enqueue(sluice::HostStreamRef stream, unsigned* counted, unsigned limit,
                        sluice::ConditionSetter again) {
        stream.enqueue([=] {
            if (again.get() == 0)
                return;
            const bool more = *counted + 1 < limit;
            *counted = more ? *counted + 1 : 0;
            again.set(more);
        });
    }
};

} // namespace

void bench::add_host_benchmarks() {
    using sluice::Host;
    using sluice::Schedule;
    const auto no_baseline = [](auto...) { return NoBaseline{}; };
    add_chain<Host, EnqueueTask>("host", 10, no_baseline);
    add_two_stage<Host, EnqueueTask>("host/two_stage/graphed", Schedule::graphed, no_baseline);
    add_two_stage<Host, EnqueueTask>("host/two_stage/graphed:16", Schedule::graphed, no_baseline, 16);
    for (const int unroll : {1, 4})
        add_while<Host, CountTask>("host", "", 100, unroll, no_baseline);
}
