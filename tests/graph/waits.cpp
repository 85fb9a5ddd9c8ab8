// What graphs wait for: nothing that work on its way uses goes, or changes, before the work is over.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/graph.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/no_records.hpp"
#include "support/waits.hpp"

namespace graph_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Hooked<TestBackend, NoRecords>;
using Ref = BasicStreamRef<B>;

} // namespace

TEST_CASE("GraphCapture: an eager run comes after the caller's earlier work, and before the later one") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    DeviceBuffer<int, B> to(1);
    GraphCapture<int, B> graphs;
    {
        Gate<B> gate;
        gate.hold(stream);
        CHECK(returns_after_opening(gate, [&] {
            (void)graphs.run(stream, 1, [&](Ref side) { fill_bytes(side, to, 1); });
            graphs.finish(); // the side stream's
        }));
    }
    Gate<B> gate;
    CHECK(returns_after_opening(gate, [&] {
        (void)graphs.run(stream, 2, [&](Ref side) {
            gate.hold(side);
            fill_bytes(side, to, 2);
        });
        stream.sync();
    }));
}

TEST_CASE("GraphCapture: what a run enqueued before it threw comes before the caller's later work") {
    if (!streams_overlap<B>())
        return;
    for (const bool records_fail : {false, true}) {
        CAPTURE(records_fail);
        const BasicStream<B> stream;
        GraphCapture<int, B> graphs;
        Gate<B> gate;
        std::string text;
        const auto run = [&] {
            text = text_of([&] {
                graphs.run(stream, 1, [&](Ref side) {
                    gate.hold(side);
                    NoRecords::fail = records_fail;
                    throw Error("the work has enough");
                });
            });
            NoRecords::fail = false;
        };
        // By an event, or, where there can be none, on the calling thread.
        CHECK(returns_after_opening(gate, [&] {
            run();
            if (!records_fail)
                stream.sync();
        }));
        CHECK(contains(text, "the work has enough"));
        stream.sync();
    }
}

TEST_CASE(
    "GraphCapture: a key whose graph has made way is still known, and so whether its last run is current") {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> from(2);
    DeviceBuffer<int, B> to(2);
    GraphCapture<int, B> graphs({.capacity = 1, .warmup = 1});
    const auto work = [&](std::size_t place) {
        return [&, place](Ref s) { copy(s, to.span().subspan(place, 1), from.span().subspan(place, 1)); };
    };
    (void)graphs.run(stream, 0, work(0));
    const Replay replayed = graphs.run(stream, 0, work(0));
    CHECK(replayed.replayed());
    CHECK(replayed.is_current());
    const Replay other = graphs.run(stream, 1, work(1));
    CHECK_FALSE(other.replayed());
    CHECK(graphs.graph(0) != nullptr);
    CHECK(graphs.graph(1) == nullptr);
    const Replay captured = graphs.run(stream, 1, work(1)); // in the place of the first
    CHECK(captured.replayed());
    CHECK(graphs.graph(0) == nullptr);
    CHECK(replayed.is_current());
    CHECK_FALSE(graphs.run(stream, 0, work(0)).replayed());
    CHECK(
        contains(text_of([&] { replayed.require_current(); }), "overwritten by a later run of the same key"));
    CHECK(captured.is_current());
    CHECK_FALSE(other.is_current());
    CHECK(graphs.graph(1)->nodes() == 1);
    stream.sync();
}

TEST_CASE("DeviceScalar: slots are neither written nor freed while a value leaves from them") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> held;
    DeviceBuffer<int, B> seen(2);
    const auto look = [&](std::size_t place, const DeviceScalar<int, B>& scalar) {
        copy(held, seen.span().subspan(place, 1), scalar.span());
    };
    const auto values = [&] {
        std::vector<int> result(2);
        copy_and_wait(held, result, seen);
        return result;
    };
    {
        Gate<B> gate;
        DeviceScalar<int, B> scalar(1, 1);
        gate.hold(held);
        scalar.set(held, 5);
        look(0, scalar);
        CHECK(returns_after_opening(gate, [&] { scalar.set(held, 6); }));
        look(1, scalar);
        CHECK(values() == std::vector{5, 6});
    }
    {
        Gate<B> gate;
        std::optional<DeviceScalar<int, B>> scalar(std::in_place, 1);
        gate.hold(held);
        scalar->set(held, 7);
        CHECK(returns_after_opening(gate, [&] { scalar.reset(); }));
    }
    {
        Gate<B> gate;
        DeviceScalar<int, B> scalar(1), other(2);
        gate.hold(held);
        scalar.set(held, 8);
        CHECK(returns_after_opening(gate, [&] { scalar = std::move(other); }));
        CHECK(scalar.value_and_wait(held) == 2);
    }
    {
        Gate<B> gate;
        DeviceScalar<int, B> scalar(1);
        gate.hold(held);
        std::string text;
        CHECK(returns_after_opening(gate, [&] {
            const RecordsFail fail;
            text = text_of([&] { scalar.set(held, 9); });
        }));
        CHECK(contains(text, "no record today"));
        scalar.set(held, 10);
        CHECK(scalar.value_and_wait(held) == 10);
    }
}

TEST_CASE("DeviceScalar, PingPong: what the constructor has set is there when it returns") {
    using N = Noting<TestBackend>;
    CallNotes::clear();
    const DeviceScalar<int, N> scalar(3);
    CHECK(CallNotes::after("copy", "synchronize_stream"));
    const BasicStream<N> stream;
    CHECK(scalar.value_and_wait(stream) == 3);
    CallNotes::clear();
    const PingPong<int, N> pair(4);
    CHECK(CallNotes::after("copy", "synchronize_stream"));
    CHECK(pair.front_and_wait(stream).data() == pair.first().data());
    CallNotes::clear();
    std::vector<int> one(1);
    copy_and_wait(stream, one, scalar.span());
    CHECK(CallNotes::after("copy", "synchronize_stream"));
    CHECK(one[0] == 3);
}

TEST_CASE("GraphBuilder: an executable that goes keeps its tasks until launches under way have called them") {
    using N = Host;
    const auto called = std::make_shared<std::atomic<int>>(0);
    const std::weak_ptr<std::atomic<int>> watch = called;
    const BasicStream<N> stream;
    std::optional<BasicBuiltGraphExec<N>> executable;
    {
        BasicGraphBuilder<N> builder;
        builder.host([kept = called] { ++*kept; });
        executable.emplace(builder.instantiate());
    }
    const Latch latch;
    stream.enqueue([latch] { latch.pass(); });
    executable->launch(stream);
    std::atomic<bool> opened{false};
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        opened = true;
        latch.open();
    });
    executable.reset();
    CHECK(opened);
    CHECK(*called == 1);
    CHECK(watch.use_count() == 1); // and the task has gone with it
    opener.join();
    stream.sync();
}

TEST_CASE("GraphCapture: a fault of an eager run is told by the next one that is no replay, and by finish") {
    using H = Host;
    const BasicStream<H> stream;
    GraphCapture<int, H> graphs;
    const auto fails = [](BasicStreamRef<H> side) {
        side.enqueue([] { throw std::range_error("bad pixel"); });
    };
    std::atomic<int> calls{0};
    const auto works = [&](BasicStreamRef<H> side) { side.enqueue([&] { ++calls; }); };
    for (const bool finish : {false, true}) {
        CAPTURE(finish);
        (void)graphs.run(stream, finish ? 1 : 2, fails);
        REQUIRE(eventually([&] { return stream.get()->failure() != nullptr; }));
        const int before = calls;
        const std::string text = text_of([&] {
            if (finish)
                graphs.finish();
            else
                (void)graphs.run(stream, 3, works);
        });
        CHECK(contains(text, "bad pixel"));
        CHECK(calls == before);
        graphs.clear_failure();
        H::clear_failure(stream.get());
        CHECK_NOTHROW(graphs.finish());
        (void)graphs.run(stream, finish ? 4 : 5, works);
        graphs.finish();
        stream.sync();
        CHECK(calls == before + 1);
    }
}

#if !defined(SLUICE_TEST_CUDA)
namespace {

// One function fails, from a certain call on.
struct Failing {
    static inline std::string_view function;
    static inline int left = 0; // calls before it fails

    static void arm(std::string_view name, int after = 0) {
        function = name;
        left = after;
    }
    template <class>
    static void before(const char* called) {
        if (function == called && left-- <= 0)
            throw Error(std::string("no ") + called + " today");
    }
    template <class Any, class Native>
    static void before(const char* called, Native) {
        before<Any>(called);
    }
};

std::vector<std::string>& told() {
    static std::vector<std::string> reasons;
    return reasons;
}

} // namespace

TEST_CASE("GraphCapture: where a graph cannot be made, or compared, the key runs eagerly and says why") {
    using F = Hooked<Host, Failing>;
    struct Case {
        const char* function;
        int comparisons;
        bool changes; // the work, after it was captured
    };
    for (const Case& now :
         {Case{"instantiate", 0, false}, Case{"begin_capture", 0, false}, Case{"end_capture", 0, false},
          Case{"begin_capture", 3, false}, Case{"end_capture", 3, false}, Case{"instantiate", 3, true}}) {
        CAPTURE(now.function);
        CAPTURE(now.comparisons);
        told().clear();
        const BasicStream<F> stream;
        int value = 0;
        GraphCapture<int, F> graphs({.check = false,
                                     .comparisons = now.comparisons,
                                     .on_refusal = [](const char* reason) { told().emplace_back(reason); }});
        bool more = false;
        const auto work = [&](BasicStreamRef<F> s) {
            s.enqueue([&value] { ++value; });
            if (more)
                s.enqueue([&value] { value += 100; });
        };
        (void)graphs.run(stream, 1, work);
        if (now.comparisons > 0) {
            CHECK(graphs.run(stream, 1, work).replayed());
            more = now.changes;
        }
        const int before = now.comparisons > 0 ? 2 : 1;
        const int each = now.changes ? 101 : 1;
        Failing::arm(now.function);
        CHECK_FALSE(graphs.run(stream, 1, work).replayed());
        Failing::arm("");
        REQUIRE(told().size() == 1);
        CHECK(contains(told()[0], std::string("no ") + now.function + " today"));
        CHECK(contains(graphs.refusal(1), std::string("no ") + now.function + " today"));
        CHECK(graphs.graph(1) == nullptr);
        CHECK_FALSE(graphs.run(stream, 1, work).replayed()); // and is not tried again
        graphs.finish();
        stream.sync();
        CHECK(value == before + 2 * each);
        CHECK(told().size() == 1);
    }
}
#endif

} // namespace graph_waits
