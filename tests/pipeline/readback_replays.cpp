// Results of replays: pushes that were captured.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <sluice/backend/checked.hpp>

#include "pipeline/readback_case.hpp"
#include "support/alive.hpp"
#include "support/gate.hpp"
#include "support/waits.hpp"

namespace pipeline_readback_replays {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::readback_case;

namespace {

// A captured executable whose replays tell the hooks, as GraphCapture's do.
template <Backend Any>
class Replayable {
public:
    template <class Work>
    Replayable(const BasicStream<Any>& stream, Work&& work) {
        const auto graph = capture(stream, [&](BasicStreamRef<Any> s) {
            hooks_.clear(); // of an attempt before
            auto& place = detail::replay_hooks<Any>();
            struct Scope {
                detail::ReplayHooks<Any>*& place;
                ~Scope() { place = nullptr; }
            } const scope{place};
            place = &hooks_;
            work(s);
        });
        executable_.emplace(graph);
    }
    void launch(BasicStreamRef<Any> stream) {
        for (const auto& hook : hooks_)
            hook->before_replay(executable_->get());
        executable_->launch(stream);
        for (const auto& hook : hooks_)
            hook->after_replay(stream);
    }
    std::size_t hooks() const { return hooks_.size(); }

private:
    detail::ReplayHooks<Any> hooks_;
    std::optional<BasicGraphExec<Any>> executable_;
};

// A number on the device that each replay raises, and pushes.
template <Backend Any>
class Counter {
public:
    explicit Counter(BasicStreamRef<Any> stream) : stream_(stream), value_(words), one_(words) {
        fill_bytes(stream, value_, 0);
        set(0);
    }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter() {
        try {
            stream_.sync();
        } catch (...) {
        }
    }
    void set(Word value) {
        fill_bytes(stream_, one_, 0);
        ops::add_racing(stream_.get(), value_.data(), one_.data(), value, words);
    }
    // value += 1, without the host's knowing what it was.
    void raise_and_push(BasicStreamRef<Any> stream, Readback<Word, Any>& readback) {
        ops::add_racing(stream.get(), value_.data(), value_.data(), 1, words);
        readback.push(stream, value_);
    }

private:
    BasicStreamRef<Any> stream_;
    DeviceBuffer<Word, Any> value_, one_;
};

} // namespace

TEST_CASE("Readback: replays push, in the order of the launches among the others, each once") {
    for (const int slots : {1, 2, 16}) {
        for (const int pushes : {1, 3}) {
            CAPTURE(slots);
            CAPTURE(pushes);
            if (slots == 1 && pushes == 3)
                continue;
            Delay::set({.one_in = 0});
            const BasicStream<B> stream;
            Notes notes;
            Counter<B> counter(stream);
            Readback<Word, B> readback(words, notes.handler(), slots);
            const auto work = [&](BasicStreamRef<B> s) {
                for (int i = 0; i < pushes; ++i)
                    counter.raise_and_push(s, readback);
            };
            Replayable<B> one(stream, work), other(stream, work);
            CHECK(one.hooks() == 1);
            CHECK(readback.pushed() == 0);
            Word expected = 0;
            for (int round = 0; round < 40; ++round) {
                switch (round % 5) {
                case 0:
                case 1:
                    one.launch(stream);
                    break;
                case 2:
                    other.launch(stream);
                    break;
                case 3:
                    work(stream);
                    break;
                default:
                    one.launch(stream);
                    readback.poll();
                }
                expected += static_cast<Word>(pushes);
                CHECK(readback.pushed() == expected);
                if (round == 25)
                    readback.finish();
            }
            readback.finish();
            std::vector<Word> all;
            for (Word value = 1; value <= expected; ++value)
                all.push_back(value);
            CHECK(notes.values == all);
        }
    }
}

TEST_CASE("Readback: a graph that is evicted with results under way loses none, nor one that outlives the "
          "readback") {
    Delay::set({.one_in = 0});
    const Alive before = alive_now<B>();
    {
        const BasicStream<B> stream;
        Counter<B> counter(stream);
        std::optional<Replayable<B>> late;
        {
            Notes notes;
            Readback<Word, B> readback(words, notes.handler(), 2);
            const auto work = [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); };
            {
                Replayable<B> evicted(stream, work);
                ops::spin(stream.get(), 3000);
                evicted.launch(stream);
            }
            Replayable<B> next(stream, work);
            next.launch(stream);
            readback.finish();
            CHECK(notes.values == std::vector<Word>{1, 2});
            // Places that went with their graphs come back: far more captures than there are places.
            for (int i = 0; i < 200; ++i) {
                Replayable<B> another(stream, work);
                another.launch(stream);
                readback.finish();
            }
            CHECK(notes.values.size() == 202);
            late.emplace(stream, work);
            ops::spin(stream.get(), 3000);
            late->launch(stream);
        }
        late->launch(stream);
        late->launch(stream);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE(
    "Readback: reset waits for the results that replays have under way, since their places serve again") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Counter<B> counter(stream);
    Gate<B> gate;
    Notes notes;
    Readback<Word, B> readback(words, notes.handler(), 2);
    Replayable<B> work(stream, [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); });
    work.launch(stream);
    readback.finish();
    gate.hold(stream);
    work.launch(stream);
    CHECK(returns_after_opening(gate, [&] { readback.reset(); }));
    notes.values.clear();
    work.launch(stream);
    readback.finish();
    CHECK(notes.values == std::vector<Word>{3});
}

TEST_CASE("Readback: reset drops what replays have pushed, and they go on") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Counter<B> counter(stream);
    Readback<Word, B> readback(words, notes.handler(), 2);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); });
    graph.launch(stream);
    readback.reset();
    CHECK(readback.pushed() == 0);
    graph.launch(stream);
    graph.launch(stream);
    readback.finish();
    CHECK(notes.values == std::vector<Word>{2, 3});
}

TEST_CASE("Readback: a handler that throws before a replay loses no result, and the replay is not made") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<Word> seen;
    Counter<B> counter(stream);
    Readback<Word, B> readback(
        words,
        [&](auto, std::span<const Word> values) {
            seen.push_back(values[0]);
            if (values[0] == 1)
                throw std::domain_error("loss is not a number");
        },
        2);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) { counter.raise_and_push(s, readback); });
    graph.launch(stream);
    stream.sync();
    CHECK_THROWS_AS(graph.launch(stream), std::domain_error);
    CHECK(readback.pushed() == 1);
    graph.launch(stream);
    readback.finish();
    CHECK(seen == std::vector<Word>{1, 2});
}

TEST_CASE("Readback: a captured push whose length the device knows") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    std::vector<std::size_t> sizes;
    Readback<Word, B> readback(
        words, [&](auto, std::span<const Word> values) { sizes.push_back(values.size()); }, 2);
    DeviceBuffer<Word, B> values(words);
    fill_bytes(stream, values, 0);
    DeviceBuffer<std::int64_t, B> length(1);
    PinnedBuffer<std::int64_t, B> from(1);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) {
        copy(s, length, from);
        readback.push(s, values, length);
    });
    for (const std::int64_t size : {5, 0, 8}) {
        from[0] = size;
        graph.launch(stream);
        stream.sync(); // before `from` changes
    }
    readback.finish();
    CHECK(sizes == std::vector<std::size_t>{5, 0, 8});
}

TEST_CASE("Readback: more captured pushes than there is pinned memory for are refused in a sentence") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    constexpr std::size_t large = 1 << 16;
    DeviceBuffer<Word, B> values(large);
    fill_bytes(stream, values, 0);
    std::size_t handed = 0;
    Readback<Word, B> readback(
        large, [&](auto, auto) { ++handed; }, 2);
    const auto work = [&](int pushes) {
        return [&, pushes](BasicStreamRef<B> s) {
            for (int i = 0; i < pushes; ++i)
                readback.push(s, values);
        };
    };
    CHECK(contains(text_of([&] { Replayable<B>(stream, work(3)); }),
                   "no pinned memory is left for a captured push"));
    for (int graph = 0; graph < 2; ++graph) {
        work(2)(stream); // an eager run makes room for the next capture
        Replayable<B> captured(stream, work(2));
        captured.launch(stream);
        readback.finish();
    }
    CHECK(handed == 8);
}

TEST_CASE("Readback: 16 results of up to 64 KiB have a place for each launch") {
    if (is_checked<TestBackend>)
        return;
    using Places = detail::ReadbackPlaces<TestBackend>;
    CHECK(Places(4032, 16).depth() == 16); // and 64 bytes for its length
    CHECK(Places(4033, 16).depth() == 1);
    CHECK(Places(4033, 15).depth() == 8);
    CHECK(Places(4, 31).depth() == 16);
    CHECK(Places(4, 1).depth() == 1);
}

TEST_CASE("Readback: a copy's bytes that 32 bits do not hold are not taken for few") {
    using Places = detail::ReadbackPlaces<TestBackend>;
    const detail::ReadbackPlace place;
    CHECK(Places::copy_to(place, nullptr, 12, nullptr).bytes == 12);
    constexpr std::size_t most = 0xFFFFFFFF;
    for (const std::size_t bytes : {most - 1, most})
        CHECK(Places::copy_to(place, nullptr, bytes, nullptr).bytes == bytes);
    for (const std::size_t bytes : {most + 1, most + 13, 2 * most + 1})
        CHECK(Places::copy_to(place, nullptr, bytes, nullptr).bytes == most);
}

TEST_CASE("Readback: submit does not wait for the results of replays, as long as there are places") {
    // A checked graph waits for the results of its last launch: the checker knows fixed addresses.
    if (is_checked<TestBackend> || !streams_overlap<TestBackend>())
        return;
    Delay::set({.one_in = 0});
    for (const int steps : {1, 2}) {
        CAPTURE(steps);
        const BasicStream<B> stream;
        Notes notes;
        Counter<B> counter(stream);
        stream.sync();
        PinnedBuffer<Word, B> gate(1);
        gate[0] = 1;
        Readback<Word, B> losses(words, notes.handler());
        Stage load{"load", [&](BasicStreamRef<B> s, const int&, DeviceBuffer<Word, B>& out) {
                       fill_bytes(s, out, 0);
                   }};
        Stage train{"train", [&](BasicStreamRef<B> s, const DeviceBuffer<Word, B>&) {
                        ops::hold(s.get(), gate.data());
                        counter.raise_and_push(s, losses);
                    }};
        TwoStreamPipeline pipeline{load, train, [](int) { return DeviceBuffer<Word, B>(words); },
                                   PipelineOptions{.schedule = Schedule::graphed, .steps_per_graph = steps}};
        constexpr int warm = 24;
        constexpr int held = 12; // of 16 places
        for (int batch = 0; batch < warm; ++batch)
            pipeline.submit(0);
        pipeline.flush();
        losses.finish();
        REQUIRE(notes.values.size() == warm);
        const auto replays = pipeline.graph_counters().replays;
        gate[0] = 0;
        for (int batch = 0; batch < held; ++batch)
            pipeline.submit(0);
        CHECK(pipeline.graph_counters().replays > replays);
        losses.poll();
        CHECK(notes.values.size() == warm); // they were not waited for
        std::atomic_ref<Word>(gate[0]).store(1);
        pipeline.finish();
        losses.finish();
        std::vector<Word> all;
        for (Word value = 1; value <= warm + held; ++value)
            all.push_back(value);
        CHECK(notes.values == all);
    }
}

TEST_CASE("Readback: a graph whose launches all wait goes on where its copies are, also after a fault and a "
          "reset") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Counter<B> counter(stream);
    Readback<Word, B> readback(words, notes.handler(), 4);
    Replayable<B> graph(stream, [&](BasicStreamRef<B> s) {
        counter.raise_and_push(s, readback);
        counter.raise_and_push(s, readback);
    });
    for (int launch = 0; launch < 3; ++launch)
        graph.launch(stream);
    readback.finish();
    REQUIRE(notes.values == std::vector<Word>{1, 2, 3, 4, 5, 6});
    notes = {};
    [&](auto on) {
        if constexpr (std::is_same_v<decltype(on), BasicStreamRef<Host>>) {
            // Launches that a failed stream skips copy nothing.
            on.enqueue([] { throw Error("as asked"); });
            for (int launch = 0; launch < 2; ++launch)
                (void)text_of([&] { graph.launch(stream); }); // The second one may meet the fault.
            readback.reset();
            Host::clear_failure(on.get());
        } else {
            notes.first_index = 6; // nothing has been reset
        }
    }(BasicStreamRef<TestBackend>(stream.get()));
    for (int launch = 0; launch < 9; ++launch)
        graph.launch(stream);
    readback.finish();
    std::vector<Word> all;
    for (Word value = 7; value <= 24; ++value)
        all.push_back(value);
    CHECK(notes.values == all);
}

} // namespace pipeline_readback_replays
