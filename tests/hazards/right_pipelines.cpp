// Programs that look suspicious and are right: pipelines, sources and ragged rows.
#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_right_pipelines {

namespace {

constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed};

Fill counting() {
    return [](std::size_t index, Batch& out) {
        for (std::size_t i = 0; i < count; ++i)
            out.images[i] = out.labels[i] = static_cast<float>(index);
    };
}

// What the last stage does with each batch, on a buffer of its own and one that all stages read.
Stage<Train, B> training(World& w) {
    return train([&w](Ref s, const Batch&, Slot& in) {
               copy(s, in.scores, in.features);
               copy(s, w.labels, in.scores);
           })
        .reads(w.weights)
        .writes(w.workspace);
}

} // namespace

TEST_CASE("Right: a stage's own buffers, and one that all read, under each schedule") {
    for (const Schedule schedule : schedules) {
        for (const int steps : {0, 3}) {
            pass([&](World& w) {
                TwoStages two{encode().reads(w.weights),
                              training(w),
                              {.schedule = schedule, .slots = 2 + steps, .steps_per_graph = steps}};
                two.submit_all(16);
                two.pipeline.finish();
            });
        }
    }
}

TEST_CASE("Right: a graph for each stage, and a stage that opts out") {
    pass([](World& w) {
        TwoStages two{encode().reads(w.weights),
                      training(w),
                      {.schedule = Schedule::graphed, .graph_each_stage = true}};
        two.submit_all(12);
        two.pipeline.finish();
    });
    pass([](World& w) {
        TwoStages two{
            encode({.graphed = false}).reads(w.weights), training(w), {.schedule = Schedule::graphed}};
        two.submit_all(12);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: serially, two stages may share a workspace and the weights") {
    pass([](World& w) {
        TwoStages two{encode().reads(w.weights).writes(w.workspace),
                      train().writes(w.weights).writes(w.workspace),
                      {.schedule = Schedule::serial}};
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: with one stream of the caller's for both stages, they may share a workspace") {
    pass([](World& w) {
        TwoStages two{encode(StageOptions<B>{.stream = w.main.ref()}).writes(w.workspace),
                      train(StageOptions<B>{.stream = w.main.ref()}).writes(w.workspace)};
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: one slot, 2 and 4, and lanes") {
    for (const int slots : {1, 2, 4}) {
        pass([&](World& w) {
            TwoStages two{encode(), training(w), {.slots = slots}};
            two.submit_all(9);
            two.pipeline.finish();
        });
    }
    pass([](World& w) {
        TwoStages two{encode({.lanes = 3}), training(w), {.slots = 4}};
        two.submit_all(9);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a side stream within a stage, forked and joined") {
    pass([](World& w) {
        TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                          order(s, w.side, w.event);
                          copy(s, out.features, in.images);
                          copy(w.side, out.labels, in.labels);
                          order(w.side, s, w.other_event);
                      }),
                      training(w)};
        two.submit_all(6);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a side stream within a stage, joined by the next stage") {
    pass([](World& w) {
        Event copied[8];
        std::size_t encoded = 0, trained = 0;
        TwoStages two{encode([&](Ref s, const Batch& in, Slot& out) {
                          copy(s, out.features, in.images);
                          order(s, w.side, w.event);
                          copy(w.side, out.labels, in.labels);
                          copied[encoded++].record(w.side);
                      }),
                      train([&](Ref s, const Batch&, Slot& in) {
                          s.wait(copied[trained++]);
                          copy(s, in.scores, in.labels);
                          copy(s, w.features, in.features);
                      })};
        two.submit_all(6);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a stage leaves part of its slot as it is for the next lap") {
    pass([](World& w) {
        int calls = 0;
        TwoStages two{encode([&](Ref s, const Batch& in, Slot& out) {
                          const std::size_t length = ++calls == 4 ? count / 2 : count;
                          copy(s, out.features.first(length), in.images.first(length));
                      }),
                      training(w)};
        two.submit_all(5);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: the caller's stream before and after a pipeline's batches") {
    pass([](World& w) {
        TwoStages two{encode().reads(w.weights), train().writes(w.labels)};
        for (int epoch = 0; epoch < 3; ++epoch) {
            fill_bytes(w.main, w.weights, 0);
            two.pipeline.wait_for(w.main);
            two.submit_all(3);
            two.pipeline.flush(w.main);
            copy(w.main, w.result, w.labels);
            copy(w.main, w.workspace, w.weights);
        }
        w.main.sync();
        host_reads(w.result, "print");
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a stage on the caller's stream, and what is enqueued there after flush") {
    pass([](World& w) {
        fill_bytes(w.main, w.weights, 0);
        TwoStages two{encode().reads(w.weights),
                      train(StageOptions<B>{.stream = w.main.ref()}).writes(w.weights),
                      {.schedule = Schedule::serial}};
        two.submit_all(3);
        two.pipeline.flush();
        copy(w.main, w.result, w.weights);
        two.pipeline.finish();
        w.main.sync();
    });
    pass([](World& w) {
        fill_bytes(w.main, w.weights, 0);
        TwoStages two{encode(), train(StageOptions<B>{.stream = w.main.ref()}).writes(w.weights)};
        two.submit_all(3);
        copy(w.main, w.result, w.weights); // in order with this stage
        two.submit_all(3);
        two.pipeline.flush();
        copy(w.main, w.result, w.weights);
        w.main.sync();
        two.pipeline.finish();
    });
}

TEST_CASE("Right: two pipelines share the weights, and one finishes before the other begins") {
    pass([](World& w) {
        TwoStages training{encode(), train().writes(w.weights)};
        TwoStages evaluation{encode(), train({}, {}, "evaluate").reads(w.weights)};
        for (int epoch = 0; epoch < 2; ++epoch) {
            training.submit_all(3);
            training.pipeline.finish();
            evaluation.submit_all(3);
            evaluation.pipeline.finish();
        }
    });
}

TEST_CASE("Right: batches are filled again after they have been read, in each way") {
    pass([](World& w) {
        TwoStages two{encode(), training(w)};
        BatchRead read[2];
        for (std::size_t step = 0; step < 6; ++step) {
            Batch& batch = two.batches[step % 2];
            read[step % 2].wait();
            host_writes(batch.images, "load");
            for (std::size_t i = 0; i < count; ++i)
                batch.labels[i] = static_cast<float>(step);
            read[step % 2] = two.pipeline.submit(std::as_const(batch));
        }
        two.pipeline.finish();
        for (std::size_t step = 0; step < 3; ++step) { // what submit returns waits as it goes
            two.batches[0].images[0] = 1;
            two.pipeline.submit(two.batches[0]).wait();
            host_writes(two.batches[0].images, "load");
        }
        two.pipeline.finish();
        host_writes(two.batches[1].labels, "load");
    });
}

TEST_CASE("Right: a loop that is left early, whose pipeline goes before its buffers are used") {
    pass([](World& w) {
        {
            TwoStages two{encode(),
                          train([&w](Ref s, const Batch&, Slot& in) { copy(s, w.result, in.features); })};
            two.submit_all(3);
        }
        host_reads(w.result, "print");
        fill_bytes(w.side, w.weights, 0);
    });
}

TEST_CASE("Right: a stage throws, and the pipeline is reset and goes on") {
    pass([](World& w) {
        int calls = 0;
        TwoStages two{encode(), train([&](Ref s, const Batch&, Slot& in) {
                                    copy(s, in.scores, in.features);
                                    if (++calls == 3)
                                        throw std::runtime_error("no");
                                }).writes(w.weights)};
        CHECK_THROWS_AS(two.submit_all(6), Error);
        two.pipeline.reset();
        host_writes(two.batches[0].images, "load");
        fill_bytes(w.main, w.weights, 0);
        w.main.sync();
        two.submit_all(4);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a diamond, under each schedule") {
    for (const Schedule schedule : schedules) {
        pass([&](World& w) {
            DiamondStages stages;
            stages.join = [&w](Ref s, const Left& a, const Right& b) {
                copy(s, w.features, a.values);
                copy(s, w.labels, b.values);
            };
            Diamond diamond{stages, {.schedule = schedule}};
            diamond.submit_all(9);
            diamond.pipeline.finish();
        });
    }
}

TEST_CASE("Right: a CPU stage between two of the device, under each schedule") {
    for (const Schedule schedule : schedules) {
        pass([&](World& w) {
            int chosen = 0;
            CpuStages stages{w};
            const Choose choose = stages.choose;
            stages.choose = [&](const Scores& in, Choice& out) {
                host_reads(in.values, "argmax");
                choose(in, out);
                ++chosen;
            };
            WithCpuStage cpu{stages, {.schedule = schedule}};
            cpu.submit_all(7);
            cpu.pipeline.finish();
            CHECK(chosen == 7);
        });
    }
}

TEST_CASE("Right: results in a loop, each read before the next one") {
    pass([](World& w) {
        WithCpuStage cpu{CpuStages{w}, {.slots = 3}};
        Batches source{Make<Batch>{}, counting(), SourceOptions<B>{.workers = 1, .slots = 4, .batches = 8}};
        float expected = 1;
        for (const Applied& result : cpu.pipeline.run(source)) {
            CHECK(result.values[0] == expected);
            host_reads(result.values, "print");
            expected += 1;
        }
        CHECK(expected == 9);
    });
}

TEST_CASE("Right: a source with and without workers, and more batches than slots") {
    for (const Schedule schedule : schedules) {
        for (const int workers : {0, 1, 3}) {
            pass([&](World& w) {
                TwoStages two{encode(), training(w), {.schedule = schedule}};
                Batches source{Make<Batch>{}, counting(),
                               SourceOptions<B>{.workers = workers, .slots = 4, .batches = 20}};
                for (const auto& batch : source)
                    two.pipeline.submit(batch);
                two.pipeline.finish();
                source.rewind();
                for (const auto& batch : source)
                    two.pipeline.submit(*batch);
                two.pipeline.finish();
            });
        }
    }
}

TEST_CASE("Right: a source's batches released by hand, on two streams") {
    pass([](World& w) {
        Batches source{Make<Batch>{}, counting(), SourceOptions<B>{.workers = 1, .slots = 2, .batches = 10}};
        for (const auto& batch : source) {
            host_reads(batch->images, "checksum");
            copy(w.main, w.images, batch->images);
            batch.release(w.main);
            copy(w.side, w.labels, batch->labels);
            batch.release(w.side);
        }
    });
}

TEST_CASE("Right: workers read what was there before they began") {
    pass([](World& w) {
        host_writes(w.host_labels, "read file");
        Batches source{Make<Batch>{}, Fill([&w](std::size_t, Batch& out) {
                           host_reads(w.host_labels, "augment");
                           out.images[0] = w.host_labels[3];
                       }),
                       SourceOptions<B>{.workers = 2, .slots = 4, .batches = 8}};
        for (const auto& batch : source) {
            copy(w.main, w.images, batch->images);
            batch.release(w.main);
        }
        source.stop();
        host_writes(w.host_labels, "read file");
    });
}

TEST_CASE("Right: losses by a readback out of a stage, under each schedule") {
    for (const Schedule schedule : schedules) {
        pass([&](World&) {
            std::size_t seen = 0;
            Readback<float, B> losses{1, [&](std::size_t, std::span<const float>) { ++seen; }, 2};
            TwoStages two{encode(),
                          train([&](Ref s, const Batch&, Slot& in) {
                              copy(s, in.scores, in.features);
                              losses.push(s, in.scores.first(1));
                          }),
                          {.schedule = schedule}};
            two.submit_all(12);
            two.pipeline.finish();
            losses.finish();
            CHECK(seen == 12);
        });
    }
}

TEST_CASE("Right: packers in turns, and one that is packed again at once") {
    pass([](World& w) {
        const std::vector<std::vector<float>> rows{{1, 2}, {}, {3}};
        RaggedPacker<float, B> packers[2] = {RaggedPacker<float, B>{{.rows = 4, .values = 16}},
                                             RaggedPacker<float, B>{{.rows = 4, .values = 16}}};
        RaggedBatch<float, B> boxes{packers[0].capacity()};
        for (int step = 0; step < 6; ++step) {
            RaggedPacker<float, B>& packer = packers[step < 4 ? step % 2 : 0];
            packer.pack(rows);
            packer.copy_to(w.main, boxes);
            reads(w.main, boxes, "areas");
        }
        boxes.require_valid_and_wait(w.main);
    });
}

TEST_CASE("Right: a captured copy of a packer that is told of each replay") {
    pass([](World& w) {
        RaggedPacker<float, B> packer{{.rows = 4, .values = 16}};
        RaggedBatch<float, B> boxes{packer.capacity()};
        GraphCapture<NoKey, B> graph;
        for (int step = 0; step < 5; ++step) {
            packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
            graph.run(w.main, [&](Ref s) { packer.copy_to(s, boxes); });
            packer.mark_in_use(w.main);
        }
        w.main.sync();
    });
}

} // namespace sluice::test::hazards_right_pipelines
