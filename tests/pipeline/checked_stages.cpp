// Mistakes in what stages do beside their slots: found under each schedule, whatever the timing.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/sluice.hpp>

#include "support/checked_mistakes.hpp"
#include "support/doctest.hpp"

namespace sluice::test::pipeline_checked_stages {
namespace {

using B = CheckedTestBackend;
using Ref = BasicStreamRef<B>;
using checked::Mistake;

constexpr std::size_t size = 32;

struct Slot {
    DeviceBuffer<float, B> values{size};
};
using Batch = PinnedSpan<const float, B>;

// Two stages that share nothing but their slot, and whatever the hooks do.
struct Two {
    PinnedBuffer<float, B> input{size};
    DeviceBuffer<float, B> out{size};
    DeviceBuffer<float, B> shared{size};
    BasicStream<B> side;
    BasicEvent<B> event;
    std::vector<Slot*> slots;
    // What is done in the stages, after their own work.
    void (*in_first)(Two&, Ref, Slot&) = [](Two&, Ref, Slot&) {};
    void (*in_second)(Two&, Ref, Slot&) = [](Two&, Ref, Slot&) {};

    Two() {
        name_buffer(shared, "workspace");
        const BasicStream<B> stream;
        fill(stream, shared, 0.0f);
        stream.sync();
        for (float& value : input)
            value = 1.0f;
    }
    auto first() {
        return Stage{"encode", [this](Ref stream, const Batch& batch, Slot& slot) {
                         copy(stream, slot.values, batch);
                         in_first(*this, stream, slot);
                     }};
    }
    auto second() {
        return Stage{"train", [this](Ref stream, Slot& slot) {
                         copy(stream, out, slot.values);
                         in_second(*this, stream, slot);
                     }};
    }
    template <class First, class Second>
    void run(First first, Second second, Schedule schedule, int steps = 1) {
        Pipeline pipeline{Stages{std::move(first), std::move(second)},
                          Slots{[](int) { return Slot{}; }},
                          {.schedule = schedule, .steps_per_graph = steps}};
        for (int batch = 0; batch < 16; ++batch)
            pipeline.submit(std::as_const(input).span()).stays();
        pipeline.finish();
    }
    void run(Schedule schedule) { run(first(), second(), schedule); }
};

struct Fixture : NoMistakesLeft, Two {
    ~Fixture() { side.sync(); }
};

constexpr Schedule schedules[] = {Schedule::overlapped, Schedule::graphed};

TEST_CASE_FIXTURE(Fixture, "Stages that keep to their slots are right under each schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed})
        CHECK(is_right([&] { run(schedule); }));
    CHECK(is_right([&] { run(first(), second(), Schedule::graphed, 4); }));
    CHECK(checked::findings().empty());
}

TEST_CASE_FIXTURE(Fixture, "A buffer that one stage reads and the other writes") {
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        const checked::Finding found =
            mistake_of([&] { run(first().reads(shared), second().writes(shared), schedule); });
        CHECK(found.mistake == Mistake::race);
        CHECK(found.buffer == "'workspace'");
        CHECK(found.first.stage != found.second.stage);
        CHECK(found.first.batch != found.second.batch);
        CHECK(found.first.writes != found.second.writes);
    }
    // One stream for both is an order, and so is `serial`.
    CHECK(is_right([&] { run(first().reads(shared), second().writes(shared), Schedule::serial); }));
    CHECK(is_right([&] { run(first().reads(shared), second().reads(shared), Schedule::overlapped); }));
}

TEST_CASE_FIXTURE(Fixture, "The same said in the stages, of a kernel by name") {
    in_first = [](Two& two, Ref stream, Slot&) { writes(stream, two.shared, "scan"); };
    in_second = in_first;
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        const checked::Finding found = mistake_of([&] { run(schedule); });
        CHECK(found.mistake == Mistake::race);
        CHECK(found.first.operation == "scan");
        CHECK(found.second.operation == "scan");
    }
}

TEST_CASE_FIXTURE(Fixture, "A slot that is kept, and read in a later call") {
    static Slot* kept;
    kept = nullptr;
    in_second = [](Two& two, Ref stream, Slot& slot) {
        if (kept != nullptr)
            copy(stream, two.out, kept->values);
        kept = &slot;
    };
    const checked::Finding found = mistake_of([&] { run(Schedule::overlapped); });
    CHECK(found.mistake == Mistake::race);
    CHECK(found.first.stage == "train");
    CHECK(found.second.stage == "encode");
    CHECK(found.buffer.find("stage 'encode', slot") != std::string::npos);
    // The batch after the one whose slot it was; the next but one is written.
    CHECK(*found.second.batch == *found.first.batch + 1);
}

TEST_CASE_FIXTURE(Fixture, "A side stream that is not joined") {
    in_first = [](Two& two, Ref stream, Slot& slot) {
        two.event.record(stream);
        two.side.wait(two.event);
        writes(two.side, slot.values, "kernel");
    };
    const checked::Finding found = mistake_of([&] { run(Schedule::overlapped); });
    CHECK(found.mistake == Mistake::race);
    CHECK(found.first.stage == "encode");
    CHECK(found.second.stage == "train"); // which could join it, too
    CHECK(found.first.batch == found.second.batch);
    CHECK(found.missing_edge.find("must be joined") != std::string::npos);

    in_first = [](Two& two, Ref stream, Slot& slot) {
        two.event.record(stream);
        two.side.wait(two.event);
        writes(two.side, slot.values, "kernel");
        two.event.record(two.side);
        stream.wait(two.event);
    };
    CHECK(is_right([&] { run(Schedule::overlapped); }));
}

TEST_CASE_FIXTURE(Fixture, "A slot that the host touches while it is in flight") {
    Pipeline pipeline{Stages{first(), second()}, Slots{[&](int) { return Slot{}; }}};
    pipeline.submit(std::as_const(input).span()).stays();
    const checked::Finding found = mistake_of([&] { host_writes(input, "loader"); });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.first.stage == "encode");
    CHECK(*found.first.batch == 0);
    pipeline.finish();
    CHECK(is_right([&] { host_writes(input); }));
}

TEST_CASE_FIXTURE(
    Fixture, "A batch that goes too early: finish says so, or the next call once the pipeline has gone") {
    const auto run_without_batch = [&](Schedule schedule, bool finishes) {
        std::optional<PinnedBuffer<float, B>> images(size);
        for (float& value : *images)
            value = 1.0f;
        Pipeline pipeline{
            Stages{first(), second()}, Slots{[](int) { return Slot{}; }}, {.schedule = schedule}};
        pipeline.submit(std::as_const(*images).span()).stays();
        images.reset();
        if (finishes)
            pipeline.finish();
    };
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const bool finishes : {true, false}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(finishes);
            const checked::Finding found = mistake_of([&] {
                run_without_batch(schedule, finishes);
                if (!finishes)
                    host_writes(input);
            });
            CHECK(found.mistake == Mistake::use_after_free);
        }
    }
}

TEST_CASE_FIXTURE(Fixture, "A pipeline that is not to be checked tells nothing of its stages") {
    Pipeline pipeline{Stages{first().writes(shared), second().writes(shared)},
                      Slots{[&](int) { return Slot{}; }},
                      {.checked = false}};
    for (int batch = 0; batch < 4; ++batch)
        CHECK(is_right([&] { pipeline.submit(std::as_const(input).span()).stays(); }));
    pipeline.finish();
}

} // namespace
} // namespace sluice::test::pipeline_checked_stages
