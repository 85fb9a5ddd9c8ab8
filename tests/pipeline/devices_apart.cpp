// Contract 10 for sources, readbacks, threads, and calls that fail. Needs two devices: on the host there are as many as
// SLUICE_HOST_DEVICES says.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/thrown.hpp"
#include "support/apart_backend.hpp"
#include "support/hooked_backend.hpp"

namespace pipeline_devices_apart {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using On = DeviceGuard<B>;

bool two_devices() {
    if (B::device_count() >= 2)
        return true;
    MESSAGE("skipped: needs two devices, and there are " << B::device_count());
    return false;
}

// Makes one function fail.
struct Failing {
    static inline std::string_view function;

    template <class>
    static void before(const char* called) {
        if (function == called)
            throw Error(std::string("no ") + called + " today");
    }
    template <class Any, class Native>
    static void before(const char* called, Native) {
        before<Any>(called);
    }
};

// Tells of calls without a stream.
template <class Note>
struct NoteCalls {
    template <class>
    static void before(const char* function) {
        Note::note(function);
    }
    template <class, class Native>
    static void before(const char*, Native) {}
};
template <class Note>
using PinnedOn = Hooked<B, NoteCalls<Note>>;

} // namespace

TEST_CASE("Contract 5: a call that fails as it waits, or orders streams, leaves the pipeline failed, and "
          "reset mends it") {
    if (!two_devices())
        return;
    using N = Hooked<B, Failing>;
    struct Half {
        DeviceBuffer<Word, N> words{1};
    };
    struct Out {
        PinnedBuffer<Word, N> words{1};
    };
    PinnedBuffer<Word, N> batch(1);
    batch[0] = 7;
    const BasicStream<N> mine, other;
    Pipeline pipeline{Stages{Stage{"first",
                                   [](BasicStreamRef<N> stream, const PinnedBuffer<Word, N>& in, Half& out) {
                                       copy(stream, out.words, in);
                                   },
                                   StageOptions<N>{.stream = mine}},
                             Stage{"last", [](BasicStreamRef<N> stream, const Half& in,
                                              Out& out) { copy(stream, out.words, in.words); }}},
                      Slots{[](int) { return Half{}; }, [](int) { return Out{}; }}};
    const auto fails = [&](std::string_view function, auto call) {
        const Caught error([&] {
            Failing::function = function;
            call();
        });
        Failing::function = {};
        REQUIRE(error);
        CHECK(contains(error.text(), "no " + std::string(function) + " today"));
        CHECK(pipeline.failed());
        CHECK(contains(text_of([&] { pipeline.finish(); }), "needs a reset()"));
        pipeline.reset();
    };
    pipeline.submit(batch).wait();
    fails("record", [&] { pipeline.flush(); });
    pipeline.submit(batch).wait();
    fails("record", [&] { pipeline.flush(other); });
    pipeline.submit(batch).wait();
    fails("synchronize_stream", [&] { pipeline.finish(); });
    BatchRead read = pipeline.submit(batch);
    fails("synchronize_event", [&] { read.wait(); });
    const std::span<const PinnedBuffer<Word, N>> batches(&batch, 1);
    fails("synchronize_event", [&] { (void)pipeline.run(batches).begin(); });
    Failing::function = "synchronize_stream";
    const std::string lost = text_of([&] { pipeline.reset(); });
    Failing::function = {};
    CHECK(contains(lost, "reset: the device is lost"));
    pipeline.reset();
    // A handle that goes and cannot even begin to wait: the next call says so.
    {
        const BatchRead goes = pipeline.submit(batch);
        Failing::function = "current_device";
    }
    Failing::function = {};
    const Caught error([&] { pipeline.submit(batch).wait(); });
    REQUIRE(error);
    CHECK(contains(error.text(), "no current_device today"));
    CHECK(pipeline.failed());
    pipeline.reset();
    auto results = pipeline.run(batches);
    CHECK((*results.begin()).words[0] == 7);
    pipeline.finish();
}

TEST_CASE("Contract 10: a source's slots are read from any device, and go with its own current") {
    if (!two_devices())
        return;
    struct Noting {
        explicit Noting(std::vector<int>& notes) : gone_on(&notes) {}
        Noting(Noting&& other) noexcept
            : gone_on(std::exchange(other.gone_on, nullptr)), words(std::move(other.words)) {}
        ~Noting() {
            if (gone_on != nullptr)
                gone_on->push_back(B::current_device());
        }
        std::vector<int>* gone_on;
        PinnedBuffer<Word, B> words{1};
    };
    std::vector<int> gone_on;
    std::optional<On> elsewhere(std::in_place, 1);
    const BasicStream<B> theirs;
    DeviceBuffer<Word, B> to(4);
    elsewhere.reset();
    {
        Source source{[&](int) { return Noting(gone_on); },
                      [](std::size_t index, Noting& out) { out.words[0] = static_cast<Word>(index); },
                      SourceOptions<B>{.workers = 1, .slots = 2, .batches = 4}};
        for (const auto& batch : source) {
            ops::spin(theirs.get(), 500);
            copy(theirs, to.span().subspan(batch.index(), 1), batch->words);
            batch.release(theirs);
        }
        gone_on.clear();
        elsewhere.emplace(1); // whatever is current when the source goes
    }
    CHECK(gone_on == std::vector{0, 0});
    std::vector<Word> seen(4);
    copy_and_wait(theirs, seen, to);
    CHECK(seen == std::vector<Word>{0, 1, 2, 3});
}

TEST_CASE("Contract 10: a readback takes results of streams of any device, with whatever current") {
    if (!two_devices())
        return;
    std::optional<On> elsewhere(std::in_place, 1);
    const BasicStream<B> theirs;
    DeviceBuffer<Word, B> values(1);
    elsewhere.reset();
    const BasicStream<B> mine;
    std::vector<Word> results;
    Readback<Word, B> readback(
        1, [&](std::size_t, std::span<const Word> result) { results.push_back(result[0]); }, 1);
    for (int round = 0; round < 3; ++round) {
        fill_bytes(theirs, values, 1);
        readback.push(theirs, values);
        theirs.sync();
        readback.push(mine, values);
        mine.sync();
    }
    readback.finish();
    CHECK(results == std::vector<Word>(6, 0x01010101));
}

TEST_CASE("Contract 10: a readback's memory is made with its device current") {
    if (!two_devices())
        return;
    struct Pinned {
        static std::vector<int>& made_on() {
            static std::vector<int> devices;
            return devices;
        }
    };
    struct Hook {
        static void note(const char* function) {
            if (std::string_view(function) == "allocate_pinned")
                Pinned::made_on().push_back(B::current_device());
        }
    };
    using N = PinnedOn<Hook>;
    const BasicStream<N> stream;
    DeviceBuffer<Word, N> values(2);
    fill_bytes(stream, values, 1);
    std::size_t results = 0;
    Readback<Word, N> readback(
        2, [&](std::size_t, std::span<const Word>) { ++results; }, 2);
    GraphCapture<int, N> graphs({.warmup = 0});
    Pinned::made_on().clear();
    {
        const On away(1);
        for (int round = 0; round < 3; ++round) {
            for (const int key : {1, 2, 3, 4}) {
                const DeviceGuard<N> other(1);
                readback.push(stream, values);
                (void)key;
            }
            const DeviceGuard<N> home(0);
            (void)graphs.run(stream, round, [&](BasicStreamRef<N> s) { readback.push(s, values); });
            const DeviceGuard<N> back(1);
            readback.push(stream, values);
        }
    }
    readback.finish();
    CHECK(results == 18);
    for (const int device : Pinned::made_on())
        CHECK(device == 0);
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Contract 10: a CPU stage behind one of another device, on threads apart") {
    if (!two_devices())
        return;
    struct Half {
        int* value = nullptr; // A slot's own members are looked at before each replay.
    };
    std::vector<int> values(3);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        std::vector<int> results;
        const auto on_device = [](BasicStreamRef<Apart> stream, const int& batch, Half& out) {
            Host::enqueue(stream.get(), [&out, batch] { *out.value = 2 * batch; });
        };
        Pipeline pipeline{Stages{Stage{"device", on_device, StageOptions<Apart>{.device = 1}},
                                 Stage{"host", [&](const Half& in) { results.push_back(*in.value); }}},
                          Slots{[&](int slot) { return Half{&values[static_cast<std::size_t>(slot)]}; }},
                          PipelineOptions{.schedule = schedule, .slots = 3}};
        for (int batch = 0; batch < 9; ++batch) {
            BatchRead read = pipeline.submit(batch);
            if (batch % 4 == 0)
                read.wait();
        }
        pipeline.finish();
        CHECK(results == std::vector{0, 2, 4, 6, 8, 10, 12, 14, 16});
    }
}
#endif

} // namespace pipeline_devices_apart
