// StageOptions::multiprocessors: who has which share, in graphs too, and what is refused.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report.hpp>
#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/fail_each_call.hpp"
#include "support/sharing_backend.hpp"

namespace pipeline_shares {

using namespace sluice;
using namespace sluice::test;

namespace {

using Share = Sharing::Share;
using Ref = BasicStreamRef<Sharing>;
using Options = StageOptions<Sharing>;

// The shares of the streams that a stage was called with, each once.
struct Seen {
    std::vector<const Share*> shares;
    void note(Ref stream) {
        const auto* const share = static_cast<const Share*>(Sharing::share_of(stream.get()));
        for (const Share* const known : shares) {
            if (known == share)
                return;
        }
        shares.push_back(share);
    }
    // The one that it was always called with; 0 multiprocessors stand for the whole device.
    Share only() const {
        REQUIRE(shares.size() == 1);
        return shares[0] == nullptr ? Share{} : *shares[0];
    }
};

// Two stages without anything between them.
template <class Check>
void run_two(Options first, Options second, PipelineOptions options, Check&& check) {
    Sharing::forget_all();
    Seen seen[2];
    {
        Pipeline pipeline{Stages{Stage{"detect",
                                       [&](Ref stream, int) {
                                           seen[0].note(stream);
                                           stream.enqueue([] {});
                                       },
                                       first},
                                 Stage{"heavy",
                                       [&](Ref stream, int) {
                                           seen[1].note(stream);
                                           stream.enqueue([] {});
                                       },
                                       second}},
                          options};
        for (int batch = 0; batch < 60; ++batch)
            pipeline.submit(batch % 2);
        pipeline.finish();
        check(pipeline, seen[0].only(), seen[1].only());
    }
    for (const Share& share : Sharing::all()) {
        CHECK_FALSE(share.alive);
        CHECK_FALSE(share.outlived);
    }
}

// What making a pipeline of one stage that asks, and one that does not, is refused with.
template <class B = Sharing>
std::string refusal(int asked, StageOptions<B> others = {}, PipelineOptions options = {}) {
    others.multiprocessors = asked;
    return text_of([&] {
        Pipeline pipeline{Stages{Stage{"detect", [](BasicStreamRef<B>, int) {}, others},
                                 Stage{"heavy", [](BasicStreamRef<B>, int) {}}},
                          options};
    });
}

} // namespace

TEST_CASE("a share is the least number of whole groups, where there are so many and one is left to others") {
    for (const bool has_rest : {false, true}) {
        for (const int taken : {0, 8, 120}) {
            for (int asked = 1; asked < 140; ++asked) {
                CAPTURE(has_rest);
                CAPTURE(taken);
                CAPTURE(asked);
                detail::SharedDevice device{0, 132, 8, taken, has_rest};
                int groups = 1;
                while (8 * groups < asked)
                    ++groups;
                if (8 * groups + taken + (has_rest ? 1 : 0) <= 132) {
                    CHECK(detail::take_share(device, "a", asked) == 8 * groups);
                    CHECK(device.taken == taken + 8 * groups);
                } else {
                    const int room = (132 - taken - (has_rest ? 1 : 0)) / 8 * 8;
                    CHECK(contains(text_of([&] { (void)detail::take_share(device, "a", asked); }),
                                   "stage 'a' asks for " + std::to_string(asked) +
                                       " multiprocessors of its own, and can have " + std::to_string(room) +
                                       ": device 0 has 132, in groups of 8"));
                    CHECK(device.taken == taken);
                }
            }
        }
    }
}

TEST_CASE("Shares: a stage has what it asks for, rounded up, and the others have the rest") {
    for (const int asked : {1, 8, 9, 124, 128}) {
        const int has = (asked + 7) / 8 * 8;
        CAPTURE(asked);
        run_two({.multiprocessors = asked}, {}, {}, [&](auto& pipeline, Share detect, Share heavy) {
            CHECK(detect.multiprocessors == has);
            CHECK_FALSE(detect.is_rest);
            CHECK(heavy.multiprocessors == 132 - has);
            CHECK(heavy.is_rest);
            CHECK(pipeline.multiprocessors(0) == has);
            CHECK(pipeline.multiprocessors(1) == 132 - has);
        });
    }
    run_two({.multiprocessors = 5}, {}, {}, [](auto& pipeline, Share, Share) {
        CHECK(pipeline.shares() ==
              "Of the 132 multiprocessors of device 0, which it shares out in groups of 8, "
              "detect has 8 for the 5 that it asked for and the other stages have 124.");
    });
    run_two({.multiprocessors = 8}, {.multiprocessors = 120}, {},
            [](auto& pipeline, Share detect, Share heavy) {
                CHECK(detect.multiprocessors == 8);
                CHECK(heavy.multiprocessors == 120);
                CHECK(pipeline.shares() ==
                      "Of the 132 multiprocessors of device 0, which it shares out in groups of 8, "
                      "detect has 8, heavy has 120.");
                CHECK(Sharing::all().size() == 2); // the rest is not given away
            });
    run_two({}, {}, {}, [](auto& pipeline, Share detect, Share heavy) {
        CHECK(detect.multiprocessors + heavy.multiprocessors == 0);
        CHECK(pipeline.multiprocessors(0) + pipeline.multiprocessors(1) == 0);
        CHECK(pipeline.shares().empty());
        CHECK(Sharing::all().empty());
    });
}

TEST_CASE("Shares: work is captured on the stage's own share, in graphs of whole steps and of stages") {
    for (const int steps : {0, 1, 4}) {
        for (const bool each_stage : {false, true}) {
            for (const int lanes : {1, 2}) {
                CAPTURE(steps);
                CAPTURE(each_stage);
                CAPTURE(lanes);
                run_two(
                    {.lanes = lanes, .multiprocessors = 8}, {},
                    {.schedule = Schedule::graphed, .steps_per_graph = steps, .graph_each_stage = each_stage},
                    [](auto& pipeline, Share detect, Share heavy) {
                        CHECK(pipeline.graph_counters().replays > 0);
                        CHECK(detect.multiprocessors == 8);
                        CHECK(heavy.multiprocessors == 124);
                    });
            }
        }
    }
}

TEST_CASE("Shares: a stream of the caller's keeps its share in graphs") {
    void* shares[2] = {};
    const int counts[] = {16};
    Sharing::forget_all();
    (void)Sharing::create_shares(counts, 1, true, shares);
    Seen seen[2];
    {
        const BasicStream<Sharing> mine{StreamOptions{.share = shares[0]}};
        for (const bool each_stage : {false, true}) {
            Pipeline pipeline{Stages{Stage{"first",
                                           [&](Ref stream, int) {
                                               seen[0].note(stream);
                                               stream.enqueue([] {});
                                           },
                                           Options{.stream = mine.ref()}},
                                     Stage{"second",
                                           [&](Ref stream, int) {
                                               seen[1].note(stream);
                                               stream.enqueue([] {});
                                           }}},
                              {.schedule = Schedule::graphed, .graph_each_stage = each_stage}};
            for (int batch = 0; batch < 20; ++batch)
                pipeline.submit(0);
            pipeline.finish();
            CHECK(pipeline.graph_counters().replays > 0);
        }
        // Captures of the caller's own, of one cache on streams of different shares.
        GraphCapture<int, Sharing> graphs;
        const BasicStream<Sharing> other{StreamOptions{.share = shares[1]}};
        Seen in_cache[2];
        for (int run = 0; run < 4; ++run) {
            graphs.run(mine, 0, [&](Ref stream) { in_cache[0].note(stream), stream.enqueue([] {}); });
            graphs.run(other, 1, [&](Ref stream) { in_cache[1].note(stream), stream.enqueue([] {}); });
        }
        mine.sync();
        other.sync();
        CHECK(in_cache[0].only().multiprocessors == 16);
        CHECK(in_cache[1].only().multiprocessors == 116);
    }
    CHECK(seen[0].only().multiprocessors == 16);
    CHECK(seen[1].only().multiprocessors == 0);
    Sharing::destroy_share(shares[0]);
    Sharing::destroy_share(shares[1]);
}

TEST_CASE("Shares: captures by hand keep them, and a condition there is refused") {
    Sharing::forget_all();
    void* shares[1] = {};
    const int counts[] = {16};
    (void)Sharing::create_shares(counts, 1, false, shares);
    {
        const BasicStream<Sharing> mine{StreamOptions{.share = shares[0]}};
        Seen seen;
        (void)capture(mine, [&](Ref stream) { seen.note(stream), stream.enqueue([] {}); });
        CHECK(seen.only().multiprocessors == 16);

        BasicCondition<Sharing> again;
        int rounds = 0;
        const auto loop = [&](Ref stream) {
            while_nonzero(stream, again, [&](Ref body) {
                const ConditionSetter setter = again.setter(body);
                body.enqueue([&rounds, setter] { setter.set(++rounds % 3 != 0 ? 1 : 0); });
            });
        };
        loop(mine);
        CHECK(rounds == 3);
        CHECK(contains(text_of([&] { (void)capture(mine, loop); }),
                       "a condition cannot be captured on a share of a device"));
        GraphCapture<int, Sharing> graphs({.on_refusal = nullptr});
        for (int run = 0; run < 4; ++run)
            graphs.run(mine, 0, loop);
        mine.sync();
        CHECK(rounds == 15);
        CHECK(graphs.counters().refusals == 1);
        const BasicStream<Sharing> whole;
        CHECK_NOTHROW((void)capture(whole, loop));
    }
    Sharing::destroy_share(shares[0]);
}

TEST_CASE("Shares: serially there are none, and automatic does not try it then") {
    run_two({.multiprocessors = 8}, {}, {.schedule = Schedule::serial},
            [](auto& pipeline, Share detect, Share heavy) {
                CHECK(detect.multiprocessors + heavy.multiprocessors == 0);
                CHECK(pipeline.multiprocessors(0) + pipeline.multiprocessors(1) == 0);
                CHECK(pipeline.shares().empty());
                CHECK(Sharing::all().empty());
            });
    const auto tries_serial = [](auto& pipeline) {
        bool tried = false;
        for (const ScheduleTrial& trial : pipeline.choice().trials)
            tried = tried || trial.schedule == Schedule::serial;
        return tried;
    };
    run_two({.multiprocessors = 8}, {}, {.schedule = Schedule::automatic},
            [&](auto& pipeline, Share detect, Share heavy) {
                CHECK_FALSE(tries_serial(pipeline));
                CHECK(detect.multiprocessors == 8);
                CHECK(heavy.multiprocessors == 124);
            });
    run_two({}, {}, {.schedule = Schedule::automatic},
            [&](auto& pipeline, Share, Share) { CHECK(tries_serial(pipeline)); });
}

TEST_CASE("Shares: each device is split by itself") {
    if (Host::device_count() < 2)
        return;
    run_two({.multiprocessors = 8}, {.device = 1}, {}, [](auto& pipeline, Share detect, Share heavy) {
        CHECK(detect.multiprocessors == 8);
        CHECK(detect.device == 0);
        CHECK(heavy.multiprocessors == 0); // no stage has asked for a part of that one
        CHECK(pipeline.multiprocessors(1) == 0);
    });
    run_two({.multiprocessors = 8}, {.device = 1, .multiprocessors = 128}, {},
            [](auto& pipeline, Share detect, Share heavy) {
                CHECK(detect.multiprocessors == 8);
                CHECK(detect.device == 0);
                CHECK(heavy.multiprocessors == 128);
                CHECK(heavy.device == 1);
                CHECK(contains(pipeline.shares(),
                               "of device 1, which it shares out in groups of 8, heavy has 128."));
            });
}

TEST_CASE("Shares: what a stage cannot have is refused in one sentence") {
    CHECK(refusal(-3) ==
          "stage 'detect': StageOptions::multiprocessors is -3; expected how many it is to have for "
          "itself, or 0 for none");
    CHECK(refusal(129) ==
          "stage 'detect' asks for 129 multiprocessors of its own, and can have 128: device 0 has 132, "
          "in groups of 8, and those that ask for none need 1");
    CHECK(refusal(2147483647) != "");
    CHECK(refusal(128).empty());
    CHECK(contains(refusal(8, {.device = 99}), "there is no device 99"));
    const BasicStream<Sharing> mine;
    CHECK(refusal(8, {.stream = mine.ref()}) == "stage 'detect': StageOptions::multiprocessors is 8, and its "
                                                "stream is the caller's, which runs where the "
                                                "caller made it");
    CHECK(text_of([] {
              run_two({.multiprocessors = 120}, {.multiprocessors = 9}, {}, [](auto&, Share, Share) {});
          }) == "stage 'heavy' asks for 9 multiprocessors of its own, and can have 8: device 0 has 132, in "
                "groups of 8, "
                "of which other stages have 120");
    CHECK(text_of([] {
              Pipeline pipeline{Stages{Stage{"count", [](int) {}, Options{.multiprocessors = 8}},
                                       Stage{"heavy", [](Ref, int) {}}}};
          }) == "stage 'count': StageOptions::multiprocessors is 8, and a CPU stage runs on none");
}

TEST_CASE("Shares: what was made ends where making a pipeline, or running it, fails") {
    using B = Faulty<Sharing>;
    PipelineOptions options{.schedule = Schedule::graphed};
    options.graphs.on_refusal = nullptr;
    Sharing::forget_all();
    fail_each_call<B>(
        [&] {
            const auto work = [](BasicStreamRef<B> stream, int) { stream.enqueue([] {}); };
            Pipeline pipeline{Stages{Stage{"detect", work, StageOptions<B>{.multiprocessors = 8}},
                                     Stage{"classify", work, StageOptions<B>{.multiprocessors = 16}},
                                     Stage{"heavy", work}},
                              options};
            for (int batch = 0; batch < 8; ++batch)
                pipeline.submit(0);
            pipeline.finish();
        },
        40);
    for (const Share& share : Sharing::all()) {
        CHECK_FALSE(share.alive);
        CHECK_FALSE(share.outlived);
    }
    CHECK(Sharing::all().size() > 100);
}

TEST_CASE("Shares: a report tells them, and what the device could share out") {
    const auto report = [](int asked) {
        Pipeline pipeline{Stages{Stage{"detect", [](Ref stream, int) { stream.enqueue([] {}); },
                                       Options{.multiprocessors = asked}},
                                 Stage{"heavy", [](Ref stream, int) { stream.enqueue([] {}); }}},
                          {.timed_batches = 8}};
        for (int batch = 0; batch < 8; ++batch)
            pipeline.submit(0);
        pipeline.finish();
        const PipelineTimes times = times_of(pipeline);
        CHECK(times.multiprocessors == 132);
        CHECK(times.share_unit == 8);
        CHECK(times.shares == pipeline.shares());
        return report_of(times).sentence;
    };
    CHECK(contains(report(3),
                   ". Of the 132 multiprocessors of device 0, which it shares out in groups of 8, detect has "
                   "8 for the 3 that it asked for and the other stages have 124."));
    CHECK_FALSE(contains(report(0), "multiprocessors"));
}

TEST_CASE("Shares: the Host backend goes without, and refuses what others refuse") {
    Pipeline pipeline{
        Stages{Stage{"detect", [](HostStreamRef, int) {}, StageOptions<Host>{.multiprocessors = 1000}},
               Stage{"heavy", [](HostStreamRef, int) {}}}};
    pipeline.submit(1);
    pipeline.finish();
    CHECK(pipeline.multiprocessors(0) == 0);
    CHECK(pipeline.multiprocessors(1) == 0);
    CHECK(pipeline.shares().empty());
    CHECK(
        contains(text_of([&] { (void)pipeline.multiprocessors(2); }), "the share of stage 2 was asked for"));
    CHECK(contains(refusal<Host>(-1), "StageOptions::multiprocessors is -1; expected how many"));
    const HostStream mine;
    CHECK(contains(refusal<Host>(8, {.stream = mine.ref()}), "its stream is the caller's"));
    CHECK(contains(text_of([] {
                       Pipeline counted{
                           Stages{Stage{"count", [](int) {}, StageOptions<Host>{.multiprocessors = 8}},
                                  Stage{"heavy", [](HostStreamRef, int) {}}}};
                   }),
                   "a CPU stage runs on none"));
}

} // namespace pipeline_shares
