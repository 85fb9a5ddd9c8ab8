// Which lane a stage works on a batch with, as it is told.
#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"

namespace pipeline_lanes {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

struct Block {
    PinnedBuffer<Word, B> words{1};
};
Block make_block(int) { return {}; }
struct Seen {
    PinnedBuffer<Word, B> words{1};
};
Seen make_seen(int) { return {}; }

Word* zero() {
    static PinnedBuffer<Word, B> zero = [] {
        PinnedBuffer<Word, B> made(1);
        made[0] = 0;
        return made;
    }();
    return zero.data();
}
// A number of the launch, so that what is replayed must be of the same lane.
void put(Ref stream, Word* to, Word* from, int number) {
    ops::add_racing(stream.get(), to, from, static_cast<Word>(number), 1);
}
int code(Lane lane) { return 10 * lane.index + lane.count; }

} // namespace

TEST_CASE("lanes: a stage is told its lane of each batch, under each schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3, 4}) {
            for (const int steps : {0, 4, 12}) {
                if (steps > 0 && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(steps);
                PipelineOptions options{.schedule = schedule, .slots = slots, .steps_per_graph = steps};
                options.graphs.on_refusal = nullptr;
                const Stage first{"first",
                                  [](Ref stream, const int&, Block& out, Lane lane) {
                                      put(stream, out.words.data(), zero(), code(lane));
                                  },
                                  StageOptions<B>{.lanes = 3}};
                const Stage second{"second",
                                   [](Ref stream, const Lane& lane, Turn turn, const Block& in, Seen& out) {
                                       put(stream, out.words.data(), const_cast<Word*>(in.words.data()),
                                           100 * code(lane) + 10000 * turn.count);
                                   },
                                   StageOptions<B>{.lanes = 2}};
                Pipeline pipeline{Stages{first, second}, Slots{make_block, make_seen}, options};
                const std::vector<int> batches(48, 0); // of one kind
                std::size_t batch = 0;
                for (const Seen& seen : pipeline.run(batches)) {
                    const std::size_t of_second = 10 * (batch % 2) + 2, of_first = 10 * (batch % 3) + 3;
                    CHECK(seen.words[0] == 10000 + 100 * of_second + of_first);
                    ++batch;
                }
                CHECK(batch == 48);
                if (schedule == Schedule::graphed)
                    CHECK(pipeline.graph_counters().replays > 0);
            }
        }
    }
}

TEST_CASE("lanes: a CPU stage and a stage without lanes are told theirs") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        PipelineOptions options{.schedule = schedule, .slots = 2};
        options.graphs.on_refusal = nullptr;
        std::vector<int> alone;
        const Stage first{"first", [&](Ref stream, const int& batch, Lane lane, Block& out) {
                              alone.push_back(code(lane));
                              put(stream, out.words.data(), zero(), batch);
                          }};
        std::vector<int> seen(24, 0); // each element by one thread
        const Stage look{"look", [&](Lane lane, const Block& in) { seen[in.words[0]] = code(lane); },
                         StageOptions<Host>{.lanes = 3}};
        Pipeline pipeline{Stages{first, look}, Slots{make_block}, options};
        for (int batch = 0; batch < 24; ++batch)
            pipeline.submit(int{batch});
        pipeline.finish();
        for (const int lane : alone)
            CHECK(lane == 1);
        for (std::size_t batch = 0; batch < seen.size(); ++batch)
            CHECK(seen[batch] == static_cast<int>(10 * (batch % 3) + 3));
    }
}

} // namespace pipeline_lanes
