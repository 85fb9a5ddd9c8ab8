// Stages that fork and join, CPU stages, and stages of two devices, which share what they should not.
#include <cstdlib>

#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_shapes {

namespace {

// How many devices the Host backend has is read once in a program's life.
[[maybe_unused]] const int two_devices = setenv("SLUICE_HOST_DEVICES", "2", 0);

bool has_two_devices() {
    if (B::device_count() >= 2)
        return true;
    MESSAGE("skipped: there is one device");
    return false;
}

// What `make` makes on device 1.
template <class F>
auto on_second_device(F&& make) {
    const DeviceGuard<B> guard(1);
    return make();
}

} // namespace

TEST_CASE("Hazard: one of two readers writes what both read") {
    find(race("slot features", {"left", 0}, {"right", 0}), [](World&) {
        DiamondStages stages;
        stages.left = [](Ref s, const Slot& in, Left& out) {
            copy(s, out.values, in.features);
            writes(s, in.features, "relu in place");
        };
        Diamond diamond{stages};
        diamond.submit_all(1);
        diamond.pipeline.finish();
    });
}

TEST_CASE("Hazard: two branches share a workspace") {
    find(race("workspace", {"left", 0}, {"right", 0}), [](World& w) {
        DiamondStages stages;
        stages.left = [&w](Ref s, const Slot& in, Left& out) {
            copy(s, w.workspace, in.features);
            copy(s, out.values, w.workspace);
        };
        stages.right = [&w](Ref s, const Slot& in, Right& out) {
            copy(s, out.values, in.features);
            writes(s, w.workspace, "gemm");
        };
        Diamond diamond{stages};
        diamond.submit_all(1);
        diamond.pipeline.finish();
    });
}

TEST_CASE("Hazard: one branch reads what the other one makes") {
    find(race("left values", {"left", 0}, {"right", 0}), [](World&) {
        const Left* made = nullptr;
        DiamondStages stages;
        stages.left = [&](Ref s, const Slot& in, Left& out) {
            copy(s, out.values, in.features);
            made = &out;
        };
        stages.right = [&](Ref s, const Slot& in, Right& out) {
            copy(s, out.values, in.features);
            reads(s, made->values, "attention");
        };
        Diamond diamond{stages};
        diamond.submit_all(1);
        diamond.pipeline.finish();
    });
}

TEST_CASE("Hazard: the last stage reads a slot that it does not take") {
    find(race("slot features", {"join", 0}, {"load", 2}), [](World&) {
        const Slot* loaded[4] = {};
        std::size_t left = 0, joined = 0;
        DiamondStages stages;
        stages.left = [&](Ref s, const Slot& in, Left& out) {
            copy(s, out.values, in.features);
            loaded[left++] = &in;
        };
        stages.join = [&](Ref s, const Left& a, const Right& b) {
            reads(s, a.values);
            reads(s, b.values);
            reads(s, loaded[joined++]->features, "skip connection");
        };
        Diamond diamond{stages};
        diamond.submit_all(3);
        diamond.pipeline.finish();
    });
}

TEST_CASE("Hazard: a branch keeps statistics that the last stage reads") {
    find(race("weights", {"join", 0}, {"left", 1}), [](World& w) {
        DiamondStages stages;
        stages.left = [&w](Ref s, const Slot& in, Left& out) {
            copy(s, out.values, in.features);
            writes(s, w.weights, "running mean");
        };
        stages.join = [&w](Ref s, const Left& a, const Right& b) {
            reads(s, a.values);
            reads(s, b.values);
            reads(s, w.weights, "normalise");
        };
        Diamond diamond{stages};
        diamond.submit_all(2);
        diamond.pipeline.finish();
    });
}

// CPU stages
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a CPU stage reads what the device's stage copies for each batch to one place") {
    find(thread_race("result", {"choose"}, {"fetch"}), [](World& w) {
        CpuStages stages{w};
        stages.fetch = [&w](Ref s, const Batch& in, Scores& out) {
            copy(s, w.images, in.images);
            copy(s, out.values, w.images);
            copy(s, w.result, w.images);
        };
        stages.choose = [&w](const Scores&, Choice& out) {
            host_reads(w.result, "threshold");
            out.values[0] = 1;
        };
        WithCpuStage cpu{stages};
        cpu.submit_all(4);
        cpu.pipeline.finish();
    });
}

TEST_CASE("Hazard: a CPU stage writes parameters that the device's stage copies") {
    find(thread_race("host labels", {"choose"}, {"fetch"}), [](World& w) {
        CpuStages stages{w};
        stages.fetch = [&w](Ref s, const Batch& in, Scores& out) {
            copy(s, w.features, w.host_labels);
            copy(s, w.images, in.images);
            copy(s, out.values, w.images);
        };
        stages.choose = [&w](const Scores&, Choice& out) {
            out.values[0] = 1;
            host_writes(w.host_labels, "adapt");
        };
        WithCpuStage cpu{stages};
        cpu.submit_all(4);
        cpu.pipeline.finish();
    });
}

TEST_CASE("Hazard: a CPU stage reads the slot of an earlier batch") {
    find(thread_race("scores", {"choose"}, {"fetch"}), [](World& w) {
        const Scores* kept = nullptr;
        CpuStages stages{w};
        stages.choose = [&](const Scores& in, Choice& out) {
            if (kept == nullptr)
                kept = &in;
            else
                host_reads(kept->values, "first of all");
            out.values[0] = 1;
        };
        WithCpuStage cpu{stages};
        cpu.submit_all(4);
        cpu.pipeline.finish();
    });
}

TEST_CASE("Hazard: the caller reads what a CPU stage writes, and has not finished the pipeline") {
    find(thread_race("host labels", {"choose"}, {"print"}), [](World& w) {
        CpuStages stages{w};
        stages.choose = [&w](const Scores&, Choice& out) {
            host_writes(w.host_labels, "count");
            out.values[0] = 1;
        };
        WithCpuStage cpu{stages};
        cpu.submit_all(1);
        settle(cpu.pipeline.stream(2));
        host_reads(w.host_labels, "print");
        cpu.pipeline.finish();
    });
}

TEST_CASE("Hazard: a result of a pipeline is kept beyond the next one") {
    find(host_race("applied", {"apply"}, {"best of all"}), [](World& w) {
        WithCpuStage cpu{CpuStages{w}};
        Batches source{Make<Batch>{}, Fill([](std::size_t, Batch& out) { out.images[0] = 1; }),
                       SourceOptions<B>{.workers = 0, .slots = 4, .batches = 4}};
        const Applied* best = nullptr;
        for (const Applied& result : cpu.pipeline.run(source)) {
            if (best == nullptr)
                best = &result;
            else
                host_reads(best->values, "best of all");
        }
    });
}

// Two devices
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a copy from the other device's buffer, in the order of this device's stream alone") {
    if (!has_two_devices())
        return;
    find(race("peer", {"backward"}, {"copy"}), [](World& w) {
        const Stream other = on_second_device([] { return Stream(); });
        const Device peer = on_second_device([] { return named("peer"); });
        writes(other, peer, "backward");
        copy(w.main, w.weights, peer);
        other.sync();
        w.main.sync();
    });
}

TEST_CASE("Hazard: the other device writes its buffer again while it is copied from here") {
    if (!has_two_devices())
        return;
    find(race("peer", {"copy"}, {"backward"}), [](World& w) {
        const Stream other = on_second_device([] { return Stream(); });
        const Device peer = on_second_device([] { return named("peer"); });
        Event written = on_second_device([] { return Event(); });
        for (int step = 0; step < 2; ++step) {
            writes(other, peer, "backward");
            order(other, w.main, written);
            copy(w.main, w.weights, peer);
            settle(w.main);
        }
        w.main.sync();
        other.sync();
    });
}

TEST_CASE("Hazard: gradients of two devices are added up on one, and the other one goes on") {
    if (!has_two_devices())
        return;
    find(race("weights", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode().reads(w.weights),
                      train(StageOptions<B>{.device = 1}, [](Ref s, const Batch&, Slot& in) {
                          reads(s, in.features, "all-reduce");
                      }).writes(w.weights)};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

} // namespace sluice::test::hazards_shapes
