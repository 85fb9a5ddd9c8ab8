// Right programs, each of which needs one of the waits within sluice: without it the checker finds something.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/no_records.hpp" // before `count` below has its name

#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_right_waits {

namespace {

/// A backend with streams of another type than those of `Host`: so CPU stages have threads of their own beside them.
struct Beside : UncheckedHost {
    struct NativeStream {
        host::Queue* queue = nullptr;
        operator host::Queue*() const noexcept { return queue; }
        friend bool operator==(NativeStream, NativeStream) = default;
    };
    static NativeStream create_stream(const StreamOptions& options) {
        return {UncheckedHost::create_stream(options)};
    }
};
using A = Checked<Beside>;

using F = Checked<Hooked<UncheckedHost, NoRecords>>;

template <class Call>
void without_records(Call&& call) {
    const RecordsFail fail;
    try {
        call();
    } catch (const Error&) {
        // That is what is looked for.
    }
}

constexpr RaggedCapacity room{.rows = 4, .values = 16};
const std::vector<std::vector<float>> two_rows{{1, 2}, {3}};

// Values that a batch, a slot or a result holds.
struct Cells {
    PinnedBuffer<float, A> values{count};
};

// load (a CPU stage) → sum (another one), which also counts in `total`.
struct OnThreads {
    PinnedBuffer<float, A> total{count};
    std::vector<Cells> batches{8};
    std::atomic<std::size_t> throws_at{~std::size_t{0}};
    std::size_t loaded = 0;

    auto pipeline(const PipelineOptions& options) {
        return Pipeline{
            Stages{Stage{"load",
                         [this](const Cells& in, Cells& out) {
                             if (loaded++ == throws_at)
                                 throw Error("no such file");
                             out.values[0] = std::as_const(in.values)[0];
                         }},
                   Stage{"pass on", [](BasicStreamRef<A> stream, const Cells& in,
                                       Cells& out) { copy(stream, out.values, in.values); }},
                   Stage{"sum",
                         [this](const Cells& in, Cells& out) {
                             host_writes(total);
                             out.values[0] = std::as_const(in.values)[0];
                         }}},
            Slots{[](int) { return Cells{}; }, [](int) { return Cells{}; }, [](int) { return Cells{}; }},
            options};
    }
};

constexpr Schedule eager[] = {Schedule::serial, Schedule::overlapped};

} // namespace

// Memory and graphs
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: a copy that is waited for, and work on another stream after it") {
    pass([](World& w) {
        const std::vector<float> values(count, 1.0f);
        copy_and_wait(w.main, w.images, values);
        copy(w.side, w.result, w.images);
        w.side.sync();
    });
}

TEST_CASE("Right: a scalar's first value is read on any stream") {
    pass([](World& w) {
        const DeviceScalar<float, B> rate(0.1f);
        (void)rate.value_and_wait(w.main);
    });
}

TEST_CASE("Right: a scalar goes while its value is on the way") {
    pass([](World& w) {
        DeviceScalar<float, B> rate(0.1f, 2);
        rate.set(w.main, 0.2f);
    });
}

TEST_CASE("Right: a scalar is set again after no event could be recorded behind its copy") {
    pass([](World&) {
        const BasicStream<F> stream;
        DeviceScalar<float, F> rate(0.1f, 1);
        without_records([&] { rate.set(stream, 0.2f); });
        rate.set(stream, 0.3f);
        stream.sync();
    });
}

TEST_CASE("Right: the caller goes on after a side stream's work that no event could be recorded behind") {
    pass([](World&) {
        const BasicStream<F> stream;
        DeviceBuffer<float, F> values(count), seen(count);
        DeviceScalar<float, F> rate(0.1f);
        GraphCapture<int, F> graphs;
        fill_bytes(stream, values, 0);
        stream.sync();
        // Setting a scalar cannot be captured, so that the work runs on a stream beside the caller's.
        try {
            (void)graphs.run(stream, 1, [&](BasicStreamRef<F> side) {
                rate.set(side, 0.2f);
                fill_bytes(side, values, 1);
                NoRecords::fail = true;
            });
        } catch (const Error&) {
            // That is what is looked for.
        }
        NoRecords::fail = false;
        copy(stream, seen, values);
        stream.sync();
    });
}

// Pipelines
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: a batch changes when its handle was assigned another one") {
    pass([](World&) {
        TwoStages two{encode(), train()};
        BatchRead read = two.pipeline.submit(two.batches[0]);
        read = two.pipeline.submit(two.batches[1]);
        two.batches[0].images[0] = 1;
        read.wait();
        two.pipeline.finish();
    });
}

TEST_CASE("Right: an external stream goes on after all stages were flushed") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        pass([&](World& w) {
            TwoStages two{
                encode({.stream = w.side.ref()}), train().writes(w.workspace), {.schedule = schedule}};
            two.submit_all(6);
            two.pipeline.flush();
            copy(w.side, w.result, w.workspace);
            w.side.sync();
            two.pipeline.finish();
        });
    }
}

TEST_CASE("Right: results that a CPU stage made are read as they are handed over") {
    for (const Schedule schedule : eager) {
        pass([&](World&) {
            OnThreads threads;
            auto pipeline = threads.pipeline({.schedule = schedule});
            Source<Cells, NoState, void (*)(std::size_t, Cells&), A> source{
                [](int) { return Cells{}; },
                [](std::size_t index, Cells& out) { out.values[0] = static_cast<float>(index); },
                SourceOptions<A>{.batches = 6}};
            for (const Cells& result : pipeline.run(source))
                (void)result.values[0];
            pipeline.finish();
        });
    }
}

TEST_CASE("Right: what a CPU stage has written is read after the pipeline was finished") {
    for (const Schedule schedule : eager) {
        pass([&](World&) {
            OnThreads threads;
            auto pipeline = threads.pipeline({.schedule = schedule});
            for (const Cells& batch : threads.batches)
                pipeline.submit(batch).stays();
            pipeline.finish();
            host_reads(threads.total);
        });
    }
}

TEST_CASE("Right: batches change after a CPU stage has failed") {
    for (const Schedule schedule : eager) {
        pass([&](World&) {
            OnThreads threads;
            threads.throws_at = 1;
            auto pipeline = threads.pipeline({.schedule = schedule});
            bool failed = false;
            for (std::size_t turn = 0; turn < 1000 && !failed; ++turn) {
                try {
                    pipeline.submit(std::as_const(threads.batches[turn % 8])).stays();
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                } catch (const Error&) {
                    failed = true;
                }
            }
            CHECK(failed);
            threads.batches[0].values[0] = 5;
            host_reads(threads.total);
        });
    }
}

TEST_CASE("Right: a readback is pushed to by another stream after no event could be recorded") {
    pass([](World&) {
        const BasicStream<F> stream, other;
        DeviceBuffer<float, F> values(count);
        fill_bytes(stream, values, 0);
        stream.sync();
        Readback<float, F> results(
            count, [](std::size_t, std::span<const float>) {}, 1);
        without_records([&] { results.push(stream, values); });
        results.push(other, values);
        results.finish();
    });
}

TEST_CASE("Right: a readback goes after no event could be recorded behind a replay that pushed to it") {
    pass([](World&) {
        const BasicStream<F> stream;
        DeviceBuffer<float, F> values(count);
        fill_bytes(stream, values, 0);
        {
            GraphCapture<int, F> graphs;
            Readback<float, F> results(
                count, [](std::size_t, std::span<const float>) {}, 2);
            const auto step = [&] {
                (void)graphs.run(stream, 1, [&](BasicStreamRef<F> s) { results.push(s, values); });
            };
            for (int i = 0; i < 3; ++i)
                step();
            results.finish();
            without_records(step);
        }
    });
}

TEST_CASE("Right: two stages on one stream share a workspace under every schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 4}) {
            pass([&](World& w) {
                const StageOptions<B> on_main{.stream = w.main};
                TwoStages two{encode(on_main).writes(w.workspace),
                              train(on_main).writes(w.workspace),
                              {.schedule = schedule, .steps_per_graph = steps}};
                two.submit_all(24);
                two.pipeline.finish();
            });
        }
    }
}

TEST_CASE("Right: stages on one stream with others between them share a workspace under every schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 4}) {
            pass([&](World& w) {
                // The last one is two batches behind the first one where nothing else counts.
                const StageOptions<B> on_main{.stream = w.main};
                Pipeline pipeline{
                    Stages{Stage<Load, B>("load", encode_batch, on_main).writes(w.workspace),
                           Stage<MakeLeft, B>("left", DiamondStages{}.left),
                           Stage{"right",
                                 [](Ref s, const Left& in, Right& out) { copy(s, out.values, in.values); }},
                           Stage{"join", [](Ref s, const Right& in) { reads(s, in.values); }, on_main}.writes(
                               w.workspace)},
                    Slots{Make<Slot>{}, Make<Left>{}, Make<Right>{}},
                    PipelineOptions{.schedule = schedule, .slots = 3, .steps_per_graph = steps}};
                const Batch batch;
                for (std::size_t step = 0; step < 24; ++step)
                    pipeline.submit(batch).stays();
                pipeline.finish();
            });
        }
    }
}

TEST_CASE("Right: a stage writes each time to one place that batches name, which others take as well") {
    struct Step {
        PinnedSpan<const float, B> in;
        PinnedSpan<float, B> out;
    };
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 4}) {
            pass([&](World& w) {
                TwoStreamPipeline pipeline{
                    Stage{"load", [](Ref s, const Step& in, Left& out) { copy(s, out.values, in.in); }},
                    Stage{"store",
                          [](Ref s, const Step& in, const Left& left) { copy(s, in.out, left.values); }},
                    Make<Left>{},
                    {.schedule = schedule, .slots = 4, .steps_per_graph = steps}};
                for (int i = 0; i < 12; ++i)
                    pipeline.submit(Step{std::as_const(w.host_images).span(), w.result.span()}).stays();
                pipeline.finish();
                host_reads(w.result, "print");
            });
        }
    }
}

// Ragged rows
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: one block is copied on two streams, and packed again") {
    pass([](World& w) {
        RaggedBatch<float, B> one{room}, two{room};
        RaggedPacker<float, B> packer{room};
        for (int i = 0; i < 2; ++i) {
            packer.pack(two_rows);
            packer.copy_to(w.main, one);
            packer.copy_to(w.side, two);
        }
        w.main.sync();
        w.side.sync();
    });
}

TEST_CASE("Right: a block is copied on two streams, the first of which the host has waited for") {
    pass([](World& w) {
        RaggedBatch<float, B> one{room}, two{room};
        RaggedPacker<float, B> packer{room};
        packer.pack(two_rows);
        packer.copy_to(w.main, one);
        w.main.sync();
        packer.copy_to(w.side, two);
        w.side.sync();
    });
}

TEST_CASE("Right: a block is laid out anew, or added to, right after it was copied") {
    pass([](World& w) {
        RaggedBatch<float, B> rows{room};
        RaggedPacker<float, B> packer{room};
        packer.pack(two_rows);
        packer.copy_to(w.main, rows);
        packer.clear(room);
        packer.add_row(two_rows[0]);
        packer.copy_to(w.main, rows);
        packer.add_row(two_rows[1]);
        w.main.sync();
    });
}

TEST_CASE("Right: a column is packed again right after it was copied, by hand and by a graph") {
    pass([](World& w) {
        RaggedBatch<float, B> rows{room};
        RaggedColumn<int, B> column{room.values};
        RaggedPacker<float, B> packer{room};
        RaggedColumnPacker<int, B> labels{room.values};
        const std::vector<std::vector<int>> some{{1, 2}, {3}};
        packer.pack(two_rows);
        labels.pack(packer, some);
        labels.copy_to(w.main, column);
        labels.pack(packer, some);
        w.main.sync();

        const BasicGraphExec<B> graph{capture(w.main, [&](Ref s) { labels.copy_to(s, column); })};
        for (int i = 0; i < 2; ++i) {
            graph.launch(w.main);
            labels.mark_in_use(w.main);
            labels.pack(packer, some);
        }
        w.main.sync();
    });
}

} // namespace sluice::test::hazards_right_waits
