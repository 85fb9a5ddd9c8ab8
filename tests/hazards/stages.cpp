// What stages of a pipeline share besides their slots, and what they do on other streams.
#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_stages {

TEST_CASE("Hazard: one stage reads the weights that the other one writes") {
    find(race("weights", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode().reads(w.weights), train().writes(w.weights)};
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the later stage reads the weights that the earlier one writes for the next batch") {
    find(race("weights", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode().writes(w.weights), train().reads(w.weights)};
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: two stages share a workspace") {
    find(race("workspace", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode().writes(w.workspace), train().writes(w.workspace)};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: two stages copy by way of one buffer, and declare nothing") {
    find(race("workspace", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                          copy(s, w.workspace, in.images);
                          copy(s, out.features, w.workspace);
                      }),
                      train([&w](Ref s, const Batch&, Slot& in) {
                          copy(s, w.workspace, in.features);
                          copy(s, in.scores, w.workspace);
                      })};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: one stage tells of a buffer in its callable, the other one when it is made") {
    find(race("workspace", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                          encode_batch(s, in, out);
                          writes(s, w.workspace, "im2col");
                      }),
                      train().writes(w.workspace)};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a stage normalises in place what another one reads") {
    find(race("images", {"train", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode().reads(w.images), train().reads(w.images).writes(w.images)};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the graphed schedule has the same races") {
    find(race("weights", {"train"}, {"encode"}), [](World& w) {
        TwoStages two{encode().reads(w.weights), train().writes(w.weights), {.schedule = Schedule::graphed}};
        two.submit_all(8);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a stage that opted out of graphs shares a workspace with one that did not") {
    find(race("workspace", {"train"}, {"encode"}), [](World& w) {
        TwoStages two{encode({.graphed = false}).writes(w.workspace),
                      train().writes(w.workspace),
                      {.schedule = Schedule::graphed}};
        two.submit_all(8);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a stage of two lanes adds to one sum") {
    find(race("weights", {"encode", 0}, {"encode", 1}), [](World& w) {
        TwoStages two{encode({.lanes = 2}).writes(w.weights), train(), {.slots = 3}};
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the reader keeps a reference to the slot of an earlier batch") {
    find(race("slot features", {"train", 1}, {"encode", 2}), [](World&) {
        const Slot* kept = nullptr;
        TwoStages two{encode(), train([&](Ref s, const Batch&, Slot& in) {
                          copy(s, in.scores, in.features);
                          if (kept == nullptr)
                              kept = &in;
                          else
                              reads(s, kept->features, "kept");
                      })};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the writer keeps a reference to the slot of an earlier batch") {
    find(race("slot scores", {"train", 0}, {"encode", 1}), [](World&) {
        Slot* kept = nullptr;
        TwoStages two{encode([&](Ref s, const Batch& in, Slot& out) {
                          encode_batch(s, in, out);
                          if (kept != nullptr)
                              writes(s, kept->scores, "late");
                          kept = &out;
                      }),
                      train()};
        two.submit_all(2);
        two.pipeline.finish();
    });
}

// Streams within a stage
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a side stream within a stage is forked and not joined") {
    find(race("slot labels", {"encode", 0}, {"train", 0}), [](World& w) {
        TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                          copy(s, out.features, in.images);
                          order(s, w.side, w.event);
                          copy(w.side, out.labels, in.labels);
                          settle(w.side);
                      }),
                      train()};
        two.submit_all(2);
        two.pipeline.finish();
        w.side.sync();
    });
}

TEST_CASE("Hazard: a side stream within a stage is joined and was not forked") {
    find(race("slot labels", {"train", 0}, {"encode", 2}), [](World& w) {
        TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                          copy(s, out.features, in.images);
                          copy(w.side, out.labels, in.labels);
                          settle(w.side);
                          order(w.side, s, w.event);
                      }),
                      train()};
        two.submit_all(3);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a stage enqueues on another stream than the one it is handed") {
    find({race("slot features", {"encode", 0}, {"train", 0}),
          race("slot labels", {"encode", 0}, {"train", 0})},
         [](World& w) {
             TwoStages two{encode([&w](Ref, const Batch& in, Slot& out) {
                               encode_batch(w.side, in, out);
                               settle(w.side);
                           }),
                           train()};
             two.submit(0);
             two.pipeline.finish();
             w.side.sync();
         });
}

TEST_CASE("Hazard: the last stage adds to its sums on a stream of its own") {
    find(race("slot features", {"train", 0}, {"encode", 2}), [](World& w) {
        TwoStages two{encode(), train([&w](Ref s, const Batch&, Slot& in) {
                          order(s, w.side, w.event);
                          reads(w.side, in.features, "sum");
                      })};
        two.submit_all(3);
        two.pipeline.finish();
        w.side.sync();
    });
}

TEST_CASE("Hazard: a stage works on the default stream") {
    const auto legacy = legacy_default_stream();
    if (!legacy)
        return;
    find({{{Mistake::default_stream}, nullptr, {}, {}},
          perhaps(race("slot features", {"encode", 0}, {"train", 0})),
          perhaps(race("slot labels", {"encode", 0}, {"train", 0}))},
         [&](World&) {
             TwoStages two{encode([&](Ref, const Batch& in, Slot& out) { encode_batch(*legacy, in, out); }),
                           train()};
             two.submit(0);
             two.pipeline.finish();
             legacy->sync();
         });
}

// Between pipelines and other streams
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: the pipeline is not told to wait for the caller's stream") {
    find(race("weights", {"fill"}, {"encode", 0}), [](World& w) {
        TwoStages two{encode().reads(w.weights), train()};
        fill_bytes(w.main, w.weights, 0);
        two.submit(0);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the pipeline is told to wait for the caller's stream after the batch was submitted") {
    find(race("weights", {"fill"}, {"encode", 0}), [](World& w) {
        TwoStages two{encode().reads(w.weights), train()};
        fill_bytes(w.main, w.weights, 0);
        two.submit(0);
        two.pipeline.wait_for(w.main);
        two.submit(1);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the caller's stream reads what the pipeline still writes") {
    find(race("weights", {"train", 0}, {"copy"}), [](World& w) {
        TwoStages two{encode(), train().writes(w.weights)};
        two.submit(0);
        copy(w.main, w.result, w.weights);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a flush that names no stream orders none") {
    find(race("weights", {"train", 0}, {"copy"}), [](World& w) {
        TwoStages two{encode(), train().writes(w.weights)};
        two.submit(0);
        two.pipeline.flush();
        copy(w.main, w.result, w.weights);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the caller's work on the first stage's stream is not in order with the second stage") {
    find(race("weights", {"train", 0}, {"fill"}), [](World& w) {
        TwoStages two{encode(), train().reads(w.weights)};
        two.submit(0);
        fill_bytes(two.pipeline.stream(0), w.weights, 0);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: two pipelines share the weights") {
    find({race("weights", {"train", 0}, {"evaluate", 0}), race("weights", {"evaluate", 0}, {"train", 1})},
         [](World& w) {
             TwoStages training{encode(), train().writes(w.weights)};
             TwoStages evaluation{encode(), train({}, {}, "evaluate").reads(w.weights)};
             training.submit(0);
             evaluation.submit(0);
             training.submit(1);
             training.pipeline.finish();
             evaluation.pipeline.finish();
         });
}

TEST_CASE("Hazard: the host writes a submitted batch that no stage has read yet") {
    find(host_race("batch images", {nullptr, 0}, {"load"}), [](World&) {
        TwoStages two{encode(), train()};
        two.submit(0);
        host_writes(two.batches[0].images, "load");
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the host sets an element of a submitted batch") {
    find(host_race("batch labels", {nullptr, 0}, {"host"}), [](World&) {
        TwoStages two{encode(), train()};
        two.submit(0);
        settle(two.pipeline.stream(0));
        settle(two.pipeline.stream(1));
        two.batches[0].labels[0] = 1;
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the host waits for the other batch to be read") {
    find(host_race("batch images", {nullptr, 1}, {"load"}), [](World&) {
        TwoStages two{encode(), train()};
        BatchRead read[2];
        for (std::size_t step = 0; step < 2; ++step)
            read[step] = two.pipeline.submit(std::as_const(two.batches[step]));
        read[0].wait();
        host_writes(two.batches[1].images, "load");
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the host waits for one of two stages that read the batch") {
    find(host_race("batch labels", {"train", 0}, {"load"}), [](World&) {
        TwoStages two{encode(), train()};
        two.submit(0);
        two.pipeline.stream(0).sync();
        host_writes(two.batches[0].labels, "load");
        two.pipeline.finish();
    });
}

// On a GPU, kernels may change pinned memory unseen: there it need be said.
#if !defined(SLUICE_TEST_CUDA)

TEST_CASE("Hazard: the host changes a number that a stage copies") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        find(host_race("host labels", {"train", 0}, {"host"}), [schedule](World& w) {
            TwoStages two{encode(),
                          train([&w](Ref s, const Batch&, Slot& in) {
                              copy(s, w.labels, w.host_labels);
                              copy(s, in.scores, in.features);
                          }),
                          {.schedule = schedule}};
            for (std::size_t i = 0; i < 4; ++i) {
                two.submit(i);
                w.host_labels[0] = 0.5f * w.host_labels[0] + 1;
            }
            two.pipeline.finish();
        });
    }
}

TEST_CASE("Hazard: a side stream that is not joined reads the batch, which the host fills again") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        find(host_race("batch images", {"encode", 0}, {"host"}), [schedule](World& w) {
            TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                              order(s, w.side, w.event);
                              copy(w.side, w.images, in.images);
                              encode_batch(s, in, out);
                          }),
                          train(),
                          {.schedule = schedule}};
            for (int i = 0; i < 3; ++i) {
                two.pipeline.submit(std::as_const(two.batches[0])).wait();
                for (float& value : two.batches[0].images)
                    value += 1;
            }
            two.pipeline.finish();
            w.side.sync();
        });
    }
}

#endif

TEST_CASE("Hazard: the host reads the loss before the pipeline has finished") {
    find(host_race("result", {"train", 0}, {"print"}), [](World& w) {
        TwoStages two{encode(),
                      train([&w](Ref s, const Batch&, Slot& in) { copy(s, w.result, in.features); })};
        two.submit(0);
        two.pipeline.flush();
        host_reads(w.result, "print");
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a loop is left early and its result is read") {
    find(host_race("result", {"train"}, {"print"}), [](World& w) {
        TwoStages two{encode(),
                      train([&w](Ref s, const Batch&, Slot& in) { copy(s, w.result, in.features); })};
        for (std::size_t step = 0; step < 8; ++step) {
            two.submit(step);
            if (step == 2)
                break;
        }
        host_reads(w.result, "print");
    });
}

TEST_CASE("Hazard: a buffer is freed while the pipeline uses it") {
    find(use_after_free("statistics", {"train", 0}), [](World&) {
        Device statistics = named("statistics");
        TwoStages two{encode(), train([&](Ref s, const Batch&, Slot& in) {
                          copy(s, in.scores, in.features);
                          writes(s, statistics, "count");
                      })};
        two.submit(0);
        statistics = Device();
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a stage's workspace grows while the batch before uses it") {
    find(use_after_free("small workspace", {"train", 0}), [](World&) {
        Device workspace = named("small workspace");
        int calls = 0;
        TwoStages two{encode(), train([&](Ref s, const Batch&, Slot& in) {
                          if (++calls == 2)
                              workspace = named("larger workspace", 2 * count);
                          copy(s, in.scores, in.features);
                          writes(s, workspace, "gemm");
                      })};
        two.submit_all(2);
        two.pipeline.finish();
    });
}

} // namespace sluice::test::hazards_stages
