// Sources, readbacks and CPU stages under the checker: right as they are, and what goes wrong beside them.
#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/sluice.hpp>

#include "support/apart_backend.hpp"
#include "support/checked_mistakes.hpp"
#include "support/doctest.hpp"
#include "support/latch.hpp"
#include "support/sanitized.hpp"

namespace sluice::test::pipeline_checked_threads {
namespace {

using B = CheckedTestBackend;
using Ref = BasicStreamRef<B>;
#if SLUICE_CHECKED
using CheckedApart = Apart;
#else
using CheckedApart = Checked<Apart>;
#endif
using checked::Mistake;

constexpr std::size_t size = 32;

struct Batch {
    PinnedBuffer<float, B> images{size};
};
struct Features {
    DeviceBuffer<float, B> values{size};
};
struct Result {
    PinnedBuffer<float, B> values{size};
};

// A source with a worker, a stage that copies, one that reads the features back, and the last on the CPU where the
// pipeline has threads for it.
struct Loop : NoMistakesLeft {
    std::vector<float> losses;
    Readback<float, B> readback{
        1, [this](std::size_t, std::span<const float> loss) { losses.push_back(loss[0]); }, 2};

    void run(Schedule schedule, int steps = 0) {
        losses.clear();
        Source source{[](int) { return Batch{}; },
                      [](std::size_t index, Batch& out) {
                          for (float& image : out.images)
                              image = static_cast<float>(index);
                      },
                      SourceOptions<B>{.workers = 2, .slots = 4, .batches = 24}};
        Stage copy_in{"copy", [](Ref stream, const Batch& batch, Features& out) {
                          copy(stream, out.values, batch.images);
                      }};
        Stage train{"train", [this](Ref stream, const Features& in, Result& out) {
                        readback.push(stream, in.values.first(1));
                        copy(stream, out.values, in.values);
                    }};
        Pipeline pipeline{Stages{copy_in, train},
                          Slots{[](int) { return Features{}; }, [](int) { return Result{}; }},
                          {.schedule = schedule, .steps_per_graph = steps}};
        float expected = 0;
        for (const Result& result : pipeline.run(source)) {
            CHECK(result.values[size - 1] == expected);
            ++expected;
        }
        pipeline.finish();
        readback.finish();
        CHECK(losses.size() == 24);
    }
};

TEST_CASE_FIXTURE(Loop, "Sources, readbacks and results are in order under each schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed})
        CHECK(is_right([&] { run(schedule); }));
    CHECK(is_right([&] { run(Schedule::graphed, 2); }));
    CHECK(checked::findings().empty());
}

TEST_CASE_FIXTURE(NoMistakesLeft, "A worker of a source that reads what a stream still writes") {
    BasicStream<B> stream;
    DeviceBuffer<float, B> device(size);
    PinnedBuffer<float, B> shared(size);
    fill(stream, device, 2.0f);
    copy(stream, shared, device);
    Source source{[](int) { return Batch{}; },
                  [&](std::size_t, Batch& out) {
                      host_reads(shared, "augment");
                      out.images[0] = 1.0f;
                  },
                  SourceOptions<B>{.workers = 1, .slots = 2, .batches = 2}};
    const checked::Finding found = mistake_of([&] { (void)source.next(); });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.second.operation == "augment");
    stream.sync();
}

TEST_CASE_FIXTURE(NoMistakesLeft,
                  "Two sources in one step: right as they are, and given back before they were read") {
    struct Pose {
        PinnedBuffer<float, B> values{size};
    };
    const auto fill_images = [](std::size_t index, Batch& out) { out.images[0] = static_cast<float>(index); };
    const auto fill_pose = [](std::size_t index, Pose& out) { out.values[0] = static_cast<float>(index); };
    const auto make_pose = [](int) { return Pose{}; };
    const auto make_batch = [](int) { return Batch{}; };
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CHECK(is_right([&] {
            Source images{make_batch, fill_images, SourceOptions<B>{.workers = 1, .batches = 24}};
            Source poses{make_pose, fill_pose,
                         SourceOptions<B>{.workers = 2, .slots = 6, .when_ahead = WhenAhead::drop_oldest}};
            auto both = zip(images, latest(poses));
            Stage copy_in{"copy", [](Ref stream, const Zipped<Batch, Pose>& in, Features& out) {
                              copy(stream, out.values, in.first.images);
                              copy(stream, out.values, in.second.values);
                          }};
            Stage train{"train", [](Ref stream, const Features& in, const Pose&, Result& out) {
                            copy(stream, out.values, in.values);
                        }};
            Pipeline pipeline{Stages{copy_in, train},
                              Slots{[](int) { return Features{}; }, [](int) { return Result{}; }},
                              {.schedule = schedule}};
            std::size_t count = 0;
            for (const Result& result : pipeline.run(both))
                count += result.values[0] >= 0 ? 1u : 0u;
            CHECK(count == 24);
        }));
    }
    CHECK(checked::findings().empty());

    BasicStream<B> stream;
    for (const bool second : {false, true}) {
        Source images{make_batch, fill_images, SourceOptions<B>{.workers = 0, .slots = 1}};
        Source poses{make_pose, fill_pose, SourceOptions<B>{.workers = 0, .slots = 1}};
        auto both = zip(images, poses);
        Features features;
        const checked::Finding found = mistake_of([&] {
            {
                const auto batch = both.next();
                if (second)
                    copy(stream, features.values, batch->second.values);
                else
                    copy(stream, features.values, batch->first.images);
            }
            (void)both.next();
        });
        CHECK(found.mistake == Mistake::host_race);
        stream.sync();
    }
}

TEST_CASE_FIXTURE(NoMistakesLeft, "A result that is read before it is waited for") {
    PinnedBuffer<float, B> input(size);
    std::vector<const Result*> slots;
    Stage work{"work", [&](Ref stream, const PinnedSpan<const float, B>& batch, Result& out) {
                   slots.push_back(&out);
                   copy(stream, out.values, batch);
               }};
    Pipeline pipeline{Stages{work}, Slots{[](int) { return Result{}; }}};
    pipeline.submit(std::as_const(input).span()).stays();
    const checked::Finding found = mistake_of([&] { (void)(slots[0]->values[3] == 0.0f); });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.first.stage == "work");
    CHECK(found.buffer.find("stage 'work', slot 0") != std::string::npos);
    pipeline.finish();
    CHECK(is_right([&] { (void)(slots[0]->values[3] == 0.0f); }));
}

TEST_CASE_FIXTURE(NoMistakesLeft, "What the caller changes while a CPU stage reads it") {
    PinnedBuffer<float, B> table(size);
    const Latch changed;
    Stage copy_in{
        "copy", [](Ref stream, const Batch& batch, Result& out) { copy(stream, out.values, batch.images); }};
    Stage look{"look", [&](const Result&) {
                   changed.pass();
                   host_reads(table, "look up");
               }};
    Pipeline pipeline{Stages{copy_in, look}, Slots{[](int) { return Result{}; }}};
    Batch batch;
    const checked::Finding found = mistake_of([&] {
        pipeline.submit(batch).stays();
        host_writes(table, "change");
        changed.open();
        pipeline.finish();
    });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.second.stage == "look");
    CHECK(found.missing_edge.find("before the batch of that work is submitted") != std::string::npos);

    // What the caller changes in a batch that was not waited for.
    pipeline.reset();
    const checked::Finding early = mistake_of([&] {
        pipeline.submit(std::as_const(batch)).stays();
        host_writes(batch.images, "load");
    });
    CHECK(early.missing_edge.find("submit returned, or finish() of the pipeline, or sync()") !=
          std::string::npos);
    pipeline.finish();
}

// A CPU stage that copies from its slot on a stream of its own, and one that hands it to another pipeline: the next batches of its
// slot are enqueued before it has run, and come after it only if it waits.
TEST_CASE_FIXTURE(NoMistakesLeft,
                  "A CPU stage that enqueues work and waits for it is right, and wrong where it does not") {
    constexpr int steps = 24;
    std::vector<Batch> batches(steps);
    for (Batch& batch : batches)
        std::fill(batch.images.begin(), batch.images.end(), static_cast<float>(&batch - batches.data()));
    BasicStream<B> own;
    Features features;
    Stage copy_in{
        "copy", [](Ref stream, const Batch& batch, Result& out) { copy(stream, out.values, batch.images); }};
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(static_cast<int>(schedule));
        const Latch submitted;
        bool waits = true;
        Stage upload{"upload", [&](const Result& in) {
                         submitted.pass();
                         copy(own, features.values, in.values);
                         if (waits)
                             own.sync();
                     }};
        Pipeline pipeline{
            Stages{copy_in, upload}, Slots{[](int) { return Result{}; }}, {.schedule = schedule}};
        const auto run = [&] {
            for (Batch& batch : batches)
                pipeline.submit(batch).stays();
            submitted.open();
            pipeline.finish();
        };
        CHECK(is_right(run));
        CHECK(is_right(run));
        if (thread_sanitized) // which would find the race, too
            continue;
        waits = false;
        std::string thrown; // Each batch of a slot may be found, with whichever of the two is seen first.
        try {
            run();
            pipeline.submit(batches[0]).stays();
        } catch (const Error& error) {
            thrown = error.what();
        }
        CHECK(thrown.find("race on 128 bytes") != std::string::npos);
        CHECK(thrown.find("of stage 'copy', slot ") != std::string::npos);
        checked::forget();
        own.sync();
    }
}

/// A CPU stage that hands what it reads to another pipeline, and waits until that has read it.
template <class Of>
void check_hand_on() {
    using Row = PinnedBuffer<float, Of>;
    constexpr int steps = 24;
    std::vector<Row> batches;
    for (int i = 0; i < steps; ++i) {
        batches.emplace_back(size);
        std::fill(batches.back().begin(), batches.back().end(), static_cast<float>(i));
    }
    const auto make = [](int) { return Row(size); };
    const auto copied = [](BasicStreamRef<Of> stream, const Row& in, Row& out) { copy(stream, out, in); };
    std::vector<float> looked;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(static_cast<int>(schedule));
        const Latch submitted;
        Stage look{"look", [&](const Row& in) { looked.push_back(in[0]); }};
        Pipeline inner{Stages{Stage{"copy again", copied}, look}, Slots{make}, {.schedule = schedule}};
        Stage hand_on{"hand on", [&](const Row& in) {
                          submitted.pass();
                          inner.submit(in).wait();
                      }};
        Pipeline outer{Stages{Stage{"copy", copied}, hand_on}, Slots{make}, {.schedule = schedule}};
        CHECK(is_right([&] {
            for (Row& batch : batches)
                outer.submit(batch).stays();
            submitted.open();
            outer.finish();
            inner.finish();
        }));
        REQUIRE(looked.size() == steps);
        for (int i = 0; i < steps; ++i)
            CHECK(looked[static_cast<std::size_t>(i)] == static_cast<float>(i));
        looked.clear();
    }
}

TEST_CASE_FIXTURE(NoMistakesLeft,
                  "A CPU stage that hands what it reads to another pipeline, and waits for that, is right") {
    check_hand_on<B>();
    if constexpr (!KernelGraphBackend<TestBackend>)
        check_hand_on<CheckedApart>(); // whose CPU stages have threads of their own
}

// The checker does not know whose thread it is, and says what to do where it is the stage's.
TEST_CASE_FIXTURE(NoMistakesLeft, "Threads that a CPU stage starts are handed a span of its slot") {
    std::vector<Batch> batches(8);
    bool by_span = true;
    Stage copy_in{
        "copy", [](Ref stream, const Batch& batch, Result& out) { copy(stream, out.values, batch.images); }};
    Stage look{"look", [&](const Result& in) {
                   const auto values = in.values.span();
                   std::exception_ptr thrown;
                   std::thread([&] {
                       try {
                           (void)(by_span ? values[1] : in.values[1]);
                       } catch (...) {
                           thrown = std::current_exception();
                       }
                   }).join();
                   if (thrown)
                       std::rethrow_exception(thrown);
               }};
    Pipeline pipeline{Stages{copy_in, look}, Slots{[](int) { return Result{}; }}};
    const auto run = [&] {
        for (Batch& batch : batches)
            pipeline.submit(batch).stays();
        pipeline.finish();
    };
    CHECK(is_right(run));
    by_span = false;
    const checked::Finding found = mistake_of(run);
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.missing_edge.find("use a span or data() that the stage itself has taken") !=
          std::string::npos);
}

#if !SLUICE_CHECKED
TEST_CASE("A pipeline that is to be checked in a program that is not says how to compile it") {
    using Plain = BasicStreamRef<TestBackend>;
    std::string text;
    try {
        Pipeline pipeline{Stages{Stage{"work", [](Plain, const int&) {}}}, {.checked = true}};
    } catch (const Error& error) {
        text = error.what();
    }
    CHECK(text.find("-DSLUICE_CHECKED=1") != std::string::npos);
}
#endif

} // namespace
// A caller that reads what a CPU stage has written, and has not waited for it: that the library has, for the first batch, is luck.
TEST_CASE_FIXTURE(NoMistakesLeft,
                  "What a CPU stage writes is a race for a caller that has waited for nothing") {
    if constexpr (!KernelGraphBackend<TestBackend>) {
        using Row = PinnedBuffer<float, CheckedApart>;
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
            CAPTURE(static_cast<int>(schedule));
            Row written(size);
            Stage look{"look", [&](const int&, Row& out) {
                           host_writes(written, "look");
                           out[0] = 1;
                       }};
            Stage behind{"behind", [](BasicStreamRef<CheckedApart> stream, const Row& in, Row& out) {
                             copy(stream, out, in);
                         }};
            const auto make = [](int) { return Row(size); };
            Pipeline pipeline{Stages{look, behind}, Slots{make, make}, {.schedule = schedule}};
            const checked::Finding found = mistake_of([&] {
                pipeline.submit(1);
                host_reads(written, "caller");
                pipeline.finish();
            });
            CHECK((found.mistake == Mistake::race || found.mistake == Mistake::host_race));
        }
    }
}

} // namespace sluice::test::pipeline_checked_threads
