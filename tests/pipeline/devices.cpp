// Contract 10: an object belongs to the device that was current when it was made. Needs two devices: on the
// host there are as many as SLUICE_HOST_DEVICES says.
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "pipeline/thrown.hpp"

namespace pipeline_devices {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using On = DeviceGuard<B>;
constexpr std::size_t words = 32;
constexpr std::size_t batches = 5;

bool two_devices() {
    if (B::device_count() >= 2)
        return true;
    MESSAGE("skipped: needs two devices, and there are " << B::device_count());
    return false;
}

PipelineOptions timed(PipelineOptions options, bool graph_each_stage) {
    options.timed_batches = 4;
    options.graph_each_stage = graph_each_stage;
    return options;
}

} // namespace

TEST_CASE("Contract 10: a pipeline is driven with any device current, and leaves it so") {
    if (!two_devices())
        return;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int home : {0, 1}) {
            CAPTURE(home);
            std::set<int> seen;
            std::optional<On> at_home(std::in_place, home);
            const Inputs<B> inputs(batches, words);
            const BasicStream<B> mine;
            Chain<B> chain(3, words, batches);
            chain.before = [&](std::size_t, Ref stream, std::size_t) {
                seen.insert(B::current_device());
                seen.insert(stream.device());
            };
            auto pipeline = chain.pipeline<3>({.schedule = schedule});
            at_home.reset();

            const int away = 1 - home;
            const On guard(away);
            const auto drive = [&](auto call) {
                call();
                CHECK(B::current_device() == away);
            };
            drive([&] { pipeline.wait_for(mine); });
            for (std::size_t batch = 0; batch < batches; ++batch)
                drive([&] { pipeline.submit(inputs[batch]).stays(); });
            drive([&] { pipeline.flush(); });
            drive([&] { pipeline.flush(mine); });
            drive([&] { pipeline.finish(); });
            drive([&] { pipeline.reset(); });
            CHECK(seen == std::set{home});
            CHECK(chain.results(batches) == chain_results(3, words, batches_from(0, batches)));
        }
    }
    CHECK(B::current_device() == 0);
}

TEST_CASE("Contract 10: the caller's device is current again after a stage has thrown") {
    if (!two_devices())
        return;
    std::optional<On> at_home(std::in_place, 1);
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(2, words, batches);
    chain.before = [](std::size_t stage, Ref, std::size_t batch) {
        if (stage == 1 && batch == 1)
            throw std::runtime_error("no");
    };
    auto pipeline = chain.pipeline<2>();
    at_home.reset();
    pipeline.submit(inputs[0]).stays();
    CHECK_THROWS_AS(pipeline.submit(inputs[1]).stays(), Error);
    CHECK(B::current_device() == 0);
    CHECK_THROWS_AS(pipeline.finish(), Error);
    CHECK(B::current_device() == 0);
    pipeline.reset();
    CHECK(B::current_device() == 0);
}

TEST_CASE("Contract 10: slots and streams are made on the device that is current then") {
    if (!two_devices())
        return;
    const On guard(1);
    std::vector<int> made_on;
    Stage first{"first", [](Ref, int, int&) {}};
    Stage last{"last", [](Ref, int&) {}};
    TwoStreamPipeline pipeline{first, last, [&](int slot) {
                                   made_on.push_back(B::current_device());
                                   return slot;
                               }};
    CHECK(made_on == std::vector{1, 1});
    CHECK(pipeline.stream(0).device() == 1);
    CHECK(pipeline.stream(1).device() == 1);
}

TEST_CASE("Contract 10: a source's workers work on its device, and so does the caller when it fills") {
    if (!two_devices())
        return;
    for (const int workers : {0, 1, 3}) {
        std::array<std::atomic<int>, batches> filled_on{};
        std::optional<On> at_home(std::in_place, 1);
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [&](std::size_t index, PinnedBuffer<Word, B>& out) {
                          filled_on[index] = B::current_device();
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = workers, .batches = batches}};
        Chain<B> chain(2, words, batches);
        auto pipeline = chain.pipeline<2>();
        at_home.reset();
        for (auto& batch : source) {
            CHECK(B::current_device() == 0);
            pipeline.submit(batch);
        }
        pipeline.finish();
        for (const auto& device : filled_on)
            CHECK(device.load() == 1);
        CHECK(chain.results(batches) == chain_results(2, words, batches_from(0, batches)));
    }
}

TEST_CASE("Contract 10: an external stream of another device is refused in a sentence") {
    if (!two_devices())
        return;
    std::optional<On> elsewhere(std::in_place, 1);
    const BasicStream<B> theirs;
    elsewhere.reset();
    Chain<B> chain(3, words, batches);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (std::size_t stage = 0; stage < 3; ++stage) {
            std::array<StageOptions<B>, 3> options;
            options[stage].stream = theirs;
            CHECK(
                text_of([&] { auto pipeline = chain.pipeline<3>({.schedule = schedule}, options); }) ==
                std::string("stage '") + Chain<B>::names[stage] +
                    "': the external stream belongs to device 1, the pipeline to device 0; both must be the "
                    "same device's");
            options[stage].device = 0;
            CHECK(
                contains(text_of([&] { auto pipeline = chain.pipeline<3>({.schedule = schedule}, options); }),
                         "the external stream belongs to device 1, the stage to device 0; "));
        }
        const Inputs<B> inputs(batches, words);
        chain.clear();
        auto pipeline = chain.pipeline<3>({.schedule = schedule});
        CHECK(text_of([&] { pipeline.wait_for(theirs); }) ==
              "wait_for: the stream belongs to device 1, the pipeline to device 0; both must be the same "
              "device's");
        for (std::size_t batch = 0; batch < batches; ++batch)
            pipeline.submit(inputs[batch]).stays();
        CHECK(contains(text_of([&] { pipeline.flush(theirs); }), "flush: the stream belongs to device 1"));
        CHECK_FALSE(pipeline.failed());
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(3, words, batches_from(0, batches)));
    }
}

TEST_CASE("Contract 10: a stage's slots are made, and its callable is called, with its own device current") {
    if (!two_devices())
        return;
    struct Left {
        int device;
    };
    struct Right {
        int device;
    };
    for (const int way : {0, 1, 2, 3}) {
        const Schedule schedule = way > 1    ? Schedule::graphed
                                  : way == 1 ? Schedule::overlapped
                                             : Schedule::serial;
        CAPTURE(way);
        const auto expect = [](int device) {
            CHECK(B::current_device() == device);
            return device;
        };
        const auto work = [&](Ref stream, int device) {
            CHECK(stream.device() == device);
            ops::spin(stream.get(), 0);
            expect(device);
        };
        const auto left = [&](Ref stream, int, Left& out) { work(stream, out.device); };
        const auto right = [&](Ref stream, const Left&, Right& out) { work(stream, out.device); };
        const auto last = [&](Ref stream, const Right&) { work(stream, 1); };
        Pipeline pipeline{Stages{Stage{"left", left, StageOptions<B>{.device = 1}}, Stage{"right", right},
                                 Stage{"last", last, StageOptions<B>{.device = 1}}},
                          Slots{[&](int) { return Left{expect(1)}; }, [&](int) { return Right{expect(0)}; }},
                          timed(dag_options(schedule, 2, 0), way == 3)};
        CHECK(pipeline.stream(0).device() == 1);
        CHECK(pipeline.stream(1).device() == 0);
        for (int batch = 0; batch < 40; ++batch) {
            pipeline.submit(batch % 2);
            std::this_thread::sleep_for(std::chrono::milliseconds(1)); // or not all are timed
        }
        pipeline.finish();
        CHECK(B::current_device() == 0);
        CHECK(pipeline.stage_times().size() >= 4); // by events of each stage's device
    }
    const auto make = [&](int device) {
        Pipeline pipeline{Stages{Stage{"only", [](Ref, int) {}, StageOptions<B>{.device = device}}}, Slots{}};
    };
    CHECK(contains(text_of([&] { make(B::device_count()); }), "stage 'only': there is no device"));
    CHECK(contains(text_of([&] { make(-2); }), "stage 'only': there is no device -2"));
}

TEST_CASE("Contract 10: results are read back from any device, under every schedule") {
    if (!two_devices())
        return;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const bool each_stage : {false, true}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(each_stage);
            std::vector<Word> results;
            Readback<Word, B> readback{
                1, [&](std::size_t, std::span<const Word> values) { results.push_back(values[0]); }};
            const auto make = [](int) { return DeviceBuffer<Word, B>(1); };
            Pipeline pipeline{
                Stages{Stage{"first", [](Ref stream, PinnedSpan<const Word, B> in,
                                         DeviceBuffer<Word, B>& out) { copy(stream, out, in); }},
                       Stage{"second",
                             [&](Ref stream, const DeviceBuffer<Word, B>& in) { readback.push(stream, in); },
                             StageOptions<B>{.device = 1}}},
                Slots{make}, PipelineOptions{.schedule = schedule, .graph_each_stage = each_stage}};
            const Inputs<B> inputs(2, words);
            std::vector<Word> expected;
            for (std::size_t batch = 0; batch < 40; ++batch) {
                pipeline.submit(PinnedSpan<const Word, B>(inputs[batch % 2].data(), 1)).stays();
                expected.push_back(inputs[batch % 2].data()[0]);
            }
            pipeline.finish();
            readback.finish();
            CHECK(results == expected);
        }
    }
}

TEST_CASE("Contract 10: a pipeline that ends with batches held for a graph calls its stages with its device "
          "current") {
    if (!two_devices())
        return;
    std::vector<int> called_on;
    {
        std::optional<On> at_home(std::in_place, 1);
        const auto note = [&](Ref stream, int) {
            called_on.push_back(B::current_device());
            ops::spin(stream.get(), 0);
        };
        Pipeline pipeline{Stages{Stage{"only", note}}, Slots{}, dag_options(Schedule::graphed, 2, 8)};
        at_home.reset();
        for (int batch = 0; batch < 3; ++batch)
            pipeline.submit(batch);
        CHECK(called_on.empty()); // held
    }
    CHECK(called_on == std::vector{1, 1, 1});
    CHECK(B::current_device() == 0);
}

TEST_CASE("Contract 10: stages of several devices give the bits of a plain loop, under every schedule") {
    if (!two_devices())
        return;
    constexpr std::size_t count = 60;
    const Inputs<B> inputs(2, words);
    using Diamond = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{1}, DagStage{6, true, false}>;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (unsigned on_second = 1; on_second < 16; ++on_second) {
            for (const int steps : {1, 4}) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(on_second);
                CAPTURE(steps);
                Diamond dag(words);
                for (std::size_t stage = 0; stage < Diamond::stages; ++stage)
                    dag.devices[stage] = (on_second >> stage & 1) != 0 ? 1 : 0;
                dag.lanes[1] = 2;
                auto pipeline = dag.pipeline(dag_options(schedule, 3, steps));
                for (std::size_t batch = 0; batch < count; ++batch) {
                    pipeline.submit(inputs[batch % 2]).stays();
                    if (batch == 7)
                        pipeline.flush();
                }
                pipeline.finish();
                CHECK(dag.memories() == dag.expected(repeating(count, 2)));
                CHECK(pipeline.graph_counters().refusals == 0);
                if (schedule == Schedule::graphed)
                    CHECK(pipeline.graph_counters().replays > 0);
            }
        }
    }
}

} // namespace pipeline_devices
