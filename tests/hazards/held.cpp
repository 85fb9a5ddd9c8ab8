// Batches that a graphed pipeline holds back.
#include <span>
#include <vector>

#include <sluice/backend/detail/checked/state.hpp>

#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_held {

namespace {

constexpr PipelineOptions of_four_steps{.schedule = Schedule::graphed, .slots = 4, .steps_per_graph = 4};

// A batch that names its memory, and where its result goes.
struct Step {
    PinnedSpan<const float, B> in;
    PinnedSpan<float, B> out;
};
struct StepSlot {
    Device values = named("step values");
};

auto step_pipeline(const PipelineOptions& options) {
    return TwoStreamPipeline{
        Stage{"load", [](Ref s, const Step& step, StepSlot& out) { copy(s, out.values, step.in); }},
        Stage{"store", [](Ref s, const Step& step, const StepSlot& in) { copy(s, step.out, in.values); }},
        Make<StepSlot>{}, options};
}

void refill(Pinned& buffer, float value) {
    for (float& element : buffer)
        element = value;
}

} // namespace

TEST_CASE("Hazard: the host fills a batch again that is held for a graph of several steps") {
    find(host_race("batch images", {"encode", 0}, {"host"}), [](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        two.submit(0);
        refill(two.batches[0].images, 7);
        two.submit(0);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the host changes a held batch by a pointer that it has kept") {
    find(host_race("batch labels", {"encode", 1}, {"host"}), [](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        float* const labels = two.batches[1].labels.data();
        two.submit_all(2);
        labels[3] = 7;
        two.pipeline.flush();
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: the host changes a held batch that names its memory") {
    find(host_race("host images", {"load", 0}, {"host"}), [](World& w) {
        auto pipeline = step_pipeline(of_four_steps);
        const Step step{std::as_const(w.host_images).span(), w.result.span()}; // for which no handle waits
        pipeline.submit(step).stays();
        w.host_images[1] = 7;
        pipeline.finish();
    });
}

TEST_CASE("Hazard: the host changes a batch in one half of a buffer whose other half a stream writes") {
    find(host_race("both halves", {"store", 0}, {"host"}), [](World& w) {
        Pinned both = named<Pinned>("both halves", 2 * count);
        auto pipeline = step_pipeline({.schedule = Schedule::overlapped});
        copy(w.side, both.span().subspan(count, count), w.features);
        pipeline.submit(Step{std::as_const(both).span().subspan(0, count), w.result.span()}).stays();
        both[1] = 7;
        pipeline.finish();
        w.side.sync();
    });
}

TEST_CASE("Right: a held batch is filled again once is_ready says that it has been read") {
    pass([](World& w) {
        auto pipeline = step_pipeline(of_four_steps);
        const Step step{std::as_const(w.host_images).span(), w.result.span()};
        for (int round = 0; round < 3; ++round) {
            BatchRead read = pipeline.submit(step);
            while (!read.is_ready()) { // which sends it on its way
            }
            refill(w.host_images, static_cast<float>(round));
        }
        pipeline.finish();
    });
}

TEST_CASE("Hazard: the host changes a batch by a pointer that it has kept, after the promise that it stays") {
    find(host_race("batch labels", {"train", 0}, {"host"}), [](World&) {
        TwoStages two{encode(), train()};
        float* const labels = two.batches[0].labels.data();
        two.submit(0); // by stays()
        settle(two.pipeline.stream(0));
        settle(two.pipeline.stream(1));
        labels[3] = 7;
        two.pipeline.flush();
        two.submit(1);
        two.pipeline.finish();
    });
}

namespace {

// A batch in ordinary memory, which the stage reads when the stream gets there.
struct Rows {
    std::vector<float> values = std::vector<float>(count);
};
struct View {
    std::span<const float> values;
};

template <class T>
auto reader_of(const PipelineOptions& options) {
    const auto read = [](Ref s, const T& in) { s.enqueue([first = in.values.data()] { (void)*first; }); };
    return Pipeline{Stages{Stage{"read", read, StageOptions<B>{.graphed = false}}}, options};
}

constexpr Schedule all_schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed};

} // namespace

TEST_CASE("Hazard: the host changes a batch's vector before it has been read") {
    for (const Schedule schedule : all_schedules) {
        for (const bool promised : {false, true}) {
            find(host_race(nullptr, {"read", 0}, {"host"}), [&](World&) {
                Rows batch;
                auto pipeline = reader_of<Rows>({.schedule = schedule});
                BatchRead read = pipeline.submit(batch);
                if (promised)
                    read.stays();
                batch.values[5] = 7;
                pipeline.submit(batch).wait();
                pipeline.finish();
            });
        }
    }
}

TEST_CASE("Hazard: the host changes ordinary memory that a batch names") {
    for (const Schedule schedule : all_schedules) {
        find(host_race(nullptr, {"read", 0}, {"host"}), [&](World&) {
            std::vector<float> values(count);
            auto pipeline = reader_of<View>({.schedule = schedule});
            pipeline.submit(View{values}).stays();
            values[5] = 7;
            pipeline.flush();
            pipeline.submit(View{values}).stays();
            pipeline.finish();
        });
    }
}

TEST_CASE("Right: a batch's vector is filled again when it has been read, and other ones meanwhile") {
    for (const Schedule schedule : all_schedules) {
        pass([&](World&) {
            Rows batches[2];
            std::vector<float> values(count);
            auto pipeline = reader_of<Rows>({.schedule = schedule});
            auto views = reader_of<View>({.schedule = schedule});
            BatchRead read[2];
            for (std::size_t step = 0; step < 12; ++step) {
                read[step % 2].wait();
                batches[step % 2].values.assign(count + step, static_cast<float>(step));
                read[step % 2] = pipeline.submit(batches[step % 2]);
                values[step] = 1;
                views.submit(View{values}).wait();
                Rows short_lived;
                pipeline.submit(short_lived).wait();
            }
            pipeline.finish();
        });
    }
}

namespace {

// A class that shows nothing but its key.
class Hidden {
public:
    void fill(float value) { refill(values_, value); }
    PinnedSpan<const float, B> values() const { return values_.span(); }

private:
    friend auto graph_key(const Hidden& batch) { return batch.values(); }
    Pinned values_ = named<Pinned>("hidden");
};

} // namespace

TEST_CASE("Hazard: the host changes a held batch of whose memory its graph_key tells") {
    find(host_race("hidden", {"read", 0}, {"host"}), [](World& w) {
        Pipeline pipeline{
            Stages{Stage{"read", [&w](Ref s, const Hidden& in) { copy(s, w.images, in.values()); }}},
            of_four_steps};
        Hidden batch;
        pipeline.submit(batch).stays();
        batch.fill(7);
        pipeline.submit(batch).stays();
        pipeline.finish();
    });
}

TEST_CASE("A batch that is submitted again and again is watched once for each stage that reads it") {
    World w;
    TwoStages two{encode(), train()};
    for (int step = 0; step < 100; ++step)
        two.submit(0);
    CHECK(detail::checked::Locked()->suspects.size() <= 4); // two stages read two buffers
    two.pipeline.finish();
}

TEST_CASE("Hazard: the host says that it writes a held batch") {
    find(host_race("batch images", {"encode", 0}, {"load"}), [](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        two.submit(0);
        host_writes(two.batches[0].images, "load");
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: another stream fills a held batch") {
    // Its bytes may have changed when the pipeline is called next.
    find({race("batch images", {"encode", 0}, {"copy"}),
          perhaps(host_race("batch images", {"encode", 0}, {"host"}))},
         [](World& w) {
             TwoStages two{encode(), train(), of_four_steps};
             two.submit(0);
             copy(w.main, two.batches[0].images, w.images);
             settle(w.main);
             two.pipeline.wait_for(w.main);
             two.pipeline.finish();
         });
}

TEST_CASE("Hazard: the host fills a batch again that the next step's stage has yet to read") {
    find(host_race("batch labels", {"train", 0}, {"host"}), [](World&) {
        TwoStages two{encode(), train(), {.schedule = Schedule::graphed}};
        two.submit(0);
        two.pipeline.stream(0).sync();
        refill(two.batches[0].labels, 7);
        two.submit(1);
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: a held batch is freed") {
    find(use_after_free("short-lived", {"load", 0}), [](World& w) {
        auto pipeline = step_pipeline(of_four_steps);
        {
            const Pinned images = numbered("short-lived");
            const Step step{images.span(), w.result.span()};
            pipeline.submit(step).stays();
        }
        pipeline.reset();
    });
}

TEST_CASE("What is said of a held batch names the batch, the graph and the way out") {
    const bool threw = checked::throw_mistakes(true);
    std::string text;
    {
        World world;
        TwoStages two{encode(), train(), of_four_steps};
        two.submit(0);
        refill(two.batches[0].images, 7);
        try {
            two.submit(0);
        } catch (const Error& error) {
            text = error.what();
        }
    }
    (void)checked::throw_mistakes(threw);
    checked::forget();
    for (const char* const part :
         {"'batch images'", "the host changed batch 0 while it was held for a graph of 4 steps",
          "stage 'encode'", "wait() of the BatchRead", "steps_per_graph = 1"})
        CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

TEST_CASE("Right: a held batch is filled again when its BatchRead says so") {
    pass([](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        BatchRead read[2];
        for (std::size_t step = 0; step < 24; ++step) {
            read[step % 2].wait();
            refill(two.batches[step % 2].images, static_cast<float>(step));
            read[step % 2] = two.pipeline.submit(std::as_const(two.batches[step % 2]));
        }
        two.pipeline.finish();
    });
}

TEST_CASE("Right: a batch whose BatchRead goes at once waits by itself, and is filled again") {
    pass([](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        for (std::size_t step = 0; step < 12; ++step) {
            refill(two.batches[0].images, static_cast<float>(step));
            const BatchRead gone = two.pipeline.submit(two.batches[0]);
        }
        two.pipeline.finish();
    });
}

TEST_CASE("Right: other batches are filled while some are held, and held ones are read") {
    pass([](World&) {
        TwoStages two{encode(), train(), of_four_steps};
        for (std::size_t step = 0; step < 8; ++step) {
            refill(two.batches[step].images, static_cast<float>(step));
            two.submit(step);
            CHECK(two.batches[step].images[1] == static_cast<float>(step));
        }
        two.pipeline.finish();
    });
}

TEST_CASE("Right: stages write by way of batches while others are held") {
    for (const int steps : {0, 4}) {
        pass([&](World& w) {
            PipelineOptions options = of_four_steps;
            options.steps_per_graph = steps;
            std::vector<Pinned> results;
            auto pipeline = step_pipeline(options);
            for (int i = 0; i < 24; ++i) {
                const Step step{std::as_const(w.host_images).span(), results.emplace_back(count).span()};
                pipeline.submit(step).stays();
            }
            pipeline.finish();
            CHECK(results[23][1] == w.host_images[1]);
        });
    }
}

TEST_CASE("Right: a stream fills a batch, and the pipeline that holds it waits for that") {
    pass([](World& w) {
        TwoStages two{encode(), train(), of_four_steps};
        for (std::size_t step = 0; step < 8; ++step) {
            copy(w.main, two.batches[step].images, w.images);
            two.pipeline.wait_for(w.main);
            two.submit(step);
        }
        two.pipeline.finish();
    });
}

} // namespace sluice::test::hazards_held
