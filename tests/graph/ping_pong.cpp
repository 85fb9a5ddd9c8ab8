// Two buffers that change places on the device, eagerly, replayed and in loops.
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/graph/ping_pong.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/ping_pong_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_ping_pong {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Pair = PingPong<unsigned, B>;
using Values = std::vector<unsigned>;
constexpr std::size_t count = 300;

Values start() {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<unsigned>(i * 31 + 7);
    return values;
}
Values relaxed(Values values, int steps) {
    for (int step = 0; step < steps; ++step) {
        Values next(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            next[i] = ops::relaxed(values.data(), i, values.size());
        values.swap(next);
    }
    return values;
}
Values read(const BasicStream<B>& stream, DeviceSpan<unsigned, B> from) {
    Values values(from.size());
    copy_and_wait(stream, values, from);
    return values;
}

} // namespace

static_assert(std::is_trivially_copyable_v<PingPongView<float>>);

TEST_CASE("a swap holds for the work that is enqueued after it") {
    const BasicStream<B> stream;
    Pair x(count);
    CHECK(x.size() == count);
    CHECK(x.view().size() == count);
    CHECK(x.front_and_wait(stream).data() == x.first().data());
    copy_and_wait(stream, x.first(), start());
    for (int step = 1; step <= 5; ++step) {
        ops::relax(stream.get(), x.view());
        x.swap(stream);
        const DeviceSpan<unsigned, B> front = x.front_and_wait(stream);
        CHECK(front.data() == (step % 2 == 0 ? x.first() : x.second()).data());
        CHECK(read(stream, front) == relaxed(start(), step));
    }
    x.reset(stream);
    CHECK(x.front_and_wait(stream).data() == x.first().data());
    CHECK(read(stream, x.first()) == relaxed(start(), 4));
}

TEST_CASE("a captured iteration may be replayed any number of times") {
    const BasicStream<B> stream;
    Pair x(count);
    copy_and_wait(stream, x.first(), start());
    GraphCapture<NoKey, B> graphs;
    for (int step = 1; step <= 9; ++step) {
        graphs.run(stream, [&](Ref s) {
            ops::relax(s.get(), x.view());
            x.swap(s);
        });
        if (step % 4 == 1)
            CHECK(read(stream, x.front_and_wait(stream)) == relaxed(start(), step));
    }
    CHECK(graphs.counters().captures == 1);
    CHECK(graphs.counters().refusals == 0);
    CHECK(read(stream, x.front_and_wait(stream)) == relaxed(start(), 9));
}

TEST_CASE("plain pointers: any number of steps, eagerly, replayed and looping on the device") {
    const BasicStream<B> stream;
    for (const int steps : {0, 1, 2, 5}) {
        CAPTURE(steps);
        Pair x(count);
        const auto iterate = [&](Ref s) {
            x.iterate(s, steps, [](Ref on, DeviceSpan<unsigned, B> from, DeviceSpan<unsigned, B> to) {
                ops::relax(on.get(), from.data(), to.data(), from.size());
            });
        };
        copy_and_wait(stream, x.first(), start());
        GraphCapture<NoKey, B> graphs;
        for (int run = 1; run <= 5; ++run) {
            graphs.run(stream, iterate);
            CHECK(x.front_and_wait(stream).data() == x.first().data());
            CHECK(read(stream, x.first()) == relaxed(start(), run * steps));
        }
        CHECK(graphs.counters().captures == 1);
        CHECK(graphs.counters().refusals == 0);

        BasicCondition<B> again;
        DeviceBuffer<unsigned, B> left(1);
        copy_and_wait(stream, x.first(), start());
        copy_and_wait(stream, left, Values{3});
        const BasicGraphExec<B> executable(capture(stream, [&](Ref s) {
            while_nonzero(s, again, [&](Ref body) {
                iterate(body);
                ops::count_down(body.get(), again.setter(body), left.data(), x.view(), false);
            });
        }));
        executable.launch(stream);
        CHECK(read(stream, x.first()) == relaxed(start(), 3 * steps));
    }
    Pair x(count);
    copy_and_wait(stream, x.first(), start());
    copy_and_wait(stream, x.second(), start());
    for (const int steps : {0, 1, 2, 5}) {
        int called = 0;
        x.iterate(stream, steps, [&](auto...) { ++called; });
        CHECK(called == steps);
    }
    stream.sync();
    CHECK(text_of([&] { x.iterate(stream, -1, [](auto...) {}); }) ==
          "PingPong::iterate: -1 steps were asked for; expected 0 or more");
}

TEST_CASE("iterations loop on the device, swapping by copies or in a kernel") {
    const BasicStream<B> stream;
    BasicCondition<B> again;
    DeviceBuffer<unsigned, B> steps(1);
    for (const bool in_kernel : {false, true}) {
        CAPTURE(in_kernel);
        Pair x(count);
        const auto work = [&](Ref s) {
            x.reset(s);
            while_nonzero(s, again, [&](Ref body) {
                ops::relax(body.get(), x.view());
                if (!in_kernel)
                    x.swap(body);
                ops::count_down(body.get(), again.setter(body), steps.data(), x.view(), in_kernel);
            });
        };
        const auto check = [&](unsigned iterations, auto&& run) {
            CAPTURE(iterations);
            copy_and_wait(stream, x.first(), start());
            copy_and_wait(stream, steps, Values{iterations});
            run();
            CHECK(read(stream, x.front_and_wait(stream)) == relaxed(start(), static_cast<int>(iterations)));
        };
        check(2, [&] { work(stream); }); // loads the kernels, too
        const BasicGraphExec<B> executable(capture(stream, work));
        for (const unsigned iterations : {1u, 4u, 7u}) {
            check(iterations, [&] { work(stream); });
            check(iterations, [&] { executable.launch(stream); });
        }
    }
}

TEST_CASE("a ping-pong pair of the caller's buffers, moved about") {
    const BasicStream<B> stream;
    DeviceBuffer<unsigned, B> one(count), two(count);
    Pair x(one, two);
    copy_and_wait(stream, one, start());
    const PingPongView<unsigned> view = x.view();
    Pair moved(std::move(x));
    x = std::move(moved);
    ops::relax(stream.get(), view);
    x.swap(stream);
    CHECK(x.front_and_wait(stream).data() == two.data());
    CHECK(read(stream, two) == relaxed(start(), 1));
    CHECK(contains(text_of([&] { moved.swap(stream); }), "moved from"));
    CHECK(contains(text_of([&] { (void)moved.front_and_wait(stream); }), "moved from"));
    bool called = false;
    CHECK(
        contains(text_of([&] { moved.iterate(stream, 1, [&](auto...) { called = true; }); }), "moved from"));
    CHECK_FALSE(called);
}

TEST_CASE("a ping-pong pair refuses what makes no sense") {
    const BasicStream<B> stream;
    DeviceBuffer<unsigned, B> one(4), two(5);
    CHECK(contains(text_of([] { Pair x(0); }), "at least 1; got 0 and 0"));
    CHECK(contains(text_of([&] { Pair x(one, two); }), "got 4 and 5"));
    CHECK(contains(text_of([&] { Pair x(one, one); }), "at the same place"));
    CHECK(contains(text_of([&] { Pair x(two.first(4), two.last(4)); }), "which overlap"));
    Pair x(1);
    CHECK(contains(text_of([&] { (void)capture(stream, [&](Ref s) { (void)x.front_and_wait(s); }); }),
                   "ask after a launch"));
}

} // namespace graph_ping_pong
