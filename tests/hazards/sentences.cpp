// What the sentences about mistakes say, and how often one mistake is told.
#include <initializer_list>
#include <string>
#include <vector>

#include "hazards/pipelines.hpp"

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

TEST_CASE("Nobody is told to wait for an event on a CPU stage's thread") {
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

TEST_CASE("What is done about a source's batch is said") {
    const auto with_source = [](const std::function<void(World&, const Batch&)>& use) {
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

} // namespace sluice::test::hazards_sentences
