// What is known late: accesses of callables that run long after they were enqueued, and semaphores that are signalled last.
#include <atomic>
#include <memory>
#include <thread>

#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_late {

namespace {

// What callables wait for, so that they run when all else has been enqueued.
struct Door {
    std::atomic<bool> open{false};
    void pass() const {
        while (!open)
            std::this_thread::yield();
    }
};

} // namespace

// Callables
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a CPU stage says in its callable that it reads what a later stage writes") {
    for (const bool late : {true, false}) {
        find(thread_race("result", {"choose"}, {"apply"}), [late](World& w) {
            Door door;
            CpuStages stages{w};
            stages.choose = [&](const Scores&, Choice& out) {
                if (late)
                    door.pass();
                out.values[0] = 1;
                host_reads(w.result, "threshold");
            };
            stages.apply = [&w](Ref s, const Choice& in, Applied& out) {
                copy(s, w.labels, in.values);
                copy(s, out.values, w.labels);
                copy(s, w.result, w.labels);
            };
            WithCpuStage cpu{stages, {.slots = 4}};
            cpu.submit_all(4);
            door.open = true;
            cpu.pipeline.finish();
        });
    }
}

TEST_CASE("Hazard: a CPU stage says in its callable that it writes what an earlier stage reads") {
    for (const bool late : {true, false}) {
        find(thread_race("host labels", {"choose"}, {"fetch"}), [late](World& w) {
            Door door;
            CpuStages stages{w};
            stages.fetch = [&](Ref s, const Batch& in, Scores& out) {
                copy(s, w.features, w.host_labels);
                copy(s, w.images, in.images);
                copy(s, out.values, w.images);
            };
            stages.choose = [&](const Scores&, Choice& out) {
                if (late)
                    door.pass();
                out.values[0] = 1;
                host_writes(w.host_labels, "adapt");
            };
            WithCpuStage cpu{stages, {.slots = 4}};
            cpu.submit_all(4);
            door.open = true;
            cpu.pipeline.finish();
        });
    }
}

TEST_CASE(
    "Hazard: a host function runs when what it races with has been followed by what it is ordered with") {
    find(thread_race("result", {"copy"}, {"log"}), [](World& w) {
        w.hold(w.side);
        w.side.enqueue([&w] { host_reads(w.result, "log"); });
        copy(w.main, w.result, w.features);
        order(w.side, w.main, w.event);
        copy(w.main, w.result, w.labels);
        w.open();
        w.side.sync();
        w.main.sync();
    });
}

TEST_CASE("Hazard: a host function runs behind many others, and its stream has waited since") {
    find(thread_race("result", {"copy"}, {"log"}), [](World& w) {
        w.hold(w.side);
        copy(w.main, w.result, w.features);
        w.side.enqueue([&w] { host_reads(w.result, "log"); });
        for (int i = 0; i < 200; ++i)
            w.side.enqueue([] {});
        order(w.main, w.side, w.event);
        w.open();
        w.side.sync();
    });
}

TEST_CASE("Hazard: a host function in a graph writes what another stream reads") {
    for (const bool late : {true, false}) {
        find(thread_race("host labels", {"copy"}, {"adapt"}), [late](World& w) {
            const BasicGraphExec<B> graph{capture(w.main, [&](Ref s) {
                copy(s, w.images, w.host_images);
                s.enqueue([&w] { host_writes(w.host_labels, "adapt"); });
            })};
            if (late)
                w.hold(w.main);
            graph.launch(w.main);
            copy(w.side, w.labels, w.host_labels);
            order(w.main, w.side, w.event);
            copy(w.side, w.labels, w.host_labels);
            w.open();
            w.main.sync();
            w.side.sync();
        });
    }
}

TEST_CASE("Hazard: a host function in a stage's graph counts what another lane counts") {
    find(thread_race("result", {"encode"}, {"encode"}), [](World& w) {
        TwoStages two{encode({.lanes = 2},
                             [&w](Ref s, const Batch& in, Slot& out) {
                                 encode_batch(s, in, out);
                                 s.enqueue([&w] { host_writes(w.result, "count"); });
                             }),
                      train(),
                      {.schedule = Schedule::graphed, .slots = 4}};
        for (std::size_t step = 0; step < 24; ++step)
            two.submit(step);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a node's callable reads what a node beside it copies") {
    find(thread_race("result", {"copy"}, {"log"}), [](World& w) {
        BasicGraphBuilder<B> builder;
        builder.copy(w.result, w.images);
        builder.host([&w] { host_reads(w.result, "log"); });
        auto executable = builder.instantiate();
        executable.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Right: callables of a graph read and write what is in its order, launch by launch") {
    pass([](World& w) {
        BasicGraphBuilder<B> builder;
        float sum = 0;
        const auto copied = builder.copy(w.result, w.images);
        const auto added = builder.host(
            [&] {
                host_reads(w.result, "add");
                sum += std::as_const(w.result)[1];
            },
            {copied});
        builder.host([&w] { host_writes(w.host_labels, "adapt"); }, {added});
        auto executable = builder.instantiate();
        const BasicGraphExec<B> graph{capture(w.main, [&](Ref s) {
            copy(s, w.labels, w.host_labels);
            copy(s, w.result, w.labels);
            s.enqueue([&w] { host_writes(w.host_labels, "adapt"); });
        })};
        for (int i = 0; i < 5; ++i) {
            executable.launch(w.main);
            graph.launch(w.main);
        }
        w.main.sync();
        executable.set(added, [] {});
        executable.launch(w.main);
        w.main.sync();
        host_reads(w.host_labels, "print");
        CHECK(sum == 0);
    });
}

TEST_CASE("Right: a host function is the last owner of memory that its stream has read") {
    pass([](World& w) {
        auto pinned = std::make_shared<Pinned>(numbered("staging"));
        auto scratch = std::make_shared<Device>(named("scratch"));
        copy(w.main, *scratch, *pinned);
        w.main.enqueue([pinned = std::move(pinned)] {});
        w.main.enqueue([scratch = std::move(scratch)] {});
        w.main.sync();
    });
}

TEST_CASE("Right: the host shares memory with a host function, and frees it when that has gone") {
    pass([](World& w) {
        auto staging = std::make_shared<Pinned>(numbered("staging"));
        copy(w.main, w.images, *staging);
        w.main.enqueue([staging] {});
        settle(w.main);
        staging.reset();
    });
}

TEST_CASE("Hazard: the host frees what another stream than the host function's still reads") {
    find(use_after_free("staging", {"copy"}), [](World& w) {
        auto staging = std::make_shared<Pinned>(numbered("staging"));
        copy(w.main, w.images, *staging);
        w.side.enqueue([staging] {});
        settle(w.side);
        settle(w.main);
        staging.reset();
    });
}

// Semaphores
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: the first writer is enqueued behind the reader, which waits for its semaphore") {
    pass([](World& w) {
        Device sums = named("sums");
        BasicSemaphore<B> written;
        written.wait(w.main, 1);
        copy(w.main, w.result, sums);
        fill_bytes(w.side, sums, 0);
        written.signal(w.side, 1);
        w.main.sync();
        host_reads(w.result, "print");
    });
}

TEST_CASE("Hazard: a stream waits for a semaphore that another stream than the writer's signals") {
    find(race("features", {"loss"}, {"forward"}), [](World& w) {
        BasicSemaphore<B> written;
        written.wait(w.main, 1);
        reads(w.main, w.features, "loss");
        writes(w.side, w.features, "forward");
        written.signal(w.third, 1);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a stream waits for a semaphore, and what it reads was not written") {
    find(uninitialized("sums", {"copy"}), [](World& w) {
        const Device sums = named("sums");
        BasicSemaphore<B> written;
        written.wait(w.main, 1);
        copy(w.main, w.result, sums);
        written.signal(w.side, 1);
        w.main.sync();
    });
}

} // namespace sluice::test::hazards_late
