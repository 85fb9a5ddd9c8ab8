// Capturing conditional nodes from host streams, and their bodies.
#include <string>
#include <vector>

#include "backend/host_capture_case.hpp"
#include "backend/host_graph.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_host_capture_conditions {

using namespace sluice;
using namespace sluice::test;

namespace {

// Captures a conditional node over `word`, with a body for each of `bodies`.
template <class... F>
OwnedGraph conditional(const HostStream& stream, unsigned& word, ConditionKind kind, F&&... bodies) {
    return captured(stream, [&] {
        const HostStream side;
        constexpr int count = static_cast<int>(sizeof...(F));
        Host::require_conditions(kind, count);
        host::Graph* graphs[sizeof...(F)] = {};
        const auto condition = Host::create_condition(Host::capturing_graph(stream.get()), &word);
        Host::capture_condition(stream.get(), condition, kind, count, graphs);
        int next = 0;
        const auto capture_body = [&](auto& body) {
            Host::begin_capture_into(side.get(), graphs[next++], CaptureMode::this_thread);
            side.enqueue(body);
            Host::end_capture_into(side.get());
        };
        (capture_body(bodies), ...);
    });
}

} // namespace

TEST_CASE("conditional nodes read their word when they are reached") {
    const HostStream stream;
    unsigned word = 0;
    std::string seen;
    const auto say = [&seen](char letter) { return [&seen, letter] { seen += letter; }; };
    const auto run = [&](const OwnedGraph& graph, const std::vector<unsigned>& values) {
        seen.clear();
        const OwnedExecutable executable = instantiated(graph);
        for (const unsigned value : values) {
            stream.enqueue([&word, value] { word = value; });
            launch(executable, stream);
        }
        stream.sync();
        return seen;
    };
    CHECK(run(conditional(stream, word, ConditionKind::if_nonzero, say('a')), {0, 1, 0, 7}) == "aa");
    CHECK(run(conditional(stream, word, ConditionKind::if_nonzero, say('a'), say('b')), {0, 1, 0}) == "bab");
    CHECK(run(conditional(stream, word, ConditionKind::select, say('a'), say('b'), say('c')), {2, 0, 1, 3}) ==
          "cab");
    const auto count_down = [&] {
        seen += '.';
        --word;
    };
    CHECK(run(conditional(stream, word, ConditionKind::while_nonzero, count_down), {0, 3, 2}) == ".....");
}

TEST_CASE("the nodes around a condition and inside it keep their order") {
    const HostStream stream;
    const HostStream side;
    unsigned outer = 0;
    unsigned inner = 0;
    std::string seen;
    const OwnedGraph graph = captured(stream, [&] {
        const auto within = [](const HostStream& of, const HostStream& body, unsigned& word, auto&& work) {
            host::Graph* bodies[1] = {};
            Host::capture_condition(of.get(), Host::create_condition(Host::capturing_graph(of.get()), &word),
                                    ConditionKind::while_nonzero, 1, bodies);
            Host::begin_capture_into(body.get(), bodies[0], CaptureMode::this_thread);
            work();
            Host::end_capture_into(body.get());
        };
        const HostStream deeper;
        stream.enqueue([&] { outer = 2; });
        within(stream, side, outer, [&] {
            side.enqueue([&] {
                seen += '(';
                inner = outer;
            });
            within(side, deeper, inner, [&] {
                deeper.enqueue([&] {
                    seen += 'i';
                    --inner;
                });
            });
            side.enqueue([&] {
                seen += ')';
                --outer;
            });
        });
        stream.enqueue([&] { seen += '!'; });
    });
    CHECK(Host::node_count(graph.get()) == 3); // bodies do not count
    CHECK(Host::edge_count(graph.get()) == 2);
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    launch(executable, stream);
    stream.sync();
    CHECK(seen == "(ii)(i)!(ii)(i)!");
}

TEST_CASE("graphs with conditions are compared by their bodies too") {
    const HostStream stream;
    unsigned word = 1;
    int number = 0;
    const auto put = [&number](int value) { return [&number, value] { number = value; }; };
    const OwnedExecutable executable =
        instantiated(conditional(stream, word, ConditionKind::if_nonzero, put(1)));
    CHECK(Host::update(executable.get(), conditional(stream, word, ConditionKind::if_nonzero, put(2)).get()));
    CHECK_FALSE(
        Host::update(executable.get(), conditional(stream, word, ConditionKind::select, put(3)).get()));
    CHECK_FALSE(Host::update(executable.get(),
                             conditional(stream, word, ConditionKind::if_nonzero, put(3), put(4)).get()));
    launch(executable, stream);
    stream.sync();
    CHECK(number == 2);
}

TEST_CASE("a body's capture is judged by itself") {
    const HostStream stream;
    const HostStream side;
    const HostStream third;
    HostEvent event;
    unsigned word = 1;
    const auto begin_body = [&] {
        host::Graph* body = nullptr;
        Host::capture_condition(stream.get(),
                                Host::create_condition(Host::capturing_graph(stream.get()), &word),
                                ConditionKind::if_nonzero, 1, &body);
        Host::begin_capture_into(side.get(), body, CaptureMode::this_thread);
    };
    const OwnedGraph graph = captured(stream, [&] {
        begin_body();
        event.record(side);
        third.wait(event);
        third.enqueue([] {});
        CHECK(contains(text_of([&] { Host::end_capture_into(side.get()); }), "not joined"));
        begin_body();
        CHECK_THROWS_AS((void)Host::end_capture(side.get()), Error);
        CHECK_FALSE(Host::is_capturing(side.get()));
    });
    CHECK(Host::node_count(graph.get()) == 2);
    // A body's end is no end of the whole.
    Host::begin_capture(stream.get(), CaptureMode::this_thread);
    CHECK_THROWS_AS(Host::end_capture_into(stream.get()), Error);
    CHECK_FALSE(Host::is_capturing(stream.get()));
    // What disturbs a body disturbs what it is part of.
    CHECK(contains(reason_of(stream,
                             [&] {
                                 begin_body();
                                 CHECK_THROWS_AS((void)Host::allocate_device(8), Error);
                                 CHECK_THROWS_AS(Host::end_capture_into(side.get()), Error);
                             }),
                   "allocate_device"));
}

TEST_CASE("a condition without a value or with bodies that it cannot have is refused") {
    const HostStream stream;
    unsigned word = 0;
    host::Graph* bodies[3] = {};
    const auto add = [&](unsigned* value, ConditionKind kind, int count) {
        return [&, value, kind, count] {
            Host::capture_condition(stream.get(), Host::create_condition(nullptr, value), kind, count,
                                    bodies);
        };
    };
    check_invalidates(stream, add(&word, ConditionKind::while_nonzero, 2), "capture_condition");
    check_invalidates(stream, add(&word, ConditionKind::if_nonzero, 3), "capture_condition");
    check_invalidates(stream, add(&word, ConditionKind::select, 0), "capture_condition");
    check_invalidates(stream, add(nullptr, ConditionKind::select, 1), "capture_condition");
}

} // namespace backend_host_capture_conditions
