/// \file
/// Host time of one step of a pipeline on the Host backend, with one empty task a stage. It has no baseline: its
/// streams and events are sluice's own. The stages' threads run on the CPU that is measured, so the
/// figures show an order of magnitude; the counts are exact. See support/main.cpp for how to run
/// it.
#include "pipeline_overhead.hpp"

namespace {

struct EnqueueTask {
    static void enqueue(sluice::HostStreamRef stream) {
        stream.enqueue([] {});
    }
};

} // namespace

void bench::add_host_benchmarks() {
    using sluice::Host;
    using sluice::Schedule;
    const auto no_baseline = [](auto...) { return NoBaseline{}; };
    add_two_stage<Host, EnqueueTask>("host/two_stage/overlapped", Schedule::overlapped, no_baseline);
    add_two_stage<Host, EnqueueTask>("host/two_stage/serial", Schedule::serial, no_baseline);
    add_curve<Host, EnqueueTask>("host", no_baseline);
}
