// The newest batch of a second source in each step.
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/camera.hpp"
#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"

namespace pipeline_latest {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Options = SourceOptions<B>;
constexpr std::size_t words = 16;

struct Frame {
    PinnedBuffer<Word, B> words{pipeline_latest::words};
};
struct Pose {
    PinnedBuffer<Word, B> words{pipeline_latest::words};
};
using Both = Zipped<Frame, Pose>;

template <class T>
T make(int) {
    return {};
}
template <class T>
void fill_words(std::size_t index, T& out) {
    for (Word& word : out.words)
        word = static_cast<Word>(index);
}
struct LetGo {
    Camera& camera;
    ~LetGo() { camera.let(1'000'000); }
};

} // namespace

TEST_CASE("latest: each step has the newest batch of that moment, which may be the same one again") {
    Camera camera;
    // More than steps take until the fault of the other source comes through.
    Source frames{make<Frame>, fill_words<Frame>, Options{.workers = 1, .batches = 1 << 20}};
    Source poses{make<Pose>,
                 [&](std::size_t index, Pose& out) {
                     camera.take();
                     if (index == 6)
                         throw std::runtime_error("no pose");
                     fill_words(index, out);
                 },
                 Options{.workers = 1, .slots = 4}};
    const LetGo let_go{camera};
    auto both = zip(frames, latest(poses));
    CHECK(both.slots() == 3);
    std::vector<std::pair<Word, Word>> seen;
    const auto step = [&] {
        const auto batch = both.next();
        REQUIRE(batch);
        seen.emplace_back(batch->first.words[3], batch->second.words[3]);
    };
    camera.let(1); // the first step waits for one
    step();
    step();
    camera.let(1);
    REQUIRE(eventually([&] { return poses.filled() == 1; }));
    step();
    camera.let(3);
    REQUIRE(eventually([&] { return poses.filled() == 3; }));
    step();
    CHECK(poses.dropped() == 2);
    step();
    camera.let(2); // the last of which fails
    REQUIRE(eventually([&] { return poses.filled() == 1; }));
    step();
    CHECK(eventually([&] { return contains(text_of([&] { step(); }), "filling batch 6 failed: no pose"); }));
    // The source has ended: its last one stays.
    for (int more = 0; more < 2; ++more)
        step();
    std::vector<Word> first, second;
    for (const auto& [frame, pose] : seen) {
        first.push_back(frame);
        second.push_back(pose);
    }
    REQUIRE(first.size() >= 8);
    for (std::size_t frame = 0; frame < first.size(); ++frame)
        CHECK(first[frame] == static_cast<Word>(frame)); // None is lost, and none comes twice.
    CHECK(second[0] == 0);
    CHECK(second[1] == 0);
    CHECK(second[2] == 1);
    CHECK(second[3] == 4);
    CHECK(second[4] == 4);
    CHECK(second[5] == 5);
    CHECK(second.back() == 5);
}

TEST_CASE("latest: a source that ends without a batch ends the zip") {
    Source frames{make<Frame>, fill_words<Frame>, Options{.workers = 1, .batches = 8}};
    Source poses{make<Pose>, fill_words<Pose>, Options{.workers = 1, .batches = 0}};
    auto both = zip(frames, latest(poses));
    CHECK_FALSE(both.next());
    CHECK(both.left_over().index() == 0);
    CHECK(text_of([] {
              Source one{make<Pose>, fill_words<Pose>, Options{.workers = 0, .slots = 1}};
              (void)latest(one);
          }) ==
          "latest: the source needs 2 slots or more, one that is kept and one in which a newer batch is "
          "filled, got 1");
}

TEST_CASE("latest: goes on with newer ones where the source has two slots, of which one is kept") {
    for (const WhenAhead when_ahead : {WhenAhead::wait, WhenAhead::drop_oldest, WhenAhead::drop_newest}) {
        Source frames{make<Frame>, fill_words<Frame>, Options{.workers = 0}};
        Source poses{make<Pose>, fill_words<Pose>,
                     Options{.workers = 1, .slots = 2, .when_ahead = when_ahead}};
        auto both = zip(frames, latest(poses));
        Word last = 0;
        CHECK(eventually([&] {
            const Word pose = both.next()->second.words[1];
            CHECK(pose >= last);
            last = pose;
            return pose >= 20;
        }));
    }
}

TEST_CASE("latest: without workers the second source is filled for each step") {
    Source frames{make<Frame>, fill_words<Frame>, Options{.workers = 0, .batches = 5}};
    Source poses{make<Pose>, fill_words<Pose>, Options{.workers = 0, .slots = 2, .batches = 3}};
    auto both = zip(frames, latest(poses));
    std::vector<Word> seen;
    for (const auto& batch : both)
        seen.push_back(batch->second.words[0]);
    CHECK(seen == std::vector<Word>{0, 1, 2, 2, 2});
    both.rewind();
    CHECK(both.next()->second.words[0] == 0);
}

TEST_CASE(
    "Contract 1: a batch that is the newest in several steps is not filled before all of them have read it") {
    std::uint64_t seed = 700;
    for (const PipelineOptions& options :
         {PipelineOptions{.schedule = Schedule::serial}, PipelineOptions{.schedule = Schedule::overlapped},
          PipelineOptions{.schedule = Schedule::graphed},
          PipelineOptions{.schedule = Schedule::graphed, .graph_each_stage = true},
          PipelineOptions{.schedule = Schedule::graphed, .steps_per_graph = 4}}) {
        for (const WhenAhead when_ahead : {WhenAhead::wait, WhenAhead::drop_oldest}) {
            Delay::set({.seed = ++seed, .one_in = 4, .microseconds = 300});
            Source frames{make<Frame>, fill_words<Frame>, Options{.workers = 1, .slots = 3, .batches = 60}};
            Source poses{make<Pose>,
                         [](std::size_t index, Pose& out) {
                             fill_words(index, out);
                             std::this_thread::sleep_for(std::chrono::microseconds(50 * (index % 4)));
                         },
                         Options{.workers = 1, .slots = 4, .when_ahead = when_ahead}};
            auto both = zip(frames, latest(poses));
            std::vector<Word> given, first, second;
            Readback<Word, B> results{2 * words, [&](std::size_t, std::span<const Word> seen) {
                                          first.push_back(seen[0]);
                                          second.push_back(seen[words]);
                                          CHECK(seen[words - 1] == seen[0]);
                                          CHECK(seen[2 * words - 1] == seen[words]);
                                      }};
            struct Cells {
                DeviceBuffer<Word, B> cells{2 * words};
            };
            Stage join{"join", [](Ref on, const Both& in, Cells& out) {
                           ops::spin(on.get(), 100);
                           copy(on, out.cells.span().first(words), in.first.words);
                           copy(on, out.cells.span().subspan(words, words), in.second.words);
                       }};
            Stage show{"show", [&](Ref on, const Cells& in) { results.push(on, in.cells); }};
            TwoStreamPipeline pipeline{join, show, [](int) { return Cells{}; }, options};
            for (const auto& batch : both) {
                given.push_back(batch->second.words[0]);
                pipeline.submit(batch);
            }
            pipeline.finish();
            results.finish();
            REQUIRE(first.size() == 60);
            for (std::size_t i = 0; i < 60; ++i)
                CHECK(first[i] == i);
            CHECK(second == given);
        }
    }
    Delay::set({.one_in = 0});
}

} // namespace pipeline_latest
