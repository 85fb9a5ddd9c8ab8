// What is empty, or at its end, says so in one sentence when it is used: holds, iterators, and callables that are kept.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace pipeline_empty {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Options = SourceOptions<B>;
struct Result {
    PinnedBuffer<int, B> value{1};
};
const auto make_result = [](int) { return Result{}; };
const auto use = [](Ref, const int&, Result&) {};
const auto make_number = [](int) { return 0; };
const auto fill_number = [](std::size_t, int&) {};

// What both kinds of empty callables of `Signature` are told when `call` is called with them.
template <class Signature, class Call>
void check_empty(const std::string& what, const Call& call) {
    const std::string words = what + " is empty, or was moved from; expected a function to call";
    CHECK(text_of([&] { call(static_cast<Signature*>(nullptr)); }) == words);
    CHECK(text_of([&] { call(std::function<Signature>()); }) == words);
}

} // namespace

TEST_CASE("empty: a hold of no slot is refused, and may be given up") {
    const SourceHold<B> hold;
    const BasicStream<B> stream;
    const std::string words = "source: a SourceHold that holds no slot was used; look with `if (hold)` first";
    CHECK(text_of([&] { hold.release(stream); }) == words);
    CHECK(text_of([&] { (void)hold.hold_elsewhere(); }) == words);
    CHECK(text_of([&] { (void)hold.index(); }) == words);
    CHECK(text_of([&] { (void)hold.ready_behind(); }) == words);
    CHECK(text_of([&] { (void)hold.slots(); }) == words);
    hold.give_up();
    hold.give_up_on_host();
    CHECK(!hold);
}

TEST_CASE("empty: there is no result behind the last one") {
    Pipeline pipeline{Stages{Stage{"use", use}}, Slots{make_result}};
    std::vector<int> batches{1};
    auto results = pipeline.run(batches);
    auto result = results.begin();
    CHECK(result != results.end());
    CHECK((*result).value.size() == 1);
    for (int times = 0; times < 2; ++times) {
        ++result;
        CHECK(result == results.end());
        CHECK(text_of([&] { (void)*result; }) ==
              "run: there is no result behind the last one; compare the iterator with end() first");
    }
}

TEST_CASE("empty: callables of pipelines") {
    check_empty<Result(int)>("stage 'use': making slot 0 failed: the slot maker", [](auto make) {
        Pipeline pipeline{Stages{Stage{"use", use}}, Slots{make}};
    });
    check_empty<bool()>("run: the stop request", [](auto stop) {
        Pipeline pipeline{Stages{Stage{"use", use}}, Slots{make_result}};
        std::vector<int> batches{1};
        (void)pipeline.run(batches, stop).begin();
    });
    check_empty<void(std::size_t, std::span<const float>)>("readback: the handler", [](auto handler) {
        Readback<float, B> readback{1, handler};
    });
}

TEST_CASE("empty: callables of sources") {
    check_empty<int(int)>("source: make_slot", [](auto make) {
        Source source{make, fill_number, Options{}};
    });
    check_empty<void(std::size_t, int&)>("source: fill", [](auto fill) {
        Source source{make_number, fill, Options{}};
    });
    check_empty<int(int)>("source: make_state", [](auto make) {
        Source source{make_number, make, [](int&, std::size_t, int&) {}, Options{}};
    });
    check_empty<int(const int&, const int&)>("zip: combine", [](auto combine) {
        Source first{make_number, fill_number, Options{}}, second{make_number, fill_number, Options{}};
        auto both = zip(first, second, combine);
    });
}

TEST_CASE("empty: callables of graphs and streams") {
    const HostStream stream;
    BasicGraphBuilder<Host> builder;
    check_empty<void()>("graph builder: the task", [&](auto task) { builder.host(task); });
    const auto node = builder.host([] {});
    auto executable = builder.instantiate();
    check_empty<void()>("graph builder: the task", [&](auto task) { executable.set(node, task); });
    void (*const function)(void*) = nullptr;
    CHECK(
        contains(text_of([&] { builder.host(function, nullptr); }), "graph builder: the function is empty"));
    CHECK(contains(text_of([&] { executable.set(node, function, nullptr); }),
                   "graph builder: the function is empty"));
    check_empty<void()>("enqueue: the callable", [&](auto call) { Host::enqueue(stream.get(), call); });
    void (*const kernel)(int) = nullptr;
    CHECK(
        contains(text_of([&] { launch_early(stream.ref(), {}, kernel, 1); }), "launch: the kernel is empty"));
}

TEST_CASE("empty: callables of captures") {
    const BasicStream<B> stream;
    check_empty<void(Ref)>("capture: the work", [&](auto work) { (void)capture(stream, work); });
    const auto work = [](Ref s) { s.enqueue([] {}); };
    GraphCapture<int, B> graphs;
    check_empty<void(Ref)>("GraphCapture: the work", [&](auto none) { graphs.run(stream, 1, none); });
    check_empty<void(Ref)>("GraphCapture: the work", [&](auto none) { graphs.recapture(stream, 1, none); });
    check_empty<void(Ref)>("GraphCapture: the work",
                           [&](auto none) { graphs.run_or(stream, 1, none, [] {}); });
    check_empty<void()>("GraphCapture: the eager work",
                        [&](auto none) { graphs.run_or(stream, 1, work, none); });
    check_empty<bool()>("GraphCapture: is_warm", [&](auto none) {
        graphs.run_or(
            stream, 1, work, [] {}, none, [] {});
    });
    check_empty<void()>("GraphCapture: before_launch", [&](auto none) {
        graphs.run_or(
            stream, 1, work, [] {}, [] { return false; }, none);
    });
    check_empty<void()>("GraphCapture: before_launch", [&](auto none) { graphs.replay(stream, 1, none); });
    CHECK(graphs.counters().eager.total() == 0);
    CHECK(graphs.run(stream, 1, work).replayed() == false); // usable as before
    stream.sync();
}

TEST_CASE("empty: bodies of branches, loops and steps") {
    const BasicStream<B> stream;
    BasicCondition<B> condition;
    const auto full = [](Ref) {};
    const std::string branch = "if_nonzero, if_else or select: a body", loop = "while_nonzero: a body";
    check_empty<void(Ref)>(branch, [&](auto none) { if_nonzero(stream, condition, none); });
    check_empty<void(Ref)>(branch, [&](auto none) { if_else(stream, condition, full, none); });
    check_empty<void(Ref)>(branch, [&](auto none) { select(stream, condition, none, full); });
    check_empty<void(Ref)>(loop, [&](auto none) { while_nonzero(stream, condition, none); });
    using Builder = BasicGraphBuilder<B>;
    Builder builder;
    check_empty<void(Builder&)>("graph builder: a body",
                                [&](auto none) { builder.if_nonzero(condition, none); });
    check_empty<void(Builder&)>("graph builder: a body",
                                [&](auto none) { builder.while_nonzero(condition, none); });
    PingPong<int, B> pair{1};
    check_empty<void(Ref, DeviceSpan<int, B>, DeviceSpan<int, B>)>(
        "PingPong::iterate: the step", [&](auto none) { pair.iterate(stream, 1, none); });
    check_empty<std::tuple<int>()>("launch_with: the function of the arguments", [&](auto none) {
        if constexpr (std::is_same_v<B, Host>)
            launch_with(
                stream.ref(), {}, +[](int) {}, none);
        else
            detail::require_callable("launch_with: the function of the arguments", none);
    });
    if constexpr (std::is_same_v<B, Host>) {
        void (*const kernel)(int) = nullptr;
        GraphCapture<NoKey, B> graph{{.warmup = 0}};
        CHECK_THROWS_WITH_AS(
            graph.run(stream, [&](Ref s) { launch_with(s, {}, kernel, [] { return std::tuple(1); }); }),
            "launch: the kernel is empty, or was moved from; expected a function to call", Error);
    }
}

TEST_CASE("empty: what is run to compare schedules") {
    check_empty<std::vector<int>(Schedule)>("verify_schedules: what runs the work",
                                            [](auto run) { (void)verify_schedules(run); });
    check_empty<std::vector<int>(Schedule)>("verify_schedules: what runs the work",
                                            [](auto run) { (void)verify_schedules(run, StressRuns{}); });
}

TEST_CASE("empty: a null pointer in the place of a name or a path") {
    const char* const none = nullptr;
    const auto stage = [](Ref, const int&) {};
    for (const std::string& text : {text_of([&] {
                                        Stage{nullptr, stage};
                                    }),
                                    text_of([&] {
                                        Stage{none, stage};
                                    }),
                                    text_of([&] {
                                        Stage{none, stage, StageOptions<B>{.lanes = 2}};
                                    })})
        CHECK(text == "a stage's name is a null pointer; expected a string");
    CHECK(Stage{"", stage}.name().empty());
    const std::string named = "named";
    CHECK(Stage{named, stage}.name() == named);

    const BasicGraphBuilder<B> builder;
    CHECK(text_of([&] { builder.graph().write_dot(none); }) ==
          "write_dot: the path is a null pointer; expected a string");
}

} // namespace pipeline_empty
