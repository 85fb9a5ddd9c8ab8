// Kernels whose arguments change from launch to launch of one captured graph.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/pipeline/pipeline.hpp>

#include "graph/launch_with_ops.hpp"
#include "graph/ping_pong_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/gate.hpp"
#include "support/stream_ops.hpp"

namespace graph_launch_with {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Values = std::vector<unsigned>;
using Numbers = DeviceBuffer<unsigned, B>;
constexpr std::size_t count = 300;
constexpr KernelDims dims{.grid = 3, .block = 128};

Values start() {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<unsigned>(i);
    return values;
}
Values read(const BasicStream<B>& stream, const Numbers& from) {
    Values values(from.size());
    copy_and_wait(stream, values, from);
    return values;
}
void multiply_add(Values& values, unsigned factor, unsigned add) {
    for (unsigned& value : values)
        value = factor * value + add;
}

} // namespace

TEST_CASE("launch_with: each replay has the arguments of its time, and launches in flight keep theirs") {
    for (const bool check : {false, true}) {
        CAPTURE(check);
        const BasicStream<B> stream;
        Numbers one(count), two(count);
        copy_and_wait(stream, one, start());
        Numbers *from = &one, *to = &two;
        unsigned factor = 0, asked = 0;
        GraphCapture<NoKey, B> graph{{.check = check}};
        Values expected = start();
        for (unsigned step = 0; step < 300; ++step) {       // more than wait for a host stream
            factor = step % 7 == 3 ? factor : 2 * step + 1; // also the same ones twice
            graph.run(stream.ref(), [&](Ref s) {
                launch_with(s, dims, ops::multiply_add(), [&] {
                    ++asked;
                    return std::tuple(to->data(), from->data(), factor, 5, count); // an int for a short
                });
            });
            multiply_add(expected, factor, 5);
            std::swap(from, to);
        }
        CHECK(read(stream, *from) == expected);
        CHECK(graph.counters().captures == 1);
        CHECK(graph.counters().replays == 299);
        CHECK(graph.counters().refusals == 0);
        CHECK(asked == 300);
    }
}

TEST_CASE("launch_with: several in one graph are asked in their order, once a launch") {
    const BasicStream<B> stream;
    Numbers values(count);
    copy_and_wait(stream, values, start());
    std::string asked;
    unsigned add = 0;
    GraphCapture<NoKey, B> graph;
    Values expected = start();
    for (int run = 0; run < 5; ++run) {
        graph.run(stream.ref(), [&](Ref s) {
            for (const char name : {'a', 'b', 'c'}) {
                launch_with(s, dims, ops::multiply_add(), [&, name] {
                    asked += name;
                    return std::tuple(values.data(), values.data(), 3, ++add, values.size());
                });
            }
        });
        for (unsigned i = 0; i < 3; ++i)
            multiply_add(expected, 3, static_cast<unsigned>(3 * run) + i + 1);
    }
    CHECK(asked == "abcabcabcabcabc");
    CHECK(read(stream, values) == expected);
}

TEST_CASE("launch_with: in a graph that takes another one's place") {
    const BasicStream<B> stream;
    Numbers values(count);
    copy_and_wait(stream, values, start());
    unsigned add = 0;
    GraphOptions options;
    options.capacity = 1;
    options.on_refusal = nullptr; // that there is no place for both
    GraphCapture<int, B> graphs{options};
    Values expected = start();
    const auto run = [&](int key, bool anew) {
        const auto work = [&, key](Ref s) {
            launch_with(s, dims, ops::multiply_add(), [&, key] {
                return std::tuple(values.data(), values.data(), 2 * key + 1, ++add, count);
            });
        };
        if (anew)
            graphs.recapture(stream.ref(), key, work);
        else
            graphs.run(stream.ref(), key, work);
        multiply_add(expected, static_cast<unsigned>(2 * key + 1), add);
    };
    for (int i = 0; i < 40; ++i)
        run(i / 4 % 2, i % 8 == 7);
    CHECK(graphs.counters().evictions > 0);
    CHECK(graphs.counters().replays > 20);
    CHECK(read(stream, values) == expected);
}

TEST_CASE("launch_with: in a pipeline's stage, under every schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 3}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(steps);
            struct Sums {
                Numbers all{count};
            };
            const BasicStream<B> stream;
            Numbers result(count);
            copy_and_wait(stream, result, start());
            unsigned launched = 0;
            Stage first{"first", [&](Ref s, const int&, Sums& out) { fill_bytes(s, out.all, 0); }};
            // The batch is the same each time, and the number another.
            Stage second{"second", [&](Ref s, const Sums&) {
                             launch_with(s, dims, ops::multiply_add(), [&] {
                                 return std::tuple(result.data(), result.data(), 3, launched++, count);
                             });
                         }};
            Pipeline pipeline{Stages{first, second}, Slots{[](int) { return Sums{}; }},
                              PipelineOptions{.schedule = schedule, .steps_per_graph = steps}};
            for (int batch = 0; batch < 20; ++batch)
                pipeline.submit(7);
            pipeline.finish();
            Values expected = start();
            for (unsigned batch = 0; batch < 20; ++batch)
                multiply_add(expected, 3, batch);
            CHECK(read(stream, result) == expected);
            CHECK(launched == 20);
            if (schedule == Schedule::graphed)
                CHECK(pipeline.graph_counters().replays > 0);
        }
    }
}

TEST_CASE("launch_with: what the arguments throw comes out of the launch, which has not been made") {
    const BasicStream<B> stream;
    Numbers values(count);
    copy_and_wait(stream, values, start());
    bool throws = false;
    GraphCapture<NoKey, B> graph;
    const auto run = [&] {
        graph.run(stream.ref(), [&](Ref s) {
            launch_with(s, dims, ops::multiply_add(), [&] {
                if (throws)
                    throw std::out_of_range("no position");
                return std::tuple(values.data(), values.data(), 1, 1, count);
            });
        });
    };
    for (int i = 0; i < 3; ++i)
        run();
    throws = true;
    CHECK_THROWS_WITH_AS(run(), "no position", std::out_of_range);
    throws = false;
    run();
    Values expected = start();
    for (int i = 0; i < 4; ++i)
        multiply_add(expected, 1, 1);
    CHECK(read(stream, values) == expected);
}

#if !defined(SLUICE_TEST_CUDA)
namespace {

/// Numbers that a graph of one kernel multiplies by 3 in each run, and to which it adds what `add` is then.
struct Repeated {
    const BasicStream<B> stream;
    Numbers values{count};
    Values expected = start();
    unsigned add = 0;
    GraphCapture<NoKey, B> graph;

    Repeated() { copy_and_wait(stream, values, start()); }
    void run() {
        graph.run(stream.ref(), [this](Ref s) {
            launch_with(s, dims, ops::multiply_add(),
                        [this] { return std::tuple(values.data(), values.data(), 3, add, count); });
        });
    }
    /// Each run adds one more.
    void run(int times) {
        for (int i = 0; i < times; ++i) {
            ++add;
            run();
            multiply_add(expected, 3, add);
        }
    }
    bool is_right() const { return read(stream, values) == expected; }
};

} // namespace

TEST_CASE("launch_with: more launches than may wait for a host stream wait themselves") {
    Repeated work;
    work.run(2);
    ops::spin(work.stream.get(), 50'000);
    work.run(400);
    CHECK(work.is_right());
}

TEST_CASE("launch_with: launches do not wait for those before") {
    if (!streams_overlap<B>())
        return;
    Gate<B> gate;
    Repeated work;
    work.run(2);
    gate.hold(work.stream);
    work.run(100);
    gate.open();
    CHECK(work.is_right());
}

TEST_CASE("launch_with: launches that a failed stream has left out leave nothing behind") {
    Repeated work;
    work.run(3);
    work.stream.enqueue([] { throw std::runtime_error("as asked"); });
    for (int i = 0; i < 5; ++i) {
        work.add = 77;
        work.run();
    }
    CHECK_THROWS(work.stream.sync());
    B::clear_failure(work.stream.get());
    work.add = 3;
    work.run(3);
    CHECK(work.is_right());
}
#endif

TEST_CASE("launch_with: where the arguments are not asked for it is refused, and runs eagerly") {
    const BasicStream<B> stream;
    Numbers values(count);
    copy_and_wait(stream, values, start());
    unsigned add = 0;
    const auto work = [&](Ref s) {
        launch_with(s, dims, ops::multiply_add(),
                    [&] { return std::tuple(values.data(), values.data(), 1, ++add, count); });
    };
    CHECK(contains(text_of([&] { (void)capture(stream, work); }),
                   "launch_with: a launch's arguments are not asked for"));

    static std::string reason;
    reason.clear();
    GraphOptions options;
    options.on_refusal = [](const char* text) { reason += text; };
    GraphCapture<NoKey, B> graph{options};
    BasicCondition<B> again;
    DeviceBuffer<unsigned, B> left(1);
    PingPong<unsigned, B> unused(1);
    Values expected = start();
    for (unsigned run = 0; run < 3; ++run) {
        copy_and_wait(stream, left, Values{2});
        graph.run(stream.ref(), [&](Ref s) {
            while_nonzero(s, again, [&](Ref body) {
                work(body);
                ops::count_down(body.get(), again.setter(body), left.data(), unused.view(), false);
            });
        });
        for (unsigned i = 1; i <= 2; ++i)
            multiply_add(expected, 1, 2 * run + i);
    }
    CHECK(contains(reason, "launch_with: a launch's arguments are not asked for"));
    CHECK(graph.counters().replays == 0);
    CHECK(read(stream, values) == expected);
}

} // namespace graph_launch_with
