// Contract 5: a fault of work that is found when more has been enqueued. On the host a task throws.
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/thrown.hpp"

namespace pipeline_late_faults {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Host;
constexpr std::size_t words = 16;
constexpr std::size_t batches = 5;
constexpr int stages = 3;

struct Handed {};

} // namespace

TEST_CASE("Contract 5: a fault that is found late is not blamed on work that came after it") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for (const int slots : {1, 2, 3}) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            for (std::size_t batch = 0; batch < batches; ++batch) {
                CAPTURE(slots);
                CAPTURE(stage);
                CAPTURE(batch);
                chain.clear();
                chain.before = [=](std::size_t at_stage, HostStreamRef stream, std::size_t at_batch) {
                    if (at_stage == stage && at_batch == batch) {
                        stream.enqueue([] {
                            std::this_thread::sleep_for(std::chrono::milliseconds(2));
                            throw std::range_error("bad pixel");
                        });
                    }
                };
                auto pipeline = chain.pipeline<stages>({.slots = slots});
                const Caught error([&] {
                    for (std::size_t number = 0; number < batches; ++number)
                        pipeline.submit(inputs[number]).stays();
                    pipeline.finish();
                });
                REQUIRE(error);
                // Events tell of as many batches as there are slots: of an earlier fault it is said so.
                if (error->stage().empty()) {
                    CHECK(contains(error.text(), "or earlier"));
                    CHECK_FALSE(error->batch());
                } else {
                    CHECK(error->stage() == Chain<B>::names[stage]);
                    CHECK(error->batch() == batch);
                }
                if (batch + 1 == batches && slots > 1)
                    CHECK(error->stage() == Chain<B>::names[stage]);
                chain.before = nullptr;
                pipeline.reset();
            }
        }
    }
}

TEST_CASE("Contract 5: where it is unknown which stage a fault is of, none is named but what tells") {
    const Inputs<B> inputs(2, words); // which come again, so that steps are replayed
    const Slots slots{[](int) { return DeviceBuffer<Word, B>(words); }};
    for (const Schedule schedule : {Schedule::serial, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        std::atomic<int> times{0};
        const auto load = [](HostStreamRef stream, PinnedSpan<const Word, B> in, DeviceBuffer<Word, B>& out) {
            copy(stream, out, in);
        };
        const auto broken = [&times](HostStreamRef stream, const DeviceBuffer<Word, B>&) {
            stream.enqueue([&times] {
                if (++times == 15)
                    throw std::range_error("bad pixel");
            });
        };
        Pipeline pipeline{Stages{Stage{"load", load}, Stage{"broken", broken}}, slots,
                          PipelineOptions{.schedule = schedule}};
        const Caught error([&] {
            for (std::size_t number = 0; number < 20; ++number)
                pipeline.submit(inputs[number % 2]).wait();
            pipeline.finish();
        });
        REQUIRE(error);
        CAPTURE(error.text());
        CHECK((pipeline.graph_counters().replays > 0) == (schedule == Schedule::graphed));
        CHECK(error->stage().empty());
        CHECK(contains(error.text(),
                       "or earlier (PipelineOptions::launch_blocking tells which, and the stage)"));
        CHECK(contains(error.text(), "bad pixel"));
    }
}

TEST_CASE("Contract 5: a fault is told with its batch while another stage is still at work on that batch") {
    const Inputs<B> inputs(1, words);
    std::atomic<bool> told{false};
    std::atomic<bool> open{false};
    // The event of the broken stage comes a while after its fault: its stream waits for this one first.
    const BasicStream<B> other;
    BasicEvent<B> gate;
    other.ref().enqueue([&] { told.wait(false); });
    gate.record(other.ref());
    const BasicStream<B> mine;
    const auto slow = [&](HostStreamRef stream, PinnedSpan<const Word, B>) {
        stream.enqueue([&] { open.wait(false); });
    };
    const auto broken = [&](HostStreamRef stream, PinnedSpan<const Word, B>) {
        stream.enqueue([] { throw std::range_error("bad pixel"); });
        stream.wait(gate);
    };
    Pipeline pipeline{
        Stages{Stage{"slow", slow}, Stage{"broken", broken, StageOptions<B>{.stream = mine.ref()}}},
        PipelineOptions{}};
    const BatchRead read = pipeline.submit(inputs[0]); // it would wait as it goes
    const auto has_failed = [&] {
        try {
            (void)mine.is_done();
            return false;
        } catch (const Error&) {
            return true;
        }
    };
    while (!has_failed())
        std::this_thread::yield();
    // A pipeline waits for all its work when it fails.
    std::thread opens([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        told = true;
        told.notify_all();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        open = true;
        open.notify_all();
    });
    const Caught error([&] { pipeline.submit(inputs[0]).stays(); });
    opens.join();
    REQUIRE(error);
    CHECK(error->stage() == "broken");
    CHECK(error->batch() == 0);
}

TEST_CASE("Contract 5: of the only batch so far it is told that the fault is its") {
    const auto broken = [](HostStreamRef stream, const int&) {
        stream.enqueue([] { throw std::range_error("bad pixel"); });
    };
    const auto other = [](HostStreamRef, const int&) {};
    Pipeline pipeline{Stages{Stage{"broken", broken}, Stage{"other", other}},
                      PipelineOptions{.schedule = Schedule::serial}};
    pipeline.submit(0);
    const Caught error([&] { pipeline.finish(); });
    REQUIRE(error);
    CHECK(std::string(error->what()).starts_with("batch 0 or earlier ("));
}

TEST_CASE("Contract 5: what a host function threw is not told as that of a CPU stage that fails meanwhile") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        std::atomic<bool> thrown{false};
        // Comes first in the list, and fails for the same batch a while after the host function.
        const auto of_cpu = [&](const int&) {
            thrown.wait(false);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            throw std::logic_error("the CPU stage");
        };
        const BasicStream<B> mine;
        const auto of_function = [&](HostStreamRef stream, const int&) {
            stream.enqueue([&] { throw std::range_error("the host function"); });
        };
        PipelineOptions options{.schedule = schedule};
        options.graphs.on_refusal = nullptr;
        Pipeline pipeline{
            Stages{Stage{"cpu", of_cpu},
                   Stage{"function", of_function, StageOptions<B>{.stream = mine.ref(), .graphed = false}}},
            options};
        pipeline.submit(0);
        const auto has_failed = [&] {
            try {
                (void)mine.is_done();
                return false;
            } catch (const Error&) {
                return true;
            }
        };
        while (!has_failed())
            std::this_thread::yield();
        std::thread lets([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // until the pipeline looks
            thrown = true;
            thrown.notify_all();
        });
        const Caught error([&] { pipeline.submit(1); });
        lets.join();
        REQUIRE(error);
        CHECK(error->stage() == "cpu");
        CHECK(error->batch() == 0);
        CHECK(std::string(error->what()).ends_with("the CPU stage"));
    }
}

// Stages that take some time, at random, and pause between batches.
TEST_CASE("Contract 5: a batch and a stage that are named with certainty are those that failed") {
    constexpr std::size_t count = 8;
    std::mt19937 random(11);
    const auto pause = [&] { return std::chrono::microseconds(random() % 4 == 0 ? 0 : random() % 60); };
    for (int round = 0; round < 600; ++round) {
        const Schedule schedule = round % 2 == 0 ? Schedule::overlapped : Schedule::graphed;
        const std::size_t failing_stage = random() % 2, failing = random() % 5;
        std::vector<std::chrono::microseconds> takes(2 * count), between(count);
        for (auto* times : {&takes, &between}) {
            for (auto& time : *times)
                time = pause();
        }
        const auto work = [&](HostStreamRef stream, std::size_t stage, std::size_t batch) {
            stream.enqueue(
                [time = takes[2 * batch + stage], fails = stage == failing_stage && batch == failing] {
                    std::this_thread::sleep_for(time);
                    if (fails)
                        throw std::range_error("bad pixel");
                });
        };
        Stage first{"first",
                    [&](HostStreamRef stream, const std::size_t& batch, Handed&) { work(stream, 0, batch); }};
        Stage second{"second", [&](HostStreamRef stream, const std::size_t& batch, const Handed&) {
                         work(stream, 1, batch);
                     }};
        PipelineOptions options{.schedule = schedule, .slots = 1 + static_cast<int>(random() % 3)};
        options.graphs.on_refusal = nullptr;
        Pipeline pipeline{Stages{first, second}, Slots{[](int) { return Handed{}; }}, options};
        const Caught error([&] {
            for (std::size_t batch = 0; batch < count; ++batch) {
                pipeline.submit(batch);
                std::this_thread::sleep_for(between[batch]);
            }
            pipeline.finish();
        });
        REQUIRE(error);
        CAPTURE(error.text());
        CAPTURE(failing);
        if (error->stage().empty()) {
            CHECK(contains(error.text(), "or earlier"));
            continue;
        }
        CHECK(error->stage() == (failing_stage == 0 ? "first" : "second"));
        if (error->batch())
            CHECK(error->batch() == failing);
    }
}

} // namespace pipeline_late_faults
