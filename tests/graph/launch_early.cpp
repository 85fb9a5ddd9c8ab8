// Kernels that begin while the one before them ends: the same numbers as of kernels that don't.
#include <cstddef>
#include <vector>

#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/branch_ops.hpp"
#include "graph/launch_early_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/gate.hpp"

namespace graph_launch_early {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Values = std::vector<unsigned>;
using Numbers = DeviceBuffer<unsigned, B>;
constexpr std::size_t count =
    70000; // more than a device has threads for at a time, so that blocks follow each other
constexpr KernelDims dims{.grid = (count + 255) / 256, .block = 256};

Values start(unsigned factor) {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = factor * static_cast<unsigned>(i);
    return values;
}
void accumulate(Values& to, const Values& from, unsigned factor) {
    for (std::size_t i = 0; i < count; ++i)
        to[i] = factor * to[i] + from[i];
}

/// A chain of kernels behind a copy, behind each other, behind a fork's events and behind a fill.
struct Work {
    BasicStream<B> stream, side;
    BasicEvent<B> forked, joined;
    Numbers in{count}, one{count}, two{count}, three{count};

    Work() {
        copy_and_wait(stream, in, start(7));
        copy_and_wait(stream, one, start(1));
        copy_and_wait(stream, two, start(2));
        copy_and_wait(stream, three, start(3));
    }
    void launch(Ref s, Numbers& to, const Numbers& from, unsigned short factor) {
        launch_early(s, dims, ops::accumulate(), to.data(), from.data(), factor, count);
        factor = 0; // the launch has a copy
    }
    void enqueue(Ref s) {
        copy(s, one, in);
        launch(s, two, one, 3);
        launch(s, one, two, 5);
        forked.record(s);
        side.wait(forked);
        launch(side, three, one, 9);
        launch(s, two, one, 11);
        joined.record(side);
        s.wait(joined);
        launch(s, two, three, 13);
        fill_bytes(s, one, 0);
        launch(s, one, two, 15);
        launch(s, three, one, 17);
    }
};

struct Expected {
    Values one = start(1), two = start(2), three = start(3);

    void run() {
        one = start(7);
        accumulate(two, one, 3);
        accumulate(one, two, 5);
        accumulate(three, one, 9);
        accumulate(two, one, 11);
        accumulate(two, three, 13);
        one.assign(count, 0);
        accumulate(one, two, 15);
        accumulate(three, one, 17);
    }
    void check(Work& work) {
        const auto same = [&](const Numbers& numbers, const Values& expected) {
            Values found(count);
            copy_and_wait(work.stream, found, numbers);
            return found == expected;
        };
        CHECK(same(work.one, one));
        CHECK(same(work.two, two));
        CHECK(same(work.three, three));
    }
};

} // namespace

TEST_CASE("launch_early: each kernel sees what those before it wrote") {
    Work work;
    Expected expected;
    for (int run = 0; run < 20; ++run) {
        work.enqueue(work.stream);
        expected.run();
    }
    expected.check(work);
}

TEST_CASE("launch_early: the same in a capture, and in each replay") {
    Work work;
    Expected expected;
    GraphCapture<int, B> graph;
    for (int run = 0; run < 20; ++run) {
        graph.run(work.stream, 0, [&](Ref s) { work.enqueue(s); });
        expected.run();
        expected.check(work);
    }
    CHECK(graph.counters().refusals == 0);
    CHECK(graph.counters().replays >= 18);
}

TEST_CASE("launch_early: the body of a loop") {
    Work work;
    Expected expected;
    Numbers rounds(1);
    BasicCondition<B> again;
    GraphCapture<int, B> graph;
    for (int run = 0; run < 4; ++run) {
        graph.run(work.stream, 0, [&](Ref s) {
            fill_bytes(s, rounds, 0);
            while_nonzero(s, again, [&](Ref body) {
                work.launch(body, work.two, work.one, 3);
                work.launch(body, work.one, work.two, 5);
                ops::multiply_add(body.get(), rounds.data(), 1, 1);
                ops::decide_below(body.get(), again.setter(body), rounds.data(), 5);
                work.launch(body, work.two, work.one, 11);
            });
        });
        for (int round = 0; round < 5; ++round) {
            accumulate(expected.two, expected.one, 3);
            accumulate(expected.one, expected.two, 5);
            accumulate(expected.two, expected.one, 11);
        }
        expected.check(work);
    }
    CHECK(graph.counters().refusals == 0);
}

TEST_CASE("launch_early: returns before the kernel has run") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    Numbers to(count), from(count);
    copy_and_wait(stream, from, start(3));
    copy_and_wait(stream, to, start(1));
    launch_early(stream.ref(), dims, ops::accumulate(), to.data(), from.data(), 1, count); // loads the kernel
    copy_and_wait(stream, to, start(1));
    Gate<B> gate;
    gate.hold(stream);
    launch_early(stream.ref(), dims, ops::accumulate(), to.data(), from.data(), 2, count);
    CHECK_FALSE(stream.is_done());
    gate.open();
    Values found(count), expected = start(1);
    accumulate(expected, start(3), 2);
    copy_and_wait(stream, found, to);
    CHECK(found == expected);
}

} // namespace graph_launch_early
