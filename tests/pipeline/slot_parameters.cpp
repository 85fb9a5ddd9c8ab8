// Stages that change a slot in place, and that take what was made of several batches.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/gate.hpp"

namespace pipeline_slot_parameters {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

struct Block {
    PinnedBuffer<Word, B> words{1};
};
struct Window {
    PinnedBuffer<Word, B> words{3};
    int size = 0;
};
Block make_block(int) { return {}; }
Window make_window(int) { return {}; }

void put(Ref stream, Word* to, const Word* from) {
    copy(stream, PinnedSpan<Word, B>(to, 1), PinnedSpan<const Word, B>(from, 1));
}

// A batch's number, one added in place twice, and what is in the slots of three batches.
struct Program {
    Stage<void (*)(Ref, const PinnedSpan<const Word, B>&, Block&), B> load{
        "load", +[](Ref stream, const PinnedSpan<const Word, B>& batch, Block& out) {
            copy(stream, out.words, batch);
        }};
    Stage<void (*)(Ref, InPlace<Block>&), B> first{"first", +[](Ref stream, InPlace<Block>& block) {
                                                       ops::add_racing(stream.get(), block->words.data(),
                                                                       block->words.data(), 100, 1);
                                                   }};
    Stage<void (*)(Ref, InPlace<Block>), B> second{"second", +[](Ref stream, InPlace<Block> block) {
                                                       ops::add_racing(stream.get(), (*block).words.data(),
                                                                       block->words.data(), 1000, 1);
                                                   }};
    Stage<void (*)(Ref, const Last<3, Block>&, Window&), B> gather{
        "gather", +[](Ref stream, const Last<3, Block>& blocks, Window& out) {
            out.size = blocks.size();
            for (int back = 0; back < blocks.size(); ++back)
                put(stream, out.words.data() + back, blocks[back].words.data());
        }};
    auto pipeline(const PipelineOptions& options) {
        return AnyPipeline<PinnedSpan<const Word, B>, B>(Stages{load, first, second, gather},
                                                         Slots{make_block, make_window}, options);
    }
};

template <class Check>
void for_each_way(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            for (const bool each : {false, true}) {
                if (each && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(each);
                PipelineOptions options{.schedule = schedule, .slots = slots, .graph_each_stage = each};
                options.graphs.on_refusal = nullptr;
                check(options);
            }
        }
    }
}

} // namespace

TEST_CASE("InPlace and Last: each result has this batch's block and those before, changed once") {
    for_each_way([](const PipelineOptions& options) {
        const Inputs<B> inputs(20, 1);
        std::vector<PinnedSpan<const Word, B>> batches;
        for (std::size_t batch = 0; batch < 20; ++batch)
            batches.push_back(inputs[batch]);
        Program program;
        auto pipeline = program.pipeline(options);
        for (const int from_anew : {0, 1}) {
            CAPTURE(from_anew);
            std::size_t batch = 0;
            for (const Window& window : pipeline.run<Window>(batches)) {
                for (std::size_t back = 0; back < 3 && back <= batch; ++back)
                    CHECK(window.words[back] == input_word(batch - back, 0) + 1100);
                CHECK(window.size == std::min(static_cast<int>(batch) + 1, 3));
                ++batch;
            }
            CHECK(batch == 20);
            pipeline.reset(); // The first batches have none before them again.
        }
    });
}

TEST_CASE(
    "Last: the first stage is as far ahead of one that takes several batches as of one that takes one") {
    if (!streams_overlap<B>())
        return;
    for (const int slots : {1, 2, 3}) {
        CAPTURE(slots);
        Gate<B> gate;
        PinnedBuffer<Word, B> loaded(1);
        loaded[0] = 0;
        const Stage load{"load", [&](Ref stream, const int&, Block&) {
                             ops::add_racing(stream.get(), loaded.data(), loaded.data(), 1, 1);
                         }};
        const Stage gather{"gather", [&](Ref stream, const Last<3, Block>&) { gate.hold(stream); }};
        Pipeline pipeline{Stages{load, gather}, Slots{make_block}, {.slots = slots}};
        for (int batch = 0; batch < 8; ++batch)
            (void)pipeline.submit(batch);
        const auto count = [&] { return std::atomic_ref<Word>(loaded[0]).load(); };
        // The batch at the gate, and those whose slots are free; two more at first, since none is held for a window yet.
        const auto ahead = static_cast<Word>(slots) + 2;
        while (count() < ahead) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        CHECK(count() == ahead);
        gate.open();
        pipeline.finish();
        CHECK(count() == 8);
    }
}

TEST_CASE("Last: a stage that takes several batches has no lanes") {
    const Stage load{"load", [](Ref, const int&, Block&) {}};
    const Stage gather{"gather", [](Ref, const Last<2, Block>&) {}, StageOptions<B>{.lanes = 2}};
    CHECK(text_of([&] {
              Pipeline pipeline{Stages{load, gather}, Slots{make_block}};
          }) == "stage 'gather': it takes what was made of 2 batches, and cannot have lanes, got 2");
}

TEST_CASE("InPlace: there is one ring of slots, and the last stage's is the result") {
    int made = 0;
    const auto make = [&](int) {
        ++made;
        return Block{};
    };
    const Stage load{"load", [](Ref stream, const PinnedSpan<const Word, B>& batch, Block& out) {
                         copy(stream, out.words, batch);
                     }};
    const Stage add{"add", [](Ref stream, InPlace<Block>& block) {
                        ops::add_racing(stream.get(), block->words.data(), block->words.data(), 5, 1);
                    }};
    Pipeline pipeline{Stages{load, add}, Slots{make}};
    CHECK(made == 2);
    const Inputs<B> inputs(9, 1);
    std::vector<PinnedSpan<const Word, B>> batches;
    for (std::size_t batch = 0; batch < 9; ++batch)
        batches.push_back(inputs[batch]);
    std::size_t batch = 0;
    for (const Block& block : pipeline.run(batches))
        CHECK(block.words[0] == input_word(batch++, 0) + 5);
    CHECK(batch == 9);
}

} // namespace pipeline_slot_parameters
