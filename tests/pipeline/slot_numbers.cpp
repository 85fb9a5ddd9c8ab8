// What a GPU stage's callable sets in its slot on the host, read by a CPU stage, which runs later.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

#include "support/apart_backend.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace pipeline_slot_numbers {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int batches = 40;

template <class B>
struct Counted {
    PinnedBuffer<int, B> values;
    int number = -1;
};
template <class B>
struct Plain {
    PinnedBuffer<int, B> values;
};
// What may be made longer.
template <class B>
struct Several {
    std::vector<PinnedBuffer<int, B>> parts;
};
struct Tag;
struct Batch {
    int number;
};

// Batches of which a CPU stage, slower than what is before it, finds another number in its slot than was set with them.
template <class B>
int other_numbers(const PipelineOptions& options, int lanes) {
    std::vector<int> seen;
    Stage count{"count",
                [](BasicStreamRef<B>, const Batch& batch, Counted<B>& out) { out.number = batch.number; }};
    Stage read{"read",
               [&](const Batch& batch, const Counted<B>& in) {
                   std::this_thread::sleep_for(std::chrono::microseconds(300));
                   if (in.number != batch.number)
                       seen.push_back(batch.number);
               },
               StageOptions<Host>{.lanes = lanes}};
    Pipeline pipeline{Stages{count, read}, Slots{[](int) { return Counted<B>{PinnedBuffer<int, B>(1)}; }},
                      options};
    for (int i = 0; i < batches; ++i)
        (void)pipeline.submit(Batch{i});
    pipeline.finish();
    return static_cast<int>(seen.size());
}

template <class B>
void check_numbers() {
    for (const Schedule schedule :
         {Schedule::serial, Schedule::overlapped, Schedule::graphed, Schedule::automatic}) {
        for (const int slots : {1, 2, 3}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(slots);
            CHECK(other_numbers<B>({.schedule = schedule, .slots = slots}, 1) == 0);
        }
    }
}

// That try_submit takes no batch whose slot's numbers a CPU stage has still to read.
template <class B>
void check_try_submit(Schedule schedule) {
    std::atomic<bool> held{true};
    std::vector<int> seen;
    Stage count{"count",
                [](BasicStreamRef<B>, const Batch& batch, Counted<B>& out) { out.number = batch.number; }};
    Stage read{"read", [&](const Counted<B>& in) {
                   while (held)
                       std::this_thread::yield();
                   seen.push_back(in.number);
               }};
    Pipeline pipeline{Stages{count, read}, Slots{[](int) { return Counted<B>{PinnedBuffer<int, B>(1)}; }},
                      PipelineOptions{.schedule = schedule, .slots = 2}};
    CHECK(pipeline.try_submit(Batch{0}));
    CHECK(pipeline.try_submit(Batch{1}));
    CHECK_FALSE(pipeline.try_submit(Batch{2}));
    CHECK(pipeline.dropped() == 1);
    held = false;
    while (!pipeline.try_submit(Batch{3})) {
    }
    pipeline.finish();
    CHECK(seen == std::vector<int>{0, 1, 3});
}

} // namespace

TEST_CASE("a CPU stage finds in a slot the numbers that were set for its batch") {
    check_numbers<TestBackend>();
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("a CPU stage on threads beside the streams finds the numbers that were set for its batch") {
    check_numbers<Apart>();
}

TEST_CASE("try_submit takes no batch whose slot a CPU stage has still to read on the host") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        check_try_submit<Apart>(schedule);
    }
}

TEST_CASE("a CPU stage finds the vector of buffers that was made for its batch") {
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        std::atomic<bool> held{true};
        std::vector<std::size_t> seen;
        Stage part{"part", [](BasicStreamRef<Apart>, const Batch& batch, Several<Apart>& out) {
                       out.parts.clear();
                       for (int i = 0; i <= batch.number; ++i)
                           out.parts.emplace_back(1);
                   }};
        Stage read{"read", [&](const Several<Apart>& in) {
                       while (held)
                           std::this_thread::yield();
                       seen.push_back(in.parts.size());
                   }};
        Pipeline pipeline{Stages{part, read}, Slots{[](int) { return Several<Apart>{}; }},
                          PipelineOptions{.schedule = schedule, .slots = 2}};
        CHECK(pipeline.try_submit(Batch{0}));
        CHECK(pipeline.try_submit(Batch{1}));
        CHECK_FALSE(pipeline.try_submit(Batch{2})); // The first one's vector has still to be read.
        held = false;
        pipeline.submit(Batch{3});
        pipeline.finish();
        CHECK(seen == std::vector<std::size_t>{1, 2, 4});
    }
}
#endif

TEST_CASE("a stage whose numbers a CPU stage reads sets them for each batch, under graphs too") {
    int calls = 0;
    Stage count{"count", [&](BasicStreamRef<TestBackend>, const Batch& batch, Counted<TestBackend>& out) {
                    out.number = batch.number;
                    ++calls;
                }};
    Stage read{"read", [](const Counted<TestBackend>&) {}};
    Pipeline pipeline{Stages{count, read},
                      Slots{[](int) { return Counted<TestBackend>{PinnedBuffer<int, TestBackend>(1)}; }},
                      PipelineOptions{.schedule = Schedule::graphed}};
    for (int i = 0; i < batches; ++i)
        (void)pipeline.submit(Batch{i % 2});
    pipeline.finish();
    CHECK(calls == batches);
}

TEST_CASE("a stage whose numbers no CPU stage reads runs in graphs, beside a CPU stage of another slot") {
    using B = TestBackend;
    struct Numbered {
        DeviceBuffer<int, B> values{1};
        int number = -1;
    };
    Stage count{"count", [](BasicStreamRef<B> on, const Batch& batch, Numbered& out) {
                    fill(on, out.values, batch.number);
                    out.number = 1;
                }};
    Stage pass{"pass", [](BasicStreamRef<B> on, const Numbered& in, Plain<B>& out) {
                   copy(on, out.values, in.values);
               }};
    std::vector<int> seen, expected;
    Stage look{"look", [&](const Plain<B>& in) { seen.push_back(in.values[0]); }};
    Pipeline pipeline{
        Stages{count, pass, look},
        Slots{[](int) { return Numbered{}; }, [](int) { return Plain<B>{PinnedBuffer<int, B>(1)}; }},
        PipelineOptions{.schedule = Schedule::graphed, .slots = 2}};
    for (int i = 0; i < batches; ++i) {
        (void)pipeline.submit(Batch{i % 2});
        expected.push_back(i % 2);
    }
    pipeline.finish();
    CHECK(seen == expected);
    // Both of them: for each batch once, but for the first ones.
    CHECK(pipeline.graph_counters().replays > batches);
}

TEST_CASE("a stage whose slot is of buffers alone is captured, though a CPU stage reads it") {
    using B = TestBackend;
    const BasicStream<B> stream;
    DeviceBuffer<int, B> sevens(1);
    copy_and_wait(stream, sevens, std::vector<int>{7});
    const auto replays_of = [&](auto make) {
        using Slot = decltype(make(0));
        Stage fill_it{"fill", [&](BasicStreamRef<B> on, Slot& out) { copy(on, out.values, sevens); }};
        Stage read{"read", [](const Slot& in) { CHECK(in.values[0] == 7); }};
        Pipeline pipeline{Stages{fill_it, read}, Slots{make},
                          PipelineOptions{.schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}}};
        for (int i = 0; i < batches; ++i)
            (void)pipeline.submit(Batch{0});
        pipeline.finish();
        return pipeline.graph_counters().replays;
    };
    CHECK(replays_of([](int) { return Plain<B>{PinnedBuffer<int, B>(1)}; }) > 0);
    CHECK(replays_of([](int) { return Tagged<Tag, Plain<B>>{Plain<B>{PinnedBuffer<int, B>(1)}}; }) > 0);
    CHECK(replays_of([](int) { return Counted<B>{PinnedBuffer<int, B>(1)}; }) == 0);
}

TEST_CASE("a slot has a part on the host unless it is of buffers and spans alone") {
    using B = TestBackend;
    CHECK_FALSE(detail::has_host_part<Tagged<Tag, Plain<B>>>());
    CHECK(detail::has_host_part<Tagged<Tag, Counted<B>>>());
    CHECK(detail::has_host_part<std::vector<DeviceBuffer<int, B>>>());
    CHECK(detail::has_host_part<Counted<B>>());
    CHECK(detail::has_host_part<int>());
    CHECK(detail::has_host_part<std::vector<int>>());
    CHECK(detail::has_host_part<RaggedBatch<int, B>>());
    CHECK_FALSE(detail::has_host_part<Plain<B>>());
    CHECK_FALSE(detail::has_host_part<DeviceBuffer<int, B>>());
    CHECK_FALSE(detail::has_host_part<DeviceBuffer<int, B>[2]>());
    CHECK_FALSE(detail::has_host_part<PinnedSpan<int, B>>());
    CHECK_FALSE(detail::has_host_part<std::array<DeviceBuffer<int, B>, 2>>());
    CHECK(detail::has_host_part<std::array<int, 2>>());
    struct Nothing {};
    CHECK_FALSE(detail::has_host_part<Nothing>());
}

TEST_CASE("a slot may have arrays and vectors of buffers, which cannot be copied") {
    using B = TestBackend;
    using Ref = BasicStreamRef<B>;
    struct Layers {
        std::vector<DeviceBuffer<int, B>> layers;
        std::array<PinnedBuffer<int, B>, 2> halves{PinnedBuffer<int, B>(2), PinnedBuffer<int, B>(2)};
        std::vector<std::unique_ptr<int>> owned;
        std::array<int, 3> shape{};
        PinnedBuffer<int, B> results[2]{PinnedBuffer<int, B>(2), PinnedBuffer<int, B>(2)};
    };
    CHECK(detail::member_count<Layers>() == 5);
    // What cannot be made of nothing takes braces with something in them.
    struct Sized {
        explicit Sized(int of) : size(of) {}
        int size;
    };
    struct Several {
        std::vector<std::unique_ptr<int>> owned;
        Sized sizes[3];
        int number;
    };
    CHECK(detail::member_count<Several>() == 3);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        std::vector<int> seen;
        Stage fill_all{"fill", [](Ref on, const Batch& in, Layers& out) {
                           fill(on, out.layers[1], in.number);
                           out.shape[2] = in.number;
                       }};
        Stage move{"move", [](Ref on, InPlace<Layers>& slot) {
                       copy(on, slot->halves[1], slot->layers[1]);
                       copy(on, slot->results[1], slot->layers[1]);
                   }};
        Stage look{"look", [&](const Layers& in) {
                       CHECK(in.halves[1][1] == in.shape[2]);
                       seen.push_back(in.results[1][0]);
                   }};
        const auto make = [](int) {
            Layers made;
            made.layers.emplace_back(2);
            made.layers.emplace_back(2);
            return made;
        };
        Pipeline pipeline{Stages{fill_all, move, look}, Slots{make},
                          PipelineOptions{.schedule = schedule, .graphs = {.on_refusal = nullptr}}};
        std::vector<int> expected;
        for (int i = 0; i < 20; ++i) {
            (void)pipeline.submit(Batch{i % 3});
            expected.push_back(i % 3);
        }
        pipeline.finish();
        CHECK(seen == expected);
    }
}

} // namespace pipeline_slot_numbers
