// What the sentences about mistakes say, and how often one mistake is told.
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "hazards/pipelines.hpp"
#include "support/error_text.hpp"

namespace sluice::test::hazards_sentences {

namespace {

// All that is found of a program.
std::vector<checked::Finding> found_of(const Program& program) {
    const bool before = checked::throw_mistakes(false);
    checked::forget();
    {
        World world;
        program(world);
    }
    std::vector<checked::Finding> found = checked::findings();
    checked::forget();
    checked::throw_mistakes(before);
    return found;
}

// The sentences about a program have these words, and not those.
void says(const Program& program, std::initializer_list<const char*> these,
          std::initializer_list<const char*> not_those) {
    std::string all;
    for (const checked::Finding& finding : found_of(program))
        all += finding.message + "\n";
    INFO(all);
    for (const char* const words : these)
        CHECK_MESSAGE(all.find(words) != std::string::npos, words);
    for (const char* const words : not_those)
        CHECK_MESSAGE(all.find(words) == std::string::npos, words);
}

using Builder = BasicGraphBuilder<B>;

// A slot without a name, of memory that it shares with others: by a span, or as one of several owners.
struct View {
    DeviceSpan<float, B> values;
};
struct Shared {
    std::shared_ptr<Device> values;
};
struct First;
struct Second;

} // namespace

TEST_CASE("A refill is told once, whether by elements or as a whole") {
    const auto found = found_of([](World& w) {
        for (int step = 0; step < 3; ++step) {
            copy(w.main, w.images, w.host_images);
            for (std::size_t i = 0; i < count; ++i)
                w.host_images[i] += 1;
            for (float& value : w.host_images)
                value += 1;
        }
        w.main.sync();
    });
    REQUIRE(found.size() == 1);
    CHECK(found[0].mistake == Mistake::host_race);
    CHECK(found[0].count == 3);
    CHECK(found[0].bytes == count * sizeof(float));
}

TEST_CASE("The host is called so, whether it writes or frees") {
    says(
        [](World& w) {
            copy(w.main, w.images, w.host_images);
            w.host_images[0] += 1;
            w.main.sync();
        },
        {": the host writes it while copy"}, {"host, the host", "BatchRead"});
    says(
        [](World& w) {
            const Device scratch = named("scratch");
            reads(w.main, scratch, "loss");
        },
        {": the host frees it while loss", "or allocate it in stream order"}, {"comes while"});
    says(
        [](World& w) {
            const Pinned scratch = named<Pinned>("scratch");
            reads(w.main, scratch, "loss");
        },
        {": the host frees it while loss"}, {"in stream order"});
    says(
        [](World& w) {
            const Device scratch(count, w.main);
            writes(w.main, scratch, "forward");
            order(w.main, w.side, w.event);
            reads(w.side, scratch, "loss");
        },
        {" frees it while loss", "wait for it before the memory is freed"}, {"in stream order", "sync()"});
}

TEST_CASE("Lanes of one stage are told apart") {
    says(
        [](World& w) {
            TwoStages two{encode({.lanes = 2}).writes(w.weights), train(), {.slots = 4}};
            two.submit_all(4);
            two.pipeline.finish();
        },
        {"the stream of lane 0 of stage 'encode'", "the stream of lane 1 of stage 'encode'",
         "each lane a buffer of its own"},
        {"as a stage's output"});
}

TEST_CASE("No finding asks for a wait for an event on a CPU stage's thread") {
    says(
        [](World& w) {
            CpuStages stages{w};
            stages.fetch = [&w](Ref s, const Batch& in, Scores& out) {
                copy(s, w.result, in.images);
                copy(s, out.values, in.images);
            };
            stages.choose = [&w](const Scores&, Choice&) { host_reads(w.result, "look"); };
            WithCpuStage pipeline{stages};
            pipeline.submit_all(4);
            pipeline.pipeline.finish();
        },
        {"hand the buffer on as a stage's output"}, {"record an event"});
}

TEST_CASE("A host function is named by the stage that enqueued it, and told what a stream can do") {
    says(
        [](World& w) {
            TwoStages two{encode([&w](Ref s, const Batch& in, Slot& out) {
                              encode_batch(s, in, out);
                              s.enqueue([&w] { host_writes(w.result, "count"); });
                          }),
                          train([&w](Ref s, const Batch&, Slot& in) {
                              copy(s, in.scores, in.features);
                              s.enqueue([&w] { host_reads(w.result, "log"); });
                          })};
            two.submit_all(4);
            two.pipeline.finish();
        },
        {"stage 'encode', batch ", "(count, the stream of stage 'encode')", "stage 'train', batch ",
         "(log, the stream of stage 'train')", ": record an event on "},
        {"sync()"});
}

TEST_CASE("What is done about a source's batch is said") {
    const auto with_source = [](const AnyCall<void(World&, const Batch&)>& use) {
        return [use](World& w) {
            Batches source{Make<Batch>{},
                           [](std::size_t, Batch& out) {
                               for (float& value : out.images)
                                   value = 1;
                           },
                           {.workers = 1, .slots = 2, .batches = 6}};
            for (const auto& batch : source)
                use(w, *batch);
            w.main.sync();
        };
    };
    says(with_source([](World& w, const Batch& batch) { copy(w.main, w.images, batch.images); }),
         {"call release() of the batch's handle"}, {"BatchRead", "sync()"});
}

TEST_CASE("BatchRead is named where a batch of the program's own is filled or freed too early") {
    says(
        [](World&) {
            TwoStages two{encode(), train()};
            two.submit(0);
            for (float& value : two.batches[0].images)
                value += 1;
            two.pipeline.finish();
        },
        {"call wait() of the BatchRead that submit returned"}, {"host, the host"});
}

TEST_CASE(
    "A reader that writes to what it was handed is told to write to a slot of its own, once for all slots") {
    struct Unnamed {
        Device values{count};
    };
    const Program program = [](World&) {
        Batch batches[4];
        Pipeline pipeline{
            Stages{
                Stage{"load", [](Ref s, const Batch& in, Unnamed& out) { copy(s, out.values, in.images); }},
                Stage{"left", [](Ref s, const Unnamed& in, Left& out) { copy(s, out.values, in.values); }},
                Stage{"right",
                      [](Ref s, const Unnamed& in, Right& out) {
                          fill_bytes(s, const_cast<Unnamed&>(in).values, 0);
                          copy(s, out.values, in.values);
                      }},
                Stage{"join", [](Ref, const Left&, const Right&) {}}},
            Slots{Make<Unnamed>{}, Make<Left>{}, Make<Right>{}}};
        for (const Batch& batch : batches)
            pipeline.submit(batch).stays();
        pipeline.finish();
    };
    says(program,
         {"stage 'right' is handed this slot of stage 'load' to read it: have it write to a slot of its own"},
         {"side stream", "record an event"});
    CHECK(found_of(program).size() == 1);
}

TEST_CASE("Memory that slots share is named by the slots, and their maker's mistake is told once") {
    const Program by_spans = [](World& w) {
        Batch batch;
        Pipeline pipeline{
            Stages{Stage{"load", [](Ref s, const Batch& in, View& out) { copy(s, out.values, in.images); }},
                   Stage{"left", [](Ref s, const View& in, Left& out) { copy(s, out.values, in.values); }},
                   Stage{"right", [](Ref s, const View& in, Right& out) { copy(s, out.values, in.values); }},
                   Stage{"join", [](Ref, const Left&, const Right&) {}}},
            Slots{[&w](int) { return View{w.images}; }, Make<Left>{}, Make<Right>{}}};
        name_buffer(w.images, "");
        for (int i = 0; i < 4; ++i)
            pipeline.submit(batch).stays();
        pipeline.finish();
    };
    says(by_spans,
         {"that slots 0 and 1 of stage 'load' share",
          "have the slot maker of stage 'load' give each slot memory of its own"},
         {});
    CHECK(found_of(by_spans).size() == 1);

    const Program by_owners = [](World&) {
        using A = Tagged<First, Shared>;
        using C = Tagged<Second, Shared>;
        const auto values = std::make_shared<Device>(count);
        Batch batch;
        Pipeline pipeline{
            Stages{Stage{"a", [](Ref s, const Batch& in, A& out) { copy(s, *out.values, in.images); }},
                   Stage{"b", [](Ref s, const Batch& in, C& out) { copy(s, *out.values, in.labels); }},
                   Stage{"join", [](Ref s, const A& a, const C&) { reads(s, *a.values); }}},
            Slots{[&](int) { return A{Shared{values}}; }, [&](int) { return C{Shared{values}}; }}};
        for (int i = 0; i < 4; ++i)
            pipeline.submit(batch).stays();
        pipeline.finish();
    };
    says(by_owners,
         {"that slots 0 and 1 of stage 'a' and slots 0 and 1 of stage 'b' share",
          "have the slot makers give each slot memory of its own"},
         {});
    CHECK(found_of(by_owners).size() == 1);
}

TEST_CASE("Nodes without an edge are named, and the way to order them is that of what made them") {
    says(
        [](World& w) {
            Builder builder;
            auto first = builder.copy(w.features, w.images);
            (void)first;
            builder.copy(w.labels, w.features);
            auto executable = builder.instantiate();
            executable.launch(w.main);
            w.main.sync();
        },
        {"copy, node 1 of a graph on stream", "name node 0 in the `after` of node 1"},
        {"branch", "record an event"});
    says(
        [](World& w) {
            const BasicGraphExec<B> graph{capture(w.main, [&](Ref s) {
                order(s, w.side, w.event);
                copy(s, w.features, w.images);
                copy(w.side, w.labels, w.features);
                order(w.side, s, w.event);
            })};
            graph.launch(w.main);
            w.main.sync();
        },
        {"in the work that is captured, record an event after the write"}, {"record an event on branch"});
    says(
        [](World& w) {
            Builder builder;
            builder.copy(w.features, w.images);
            auto executable = builder.instantiate();
            executable.launch(w.main);
            reads(w.side, w.features, "loss");
            w.main.sync();
        },
        {"node 0 of a graph on stream", ": record an event on stream "}, {"branch"});
}

TEST_CASE("What is said of no memory, or by no name, is refused") {
    World w;
    const DeviceSpan<float, B> none(nullptr, 4);
    const std::span<const int> no_numbers(static_cast<const int*>(nullptr), 4);
    const auto refusal = [](const char* call) {
        return std::string(call) +
               ": for the memory a null pointer to 4 elements was given; expected memory that holds as many";
    };
    CHECK(text_of([&] { reads(w.main, none); }) == refusal("reads"));
    CHECK(text_of([&] { writes(w.main, none); }) == refusal("writes"));
    CHECK(text_of([&] { host_reads(none); }) == refusal("host_reads"));
    CHECK(text_of([&] { host_writes(none); }) == refusal("host_writes"));
    CHECK(text_of([&] { name_buffer(none, "none"); }) == refusal("name_buffer"));
    CHECK(text_of([&] { reads(w.main, no_numbers); }) == refusal("reads"));
    Stage stage{"load", [](Ref, const Batch&) {}};
    CHECK(text_of([&] { stage.reads(none); }) == refusal("Stage::reads"));
    CHECK(text_of([&] { stage.writes(none); }) == refusal("Stage::writes"));
    CHECK(contains(text_of([&] { writes(w.main, DeviceSpan<float, B>(w.images.data(), ~std::size_t{0})); }),
                   "writes: for the memory a pointer to 18446744073709551615 elements of 4 bytes each"));
    CHECK(text_of([&] { name_buffer(w.images, nullptr); }) ==
          "name_buffer: the name is a null pointer; expected a string");
}

TEST_CASE("What sync finds of the host's change is thrown by the next call, not by sync") {
    const bool before = checked::throw_mistakes(true);
    for (const bool by_query : {false, true}) {
        CAPTURE(by_query);
        World w;
        copy(w.main, w.images, w.host_images);
        settle(w.main); // in fact over, which the checker does not know
        w.host_images[3] = 7;
        if (by_query)
            CHECK_NOTHROW((void)w.main.is_done());
        else
            CHECK_NOTHROW(w.main.sync());
        CHECK_NOTHROW(w.event.record(w.main));
        CHECK_THROWS_AS(copy(w.main, w.labels, w.host_labels), Error);
        CHECK_NOTHROW(copy(w.main, w.labels, w.host_labels)); // once
        w.main.sync();
        checked::forget();
    }
    checked::throw_mistakes(before);
}

} // namespace sluice::test::hazards_sentences
