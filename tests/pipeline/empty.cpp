// What is empty, or at its end, says so in one sentence when it is used: holds, iterators, and callables that are kept.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
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

} // namespace pipeline_empty
