// GraphCapture: work with an eager way of its own, and work that is told of each replay.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"

namespace graph_graph_capture_run_or {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::capture_case;

namespace {

/// Writes down what it is told.
class Noting : public detail::ReplayHook<B> {
public:
    Noting(std::string& notes, char name) : notes_(notes), name_(name) {}
    ~Noting() override { notes_ += '~', notes_ += name_; }
    void before_replay(B::NativeGraphExec) override {
        notes_ += '<', notes_ += name_;
        if (throws)
            throw Error("not picked up");
    }
    void after_replay(Ref stream) override {
        notes_ += '>', notes_ += name_;
        launched_on = stream.get();
    }
    void append_own_memory(std::vector<const void*>&) const override {}
    bool throws = false;
    B::NativeStream launched_on{};

private:
    std::string& notes_;
    char name_;
};

/// Leaves a hook where the capture keeps them, if there is such a place.
detail::Shared<Noting> leave_hook(std::string& notes, char name) {
    detail::ReplayHooks<B>* const hooks = detail::replay_hooks<B>();
    if (hooks == nullptr)
        return nullptr;
    const detail::Shared<Noting> hook = detail::make_shared_value<Noting>(notes, name);
    hooks->push_back(hook);
    return hook;
}

} // namespace

TEST_CASE("GraphCapture: run_or enqueues in the caller's way wherever it does not launch a graph") {
    for (const int warmup : {0, 1, 2}) {
        CAPTURE(warmup);
        Steps steps;
        int captured = 0, eager = 0;
        GraphCapture<int, B> graphs{{.warmup = warmup, .check = false}};
        for (int run = 0; run < 6; ++run) {
            const Replay replay = graphs.run_or(
                steps.stream, 0,
                [&](Ref to) {
                    CHECK(capturing());
                    CHECK(to.get() != steps.stream.get());
                    ++captured;
                    steps.enqueue(to);
                },
                [&] {
                    CHECK_FALSE(capturing());
                    ++eager;
                    steps.enqueue(steps.stream);
                });
            CHECK(replay.replayed() == (run >= warmup));
        }
        CHECK(captured == 1);
        CHECK(eager == warmup);
        CHECK(graphs.counters().replays == static_cast<std::uint64_t>(6 - warmup));
        CHECK(steps.values() == Steps::expected(6));
    }
}

TEST_CASE("GraphCapture: run_or makes no stream and records no event for eager runs") {
    Steps steps;
    GraphCapture<int, B> graphs;
    const std::uint64_t streams = B::counts().streams.created;
    for (int key = 0; key < 3; ++key)
        graphs.run_or(steps.stream, key, steps.work(), [&] { steps.enqueue(steps.stream); });
    CHECK(B::counts().streams.created == streams);
    CHECK(steps.values() == Steps::expected(3));
}

TEST_CASE("GraphCapture: run_or after refusals, of both kinds, and what eager throws") {
    Steps steps;
    GraphCapture<int, B> graphs{{.warmup = 0, .on_refusal = nullptr}};
    const auto enqueue = [&] { steps.enqueue(steps.stream); };
    for (int run = 0; run < 3; ++run) {
        CHECK_FALSE(graphs
                        .run_or(
                            steps.stream, 0, [](Ref to) { to.sync(); }, enqueue)
                        .replayed());
        CHECK_FALSE(graphs
                        .run_or(
                            steps.stream, 1,
                            [](Ref) {
                                throw detail::NotCapturable{"known", true};
                            },
                            enqueue)
                        .replayed());
    }
    CHECK(graphs.counters().refusals == 1);
    CHECK(steps.values() == Steps::expected(6));
    CHECK_THROWS_WITH_AS(graphs.run_or(
                             steps.stream, 0, [](Ref) {}, [] { throw std::runtime_error("eager"); }),
                         "eager", std::runtime_error);
    CHECK_THROWS_WITH_AS(graphs.run_or(
                             steps.stream, 2, [](Ref) { throw std::runtime_error("captured"); }, enqueue),
                         "captured", std::runtime_error);
    CHECK(steps.values() == Steps::expected(6));
    CHECK(graphs.run_or(steps.stream, 2, steps.work(), enqueue).replayed());
    CHECK(steps.values() == Steps::expected(7));
}

TEST_CASE("GraphCapture: within another capture run_or's work becomes part of that") {
    Steps steps;
    GraphCapture<NoKey, B> inner, outer{{.warmup = 0}};
    int eager = 0;
    for (int run = 0; run < 3; ++run)
        outer.run(steps.stream, [&](Ref to) { inner.run_or(to, NoKey{}, steps.work(), [&] { ++eager; }); });
    CHECK(eager == 0);
    CHECK(steps.values() == Steps::expected(3));
}

TEST_CASE("GraphCapture: hooks are told of every launch, and go with their graph") {
    Steps steps;
    std::string notes;
    detail::Watched<Noting> left;
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        left = leave_hook(notes, 'a');
        (void)leave_hook(notes, 'b');
    };
    GraphCapture<int, B> graphs{{.capacity = 1, .check = false}};
    graphs.run(steps.stream, 0, work);
    CHECK_FALSE(left.is_there()); // eager: a hook would not be called
    CHECK(notes == "");
    graphs.run(steps.stream, 0, work); // captures
    CHECK(notes == "<a<b>a>b");
    REQUIRE(left.is_there());
    CHECK(left.lock()->launched_on == steps.stream.get());
    CHECK(detail::replay_hooks<B>() == nullptr);
    notes.clear();
    graphs.run(steps.stream, 0, work);
    CHECK(notes == "<a<b>a>b");

    // One that throws before stops the launch.
    left.lock()->throws = true;
    CHECK(text_of([&] { graphs.run(steps.stream, 0, work); }) == "not picked up");
    left.lock()->throws = false;
    CHECK(steps.values() == Steps::expected(3));

    notes.clear();
    graphs.recapture(steps.stream, 0, work);
    CHECK(notes == "~a~b<a<b>a>b");
    notes.clear();
    graphs.run(steps.stream, 1, steps.work());
    CHECK(notes == "");
    graphs.run(steps.stream, 1, steps.work()); // takes the place of key 0
    CHECK(notes == "~a~b");
    graphs.run(steps.stream, 0, work);
    graphs.run(steps.stream, 0, work);
    notes.clear();
    graphs.clear();
    CHECK(notes == "~a~b");
    steps.stream.sync();
}

TEST_CASE("GraphCapture: the hooks of a capture that came to nothing are dropped") {
    Steps steps;
    std::string notes;
    GraphCapture<int, B> graphs{{.warmup = 0, .on_refusal = nullptr}};
    graphs.run(steps.stream, 0, [&](Ref to) {
        (void)leave_hook(notes, 'a');
        to.sync();
    });
    CHECK(notes == "~a");
    CHECK_THROWS(graphs.run(steps.stream, 1, [&](Ref) {
        (void)leave_hook(notes, 'b');
        throw std::runtime_error("no");
    }));
    CHECK(notes == "~a~b");
    CHECK(detail::replay_hooks<B>() == nullptr);
}

TEST_CASE("GraphCapture: a plain capture keeps no hooks, and a nested one takes none of the outer's") {
    Steps steps;
    std::string notes;
    const auto expect_none = [&](Ref to) {
        CHECK(detail::replay_hooks<B>() == nullptr);
        steps.enqueue(to);
    };
    (void)capture(steps.stream, expect_none);
    GraphCapture<NoKey, B> graphs{{.warmup = 0}};
    graphs.run(steps.stream, [&](Ref to) {
        detail::ReplayHooks<B>* const mine = detail::replay_hooks<B>();
        REQUIRE(mine != nullptr);
        if constexpr (std::is_same_v<B, Host>) { // CUDA makes no stream while one is being captured
            const BasicGraph<B> other = capture(to, expect_none);
            CHECK(other.nodes() == 1);
        }
        CHECK(detail::replay_hooks<B>() == mine);
        // Part of this one, so its hooks are this one's.
        GraphCapture<NoKey, B> inner;
        inner.run(to, [&](Ref s) {
            CHECK(detail::replay_hooks<B>() == mine);
            steps.enqueue(s);
            (void)leave_hook(notes, 'i');
        });
    });
    CHECK(notes == "<i>i");
    CHECK(steps.values() == Steps::expected(1));
}

TEST_CASE("GraphCapture: a replay with hooks allocates nothing, and checking leaves none behind") {
    Steps steps;
    std::string notes;
    notes.reserve(4096);
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        (void)leave_hook(notes, 'a');
    };
    GraphCapture<NoKey, B> graphs{{.check = false}};
    for (int run = 0; run < 4; ++run)
        graphs.run(steps.stream, work);
    steps.stream.sync();
    notes.clear();
    const HeapCount heap;
    for (int run = 0; run < 100; ++run)
        graphs.run(steps.stream, work);
    const std::uint64_t allocations = heap.allocations();
    steps.stream.sync();
    if (std::is_same_v<B, Host>)
        CHECK(allocations == 0);
    CHECK(notes.size() == 400);

    notes.clear();
    GraphCapture<NoKey, B> checked{{.warmup = 0, .check = true}};
    checked.run(steps.stream, work);
    checked.run(steps.stream, work);
    CHECK(notes == "<a>a~a<a>a");
    steps.stream.sync();
}

} // namespace graph_graph_capture_run_or
