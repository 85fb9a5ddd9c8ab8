// GraphCapture: which keys have a graph, where there are more of them than places.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/graph/graph_capture.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_graph_capture_cache {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::capture_case;

namespace {

std::string told;
int told_times = 0;
void listen(const char* reason) {
    told = reason;
    ++told_times;
}
GraphOptions listening(GraphOptions options) {
    told.clear();
    told_times = 0;
    options.on_refusal = &listen;
    return options;
}

/// Runs the work of keys, and counts.
struct Keys {
    explicit Keys(const GraphOptions& options) : graphs(listening(options)) {}
    bool run(int key) {
        ++runs;
        return graphs.run(steps.stream, key, steps.work()).replayed();
    }
    // As work that has run before under another key.
    bool run_warm(int key) {
        ++runs;
        return graphs
            .run_or(
                steps.stream, key, steps.work(), [&] { steps.enqueue(steps.stream); }, [] { return true; },
                [] {})
            .replayed();
    }
    void check_values() { CHECK(steps.values() == Steps::expected(runs)); }

    Steps steps;
    int runs = 0;
    GraphCapture<int, B> graphs;
};

} // namespace

TEST_CASE("GraphCapture: of one key more than there are places, the others keep their graphs") {
    Keys keys({.capacity = 16});
    for (int run = 0; run < 340; ++run) {
        keys.run(run % 17);
        CHECK(told_times == (run < 33 ? 0 : 1)); // when the last key comes again
    }
    const GraphCounters& counters = keys.graphs.counters();
    CHECK(counters.captures == 16);
    CHECK(counters.instantiations == 16);
    CHECK(counters.evictions == 0);
    CHECK(counters.replays == 16 * 19); // 94 % of those after the first lap
    CHECK(counters.eager.first_runs == 17);
    CHECK(counters.eager.no_place == 19);
    CHECK(counters.eager.total() + counters.replays == 340);
    CHECK(told_times == 1);
    CHECK(contains(told, "places for graphs, which are 16 (GraphOptions::capacity)"));
    CHECK(keys.graphs.size() == 16);
    keys.check_values();
}

TEST_CASE(
    "GraphCapture: more keys in turns than are remembered are new each time, and the capacity is named") {
    for (const int in_turns : {32, 33}) {
        CAPTURE(in_turns);
        Keys keys({.capacity = 16});
        int replayed = 0;
        for (int run = 0; run < 10 * in_turns; ++run)
            replayed += keys.run(run % in_turns) ? 1 : 0;
        CHECK((replayed > 0) == (in_turns == 32));
        CHECK(told_times == 1);
        CHECK(contains(told,
                       in_turns == 32
                           ? "places for graphs, which are 16 (GraphOptions::capacity)"
                           : "more than 32 keys come in turns, for which GraphOptions::capacity is too low"));
        keys.check_values();
    }
}

TEST_CASE("GraphCapture: keys that are in use replace those that no longer are") {
    Keys keys({.capacity = 4});
    for (int run = 0; run < 40; ++run)
        keys.run(run % 4);
    CHECK(keys.graphs.counters().replays == 36);
    for (int run = 0; run < 40; ++run)
        keys.run(10 + run % 4);
    CHECK(keys.graphs.counters().replays == 72);
    CHECK(keys.graphs.counters().evictions == 4);
    CHECK(keys.graphs.counters().updates == 4);
    CHECK(keys.graphs.size() == 4);
    CHECK(told_times == 0);
    keys.check_values();
}

TEST_CASE("GraphCapture: a key that comes again has a graph again, however many came only once before") {
    for (const bool warm : {false, true}) {
        for (const int places : {1, 16, 64, 256}) {
            CAPTURE(warm);
            CAPTURE(places);
            Keys keys({.capacity = static_cast<std::size_t>(places)});
            const auto run = [&](int key) { return warm ? keys.run_warm(key) : keys.run(key); };
            for (int key = 0; key < 200; ++key)
                run(key);
            CHECK(keys.graphs.counters().captures <= 64 + 200 / 64);
            int replayed = 0;
            for (int time = 0; time < 1000; ++time)
                replayed += run(1000) ? 1 : 0;
            CHECK(replayed >= 1000 - 65);
            CHECK(contains(told, "keys do not come again"));
            CHECK(contains(told, "a number, a time or an address"));
            CHECK(told_times == 1);
            keys.check_values();
        }
    }
}

TEST_CASE(
    "GraphCapture: of keys that came once, as many are captured as are allowed, and one more in 64 runs") {
    for (const std::size_t allowed : {1u, 2u, 5u}) {
        CAPTURE(allowed);
        Keys keys({.capacity = 100, .give_up_after = allowed});
        const auto captures_until = [&](int runs) {
            while (keys.runs < runs)
                keys.run_warm(keys.runs);
            return keys.graphs.counters().captures;
        };
        CHECK(captures_until(64) == allowed);
        CHECK(captures_until(65) == allowed + 1);
        CHECK(captures_until(128) == allowed + 1);
        CHECK(captures_until(129) == allowed + 2);
        keys.check_values();
    }
}

TEST_CASE("GraphCapture: where keys come too rarely for their graphs to pay, few are made") {
    for (const bool warm : {false, true}) {
        CAPTURE(warm);
        Keys keys({.capacity = 64});
        std::mt19937 random(7);
        for (int run = 0; run < 6400; ++run) {
            const int key = static_cast<int>(random() % 192);
            warm ? keys.run_warm(key) : keys.run(key);
        }
        // Those that fill the places, and of the others as many as are allowed at first, and one in 64 runs.
        CHECK(keys.graphs.counters().captures <= 64 + 64 + 100);
        CHECK(keys.graphs.counters().replays > 1500);
        keys.check_values();
    }
}

TEST_CASE("GraphCapture: a replay begins the count of keys that came once anew, and so does clear") {
    const auto keys_until_told = [](Keys& keys, int from) {
        int key = from;
        while (told_times == 0 && key < from + 300)
            keys.run_warm(key++);
        return key - from;
    };
    Keys fresh({.capacity = 4, .give_up_after = 8});
    const int allowed = keys_until_told(fresh, 1000);
    CHECK(contains(told, "the last 8"));
    for (const int between : {1, 5, 7}) {
        CAPTURE(between);
        Keys replayed({.capacity = 4, .give_up_after = 8});
        for (int key = 0; key < between; ++key)
            replayed.run_warm(key);
        CHECK(replayed.run_warm(between - 1)); // it is there
        CHECK(keys_until_told(replayed, 1000) == allowed);
        CHECK(contains(told, "the last 8"));
        GraphOptions unchecked{.capacity = 4, .give_up_after = 8};
        unchecked.check = false;
        Keys alone(unchecked);
        for (int key = 0; key < between; ++key)
            alone.run_warm(key);
        CHECK(alone.graphs.replay(alone.steps.stream.ref(), 0, [] {}));
        CHECK(keys_until_told(alone, 1000) == allowed);
        Keys cleared({.capacity = 4, .give_up_after = 8});
        for (int key = 0; key < between; ++key)
            cleared.run_warm(key);
        cleared.graphs.clear();
        CHECK(keys_until_told(cleared, 1000) == allowed);
    }
}

TEST_CASE("GraphCapture: work that clears its own cache ends first, run, captured, compared or replayed") {
    for (int clearing = 0; clearing < 5; ++clearing) {
        CAPTURE(clearing);
        Steps steps;
        GraphCapture<int, B> graphs{GraphOptions{.check = true}};
        for (int run = 0; run < 5; ++run) {
            const Replay replay = graphs.run_or(
                steps.stream, 0,
                [&](Ref stream) {
                    steps.enqueue(stream);
                    if (run == clearing)
                        graphs.clear();
                },
                [&] {
                    steps.enqueue(steps.stream);
                    if (run == clearing)
                        graphs.clear();
                },
                [] { return false; },
                [&] {
                    if (run == clearing)
                        graphs.clear();
                });
            CHECK(replay.replayed() == (run > 0 && run != clearing + 1));
            CHECK(graphs.size() == (run > 0 && run != clearing && run != clearing + 1 ? 1 : 0));
        }
        CHECK(steps.values() == Steps::expected(5));
    }
}

TEST_CASE("GraphCapture: without a limit each key is captured as soon as it may be") {
    Keys keys({.capacity = 200, .give_up_after = 0});
    for (int run = 0; run < 300; ++run)
        keys.run_warm(run % 150);
    CHECK(keys.graphs.counters().captures == 150);
    CHECK(keys.graphs.counters().replays == 300);
    CHECK(keys.graphs.settled());
    CHECK(told_times == 0);
    keys.check_values();
}

TEST_CASE("GraphCapture: each run that is no launch is counted under its reason") {
    Keys keys({.capacity = 1, .warmup = 2});
    for (int run = 0; run < 3; ++run)
        CHECK(keys.run(0) == (run == 2));
    for (int run = 0; run < 3; ++run) {
        keys.graphs.run(keys.steps.stream, 1, [&](Ref to) {
            keys.steps.enqueue(to);
            to.sync();
        });
        ++keys.runs;
    }
    const EagerRuns& eager = keys.graphs.counters().eager;
    CHECK(eager.first_runs == 4);
    CHECK(eager.refused == 1);
    CHECK(eager.total() == 5);
    CHECK(keys.graphs.counters().refusals == 1);
    CHECK(keys.run(0)); // a capture that is refused evicts no other
    keys.check_values();
}

TEST_CASE("GraphCapture: counters add up, each its own") {
    std::uint64_t bit = 1;
    GraphCounters one;
    for (std::uint64_t* const number :
         {&one.captures, &one.instantiations, &one.updates, &one.replays, &one.evictions, &one.refusals,
          &one.comparisons, &one.changes, &one.later_changes, &one.eager.first_runs, &one.eager.no_place,
          &one.eager.refused, &one.eager.changed_slots, &one.eager.untold, &one.eager.ends,
          &one.eager.opted_out, &one.eager.blocking}) {
        *number = bit;
        bit *= 2;
    }
    CHECK(one.eager.total() == 0x1fe00); // the last eight
    GraphCounters sum = one;
    sum += one;
    sum += one;
    CHECK(sum.captures == 3 * one.captures);
    CHECK(sum.instantiations == 3 * one.instantiations);
    CHECK(sum.updates == 3 * one.updates);
    CHECK(sum.replays == 3 * one.replays);
    CHECK(sum.evictions == 3 * one.evictions);
    CHECK(sum.refusals == 3 * one.refusals);
    CHECK(sum.comparisons == 3 * one.comparisons);
    CHECK(sum.changes == 3 * one.changes);
    CHECK(sum.later_changes == 3 * one.later_changes);
    CHECK(sum.eager.first_runs == 3 * one.eager.first_runs);
    CHECK(sum.eager.no_place == 3 * one.eager.no_place);
    CHECK(sum.eager.refused == 3 * one.eager.refused);
    CHECK(sum.eager.changed_slots == 3 * one.eager.changed_slots);
    CHECK(sum.eager.untold == 3 * one.eager.untold);
    CHECK(sum.eager.ends == 3 * one.eager.ends);
    CHECK(sum.eager.opted_out == 3 * one.eager.opted_out);
    CHECK(sum.eager.blocking == 3 * one.eager.blocking);
}

TEST_CASE("GraphCapture: what keys that are forgotten leave behind does not count for others") {
    Keys keys({.capacity = 1, .warmup = 0});
    for (int key = 0; key < 40; ++key) {
        keys.graphs.run(keys.steps.stream, key, [&](Ref to) {
            keys.steps.enqueue(to);
            to.sync();
        });
        ++keys.runs;
    }
    CHECK(keys.graphs.counters().refusals == 40);
    for (int key = 40; key < 60; ++key)
        CHECK(keys.run(key) == (key == 40)); // then there is no room
    CHECK(keys.run(59));
    CHECK(keys.graphs.refusal(59).empty());
    CHECK_FALSE(keys.run(40)); // whose graph has made way
    CHECK(keys.graphs.counters().evictions == 1);
    keys.check_values();
}

TEST_CASE("GraphCapture: a key in the place of another one is warmed up and compared as any") {
    Keys keys({.capacity = 1, .warmup = 2, .check = false, .comparisons = 1});
    int compared = 0;
    for (int key = 0; key < 60; ++key) {
        for (int run = 0; run < 6; ++run) {
            CAPTURE(key);
            CAPTURE(run);
            CHECK(keys.run(key) == (run >= 2));
        }
        CHECK(keys.graphs.counters().comparisons == static_cast<std::uint64_t>(++compared));
    }
    // Again, after its graph has made way.
    CHECK_FALSE(keys.run(58));
    CHECK(keys.run(58));
    CHECK(keys.run(58));
    CHECK(keys.graphs.counters().comparisons == static_cast<std::uint64_t>(compared + 1));
    keys.check_values();
}

TEST_CASE("GraphCapture: a capture that is refused has called the work, which is called again to run") {
    Keys keys({.warmup = 1});
    int calls = 0;
    for (int run = 0; run < 10; ++run) {
        keys.graphs.run(keys.steps.stream, 0, [&](Ref to) {
            calls += 1;
            keys.steps.enqueue(to);
            to.sync();
        });
        ++keys.runs;
    }
    CHECK(calls == 11);
    keys.check_values();
}

TEST_CASE("GraphCapture: a reason that holds for many keys is told once, and counted for each") {
    Keys keys({.warmup = 0});
    for (int run = 0; run < 20; ++run) {
        keys.graphs.run(keys.steps.stream, run % 10, [&](Ref to) {
            keys.steps.enqueue(to);
            to.sync();
        });
        ++keys.runs;
    }
    CHECK(keys.graphs.counters().refusals == 10);
    CHECK(keys.graphs.counters().eager.refused == 20);
    CHECK(told_times == 1);
    keys.graphs.run(keys.steps.stream, 100, [](Ref) {});
    CHECK(told_times == 2);
    CHECK(contains(told, "nothing was captured"));
    keys.check_values();
}

TEST_CASE("GraphCapture: while a stream waits for the thread of a CPU stage no graph is made") {
    static std::atomic<std::uint32_t> counter{0};
    static constexpr detail::SemaphoreWaits::Calls calls{
        [](void*) -> std::uint32_t { return counter.load(); }, [](void*, std::uint32_t) {}};
    auto& waits = detail::SemaphoreWaits::instance();
    Keys keys({});
    waits.add({&counter, 1, nullptr, true, &calls, true});
    for (int run = 0; run < 4; ++run)
        CHECK_FALSE(keys.run(1));
    CHECK(keys.graphs.counters().captures == 0);
    CHECK(keys.graphs.counters().eager.first_runs == 4);
    counter = 1;
    CHECK(keys.run(1));

    CHECK_FALSE(keys.run(2));
    waits.add({&counter, 2, nullptr, true, &calls, true});
    std::thread signaller([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        counter = 2;
    });
    CHECK(keys.run(2)); // It has waited.
    signaller.join();
    CHECK(keys.graphs.counters().captures == 2);
    waits.forget(&counter);
    keys.check_values();
}

} // namespace graph_graph_capture_cache
