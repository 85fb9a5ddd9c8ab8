// Sources and readbacks without a pipeline: memory stays as long as work on its way reads or writes it.
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/readback.hpp>
#include <sluice/pipeline/source.hpp>

#include "support/apart_backend.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/waits.hpp"

namespace pipeline_read_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

// Calls fail as long as they are to.
struct Failing {
    static inline std::atomic<bool> records{false}, waits{false};

    template <class>
    static void before(const char*) {}
    template <class, class Native>
    static void before(const char* function, Native) {
        const std::string_view called = function;
        if (records && called == "record")
            throw Error("no record today");
        if (waits && called == "synchronize_stream")
            throw Error("no patience");
    }
};
using B = Hooked<TestBackend, Failing>;
using Ref = BasicStreamRef<B>;
struct RecordsFail {
    RecordsFail() { Failing::records = true; }
    ~RecordsFail() { Failing::records = false; }
};

PinnedBuffer<Word, B> make_slot(int) { return PinnedBuffer<Word, B>(1); }
void fill_slot(std::size_t index, PinnedBuffer<Word, B>& out) { out[0] = static_cast<Word>(index); }
using TestSource = Source<PinnedBuffer<Word, B>, NoState, decltype(&fill_slot), B>;
SourceOptions<B> options_for(int slots) { return {.workers = 1, .slots = slots, .batches = 20}; }

} // namespace

TEST_CASE("Source: its end waits for reads of the slots that are not held") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> to(1);
    Gate<B> gate;
    std::optional<TestSource> source;
    SourceBatch<PinnedBuffer<Word, B>, B> kept;
    SourceOptions<B> options = options_for(2);
    options.workers = 0; // which would wait for the slot, too
    source.emplace(make_slot, &fill_slot, options);
    {
        const auto first = source->next();
        kept = source->next(); // so that the slots' memory outlives the source
        gate.hold(stream);
        copy(stream, to, *first);
        first.release(stream);
    }
    CHECK(returns_after_opening(gate, [&] { source.reset(); }));
    stream.sync();
}

TEST_CASE("Source: the last handle of a source that has gone waits for the slot's reads") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> to(1);
    Gate<B> gate;
    std::optional<TestSource> source;
    source.emplace(make_slot, &fill_slot, options_for(2));
    auto kept = source->next();
    source.reset();
    gate.hold(stream);
    copy(stream, to, *kept);
    kept.release(stream);
    CHECK(returns_after_opening(gate, [&] { kept.reset(); }));
    stream.sync();
}

TEST_CASE("Source: where no event can be recorded behind a read, release waits for it") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> to(1);
    TestSource source(make_slot, &fill_slot, options_for(1));
    {
        const auto batch = source.next();
        Gate<B> gate;
        gate.hold(stream);
        copy(stream, to, *batch);
        std::string text;
        CHECK(returns_after_opening(gate, [&] {
            const RecordsFail fail;
            text = text_of([&] { batch.release(stream); });
        }));
        CHECK(contains(text, "no record today"));
    }
    CHECK((*source.next())[0] == 1); // and the slot is filled again
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Source: a slot of which it is unknown when it has been read is not filled again, until a rewind "
          "can wait") {
    using A = Hooked<Apart, Failing>; // whose streams may not have been waited for where waiting throws
    const BasicStream<A> stream;
    Source source{[](int) { return 0; }, [](std::size_t index, int& out) { out = static_cast<int>(index); },
                  SourceOptions<A>{.workers = 1, .slots = 1, .batches = 5}};
    {
        const auto batch = source.next();
        Failing::records = Failing::waits = true;
        CHECK(contains(text_of([&] { batch.release(stream); }), "no record today"));
        Failing::records = Failing::waits = false;
    }
    CHECK(contains(text_of([&] { (void)source.next(); }), "no record today"));
    CHECK_FALSE(source.next());
}
#endif

TEST_CASE("Readback: where no event can be recorded behind a copy, the push, or the replay, waits for it") {
    if (!streams_overlap<B>())
        return;
    for (const bool replayed : {false, true}) {
        CAPTURE(replayed);
        const BasicStream<B> stream;
        DeviceBuffer<Word, B> values(1);
        std::vector<Word> results;
        Readback<Word, B> readback(
            1, [&](std::size_t, std::span<const Word> result) { results.push_back(result[0]); }, 2);
        GraphCapture<int, B> graphs({.warmup = 0});
        const auto push = [&] {
            if (replayed)
                (void)graphs.run(stream, 1, [&](Ref s) { readback.push(s, values); });
            else
                readback.push(stream, values);
        };
        fill_bytes(stream, values, 1);
        push();
        readback.finish();
        Gate<B> gate;
        gate.hold(stream);
        std::string text;
        CHECK(returns_after_opening(gate, [&] {
            const RecordsFail fail;
            text = text_of(push);
        }));
        CHECK(contains(text, "no record today"));
        readback.reset();
        push();
        readback.finish();
        CHECK(results == std::vector<Word>{0x01010101, 0x01010101});
    }
}

TEST_CASE("Readback: a graph that goes keeps the memory of its results until its last launch is over") {
    if (!streams_overlap<B>())
        return;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> values(1);
    fill_bytes(stream, values, 1);
    GraphCapture<int, B> graphs({.warmup = 0, .check = false});
    std::optional<Readback<Word, B>> readback(
        std::in_place, 1, [](std::size_t, std::span<const Word>) {}, 2);
    const auto work = [&](Ref s) { readback->push(s, values); };
    (void)graphs.run(stream, 1, work);
    readback.reset(); // whose graph may be launched all the same
    Gate<B> gate;
    gate.hold(stream);
    CHECK(graphs.replay(stream, 1, [] {}));
    CHECK(returns_after_opening(gate, [&] { graphs.clear(); }));
    stream.sync();
}

} // namespace pipeline_read_waits
