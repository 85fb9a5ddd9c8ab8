// A checked pipeline's graphs: work that has changed since it was captured is an Error that names the stage and the batch.
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/checked_mistakes.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace pipeline_checked_graphs {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = CheckedTestBackend;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<int, B>;
constexpr std::size_t count = 8;

PipelineOptions graphed(bool each_stage) {
    return {.schedule = Schedule::graphed, .slots = 2, .graph_each_stage = each_stage};
}

/// The error that one of 20 batches meets, and none after it.
template <class Pipeline, class Batches>
std::optional<Error> error_of(Pipeline& pipeline, Batches&& batch_of) {
    return caught_error([&] {
        for (std::size_t number = 0; number < 20; ++number)
            pipeline.submit(batch_of(number)).stays();
        pipeline.finish();
    });
}

/// A batch whose key says less than it holds.
struct Lying {
    PinnedSpan<const int, B> values;
    unsigned char filler = 0;
    friend const int* graph_key(const Lying& batch) { return batch.values.data(); }
};

} // namespace

TEST_CASE("What has been captured anew differs from what is replayed at the first stage whose work does, or "
          "nowhere") {
    const BasicStream<B> stream;
    Cells cells(count);
    detail::CapturePlaces<B, int> places;
    // Stages 0, 1, … of batch 5, each of which fills with its value.
    const auto capture_stages = [&](std::initializer_list<unsigned char> values) {
        places.begin();
        (void)capture(stream, [&](Ref origin) {
            std::size_t stage = 0;
            for (const unsigned char value : values) {
                fill_bytes(origin, cells, value);
                places.note(stage++, 5, origin);
            }
        });
    };
    const auto stage_that_changed = [&](int key) {
        const auto* const place = places.changed(key);
        return place == nullptr ? -1 : place->batch == 5 ? static_cast<int>(place->stage) : -2;
    };
    capture_stages({1, 2, 3});
    CHECK(stage_that_changed(7) == -1); // nothing is known of it
    places.keep(7);
    CHECK(stage_that_changed(7) == -1);
    capture_stages({1, 2, 3});
    CHECK(stage_that_changed(7) == -1);
    CHECK(stage_that_changed(8) == -1);
    capture_stages({1, 4, 3});
    CHECK(stage_that_changed(7) == 1);
    capture_stages({1, 2, 3, 4});
    CHECK(stage_that_changed(7) == 3);
    capture_stages({4, 2, 3});
    places.keep(8);
    places.keep(7); // instead of the former
    CHECK(stage_that_changed(7) == -1);
    capture_stages({1, 2, 3});
    CHECK(stage_that_changed(7) == 0);
    places.begin(); // replayed without a capture
    places.keep(7);
    CHECK(stage_that_changed(7) == -1);
    capture_stages({1, 2, 3});
    CHECK(stage_that_changed(7) == 0);
    places.clear();
    CHECK(stage_that_changed(7) == -1);

    // The last 512 keys are known.
    const auto known = [&](std::initializer_list<int> keys) {
        std::vector<int> stages;
        for (const int key : keys)
            stages.push_back(stage_that_changed(key));
        return stages;
    };
    for (int key = 0; key < 514; ++key)
        places.keep(key);
    capture_stages({4, 2, 3});
    CHECK(known({0, 1, 2, 3, 511, 512, 513, 514}) == std::vector<int>{-1, -1, 0, 0, 0, 0, 0, -1});
}

TEST_CASE("Contract 11: a number that a stage reads beside its batch must not change under its graph") {
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        unsigned char value = 1;
        std::size_t calls = 0;
        const auto first = [&](Ref stream, PinnedSpan<const int, B> in, Cells& out) {
            copy(stream, out, in);
        };
        const auto last = [&](Ref stream, Cells& in) {
            ++calls;
            fill_bytes(stream, in, value);
        };
        PinnedBuffer<int, B> in(count);
        const PinnedSpan<const int, B> batch = in.span();
        TwoStreamPipeline pipeline{Stage{"first", first}, Stage{"last", last},
                                   [](int) { return Cells(count); }, graphed(each_stage)};
        const auto error = error_of(pipeline, [&](std::size_t number) -> const PinnedSpan<const int, B>& {
            value = number < 12 ? 1 : 2;
            return batch;
        });
        REQUIRE(error);
        CHECK(error->stage() == "last");
        CHECK(error->batch() == (each_stage ? 12 : 11)); // one behind
        CHECK(contains(error->what(), "the work under this key has changed since it was captured"));
        // Without: they are replayed as they were.
        value = 1;
        PipelineOptions options = graphed(each_stage);
        options.checked = false;
        TwoStreamPipeline unchecked{Stage{"first", first}, Stage{"last", last},
                                    [](int) { return Cells(count); }, options};
        calls = 0;
        CHECK_FALSE(error_of(unchecked, [&](std::size_t number) -> const PinnedSpan<const int, B>& {
            value = number < 12 ? 1 : 2;
            return batch;
        }));
        CHECK(calls < 10);
    }
}

TEST_CASE("Contract 11: a stage must not begin to change numbers of its slot under its graph") {
    struct Counted {
        Cells cells{count};
        int number = 0;
    };
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        int value = 0;
        const auto first = [&](Ref stream, PinnedSpan<const int, B> in, Counted& out) {
            copy(stream, out.cells, in);
            out.number = value;
        };
        const auto last = [&](Ref stream, Counted& in) { fill_bytes(stream, in.cells, 1); };
        PinnedBuffer<int, B> in(count);
        const PinnedSpan<const int, B> batch = in.span();
        TwoStreamPipeline pipeline{Stage{"first", first}, Stage{"last", last}, [](int) { return Counted{}; },
                                   graphed(each_stage)};
        const auto error = error_of(pipeline, [&](std::size_t number) -> const PinnedSpan<const int, B>& {
            value = number < 12 ? 0 : 2;
            return batch;
        });
        REQUIRE(error);
        CHECK(contains(error->what(),
                       "replay refused: the work under this key, captured again to be compared with "
                       "its graph, was refused: a stage changes its slot on the host"));
    }
}

TEST_CASE("Contract 11: a graph_key must tell apart what a stage reads of the batch") {
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        const auto first = [&](Ref stream, const Lying& in, Cells& out) {
            fill_bytes(stream, out, in.filler);
        };
        const auto last = [&](Ref stream, Cells& in) { fill_bytes(stream, in, 0); };
        PinnedBuffer<int, B> in(count);
        const Lying same{in.span(), 1}, other{in.span(), 2};
        TwoStreamPipeline pipeline{Stage{"fill", first}, Stage{"last", last},
                                   [](int) { return Cells(count); }, graphed(each_stage)};
        const auto error = error_of(
            pipeline, [&](std::size_t number) -> const Lying& { return number == 9 ? other : same; });
        REQUIRE(error);
        CHECK(error->stage() == "fill");
        CHECK(error->batch() == 9);
        CHECK(contains(error->what(), "graph_key"));
    }
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE(
    "Contract 11: what a callable on a host stream has captured by value must not change under its graph") {
    std::size_t term = 1, sum = 0;
    const auto only = [&](Ref stream, PinnedSpan<const int, B>) {
        stream.enqueue([to = &sum, term = term] { *to += term; }); // GCC does not compare references
    };
    PinnedBuffer<int, B> in(count);
    const PinnedSpan<const int, B> batch = in.span();
    Pipeline pipeline{Stages{Stage{"sum", only}}, Slots{}, graphed(false)};
    const auto error = error_of(pipeline, [&](std::size_t number) -> const PinnedSpan<const int, B>& {
        term = number < 8 ? 1 : 2;
        return batch;
    });
    REQUIRE(error);
    CHECK(error->stage() == "sum");
    CHECK(error->batch() == 8);
}
#endif

TEST_CASE("Contract 11: work that stays as it is under its key is no mistake") {
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        Readback<int, B> results{count, [](std::size_t, std::span<const int>) {}};
        const auto first = [&](Ref stream, PinnedSpan<const int, B> in, Cells& out) {
            copy(stream, out, in);
        };
        const auto last = [&](Ref stream, Cells& in) { results.push(stream, in); };
        PinnedBuffer<int, B> in(2 * count);
        const PinnedSpan<const int, B> batches[2] = {in.span().first(count), in.span().subspan(count, count)};
        TwoStreamPipeline pipeline{Stage{"first", first}, Stage{"last", last},
                                   [](int) { return Cells(count); }, graphed(each_stage)};
        CHECK_FALSE(error_of(pipeline, [&](std::size_t number) -> const PinnedSpan<const int, B>& {
            return batches[number % 2];
        }));
        CHECK(pipeline.graph_counters().replays > 8);
        results.finish();
    }
}

TEST_CASE("Contract 11: memory that captured work allocates and frees in stream order has another address in "
          "each capture, which is no mistake") {
    const BasicStream<B> stream;
    Cells from(count), to(count);
    fill_bytes(stream, from, 3);
    std::size_t place = 0;
    const auto work = [&](Ref on) {
        Cells first(count, on), second(count, on);
        copy(on, first, from);
        copy(on, second, first);
        copy(on, to.first(count / 2), second.subspan(place, count / 2));
    };
    GraphCapture<NoKey, B> graphs;
    for (int run = 0; run < 6; ++run)
        graphs.run(stream, work);
    CHECK(graphs.counters().replays == 5);
    ++place;
    const auto error = caught_error([&] { graphs.run(stream, work); });
    REQUIRE(error);
    CHECK(contains(error->what(), "the work under this key has changed"));
    stream.sync();

    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        unsigned char value = 1;
        const auto load = [&](Ref on, PinnedSpan<const int, B> in, Cells& out) {
            const Cells staging(count, on);
            copy(on, out, in);
        };
        const auto last = [&](Ref on, Cells& in) {
            Cells scratch(count, on);
            fill_bytes(on, scratch, value);
            copy(on, in, scratch);
        };
        PinnedBuffer<int, B> in(count);
        const PinnedSpan<const int, B> batch = in.span();
        TwoStreamPipeline pipeline{Stage{"load", load}, Stage{"last", last}, [](int) { return Cells(count); },
                                   graphed(each_stage)};
        const auto batch_of = [&](std::size_t) -> const PinnedSpan<const int, B>& { return batch; };
        CHECK_FALSE(error_of(pipeline, batch_of));
        CHECK(pipeline.graph_counters().replays > 8);
        value = 2;
        const auto changed = error_of(pipeline, batch_of);
        REQUIRE(changed);
        CHECK(changed->stage() == "last");
    }
}

TEST_CASE(
    "Contract 11: the same in a GraphCapture of the program's own, unless it says that it is meant so") {
    const BasicStream<B> stream;
    Cells cells(count);
    unsigned char value = 1;
    const auto work = [&](Ref to) { fill_bytes(to, cells, value); };
    const auto error_in = [&](auto& graphs) {
        return caught_error([&] {
            for (int run = 0; run < 4; ++run)
                graphs.run(stream, work);
            ++value;
            graphs.run(stream, work);
        });
    };
    GraphCapture<NoKey, B> graphs;
    const auto error = error_in(graphs);
    REQUIRE(error);
    CHECK(
        contains(error->what(), "replay refused: the work under this key has changed since it was captured"));
    GraphCapture<NoKey, B> frozen{{.check = false}};
    CHECK_FALSE(error_in(frozen));
    stream.sync();
}

TEST_CASE("what a host function has captured is compared, also floats and what has padding") {
    if constexpr (std::is_same_v<TestBackend, Host>) {
        if (!SLUICE_CLEARS_PADDING)
            return; // by compilers that can
        const BasicStream<Host> stream;
        std::vector<float> seen;
        const auto changes = [&](auto enqueue) {
            GraphCapture<NoKey, Host> graphs{{.check = true}};
            float rate = 0.5F;
            const auto work = [&](BasicStreamRef<Host> to) { enqueue(to, rate); };
            for (int run = 0; run < 5; ++run)
                graphs.run(stream, work);
            rate = 0.25F;
            return contains(text_of([&] { graphs.run(stream, work); }), "has changed since it was captured");
        };
        CHECK(changes([&](BasicStreamRef<Host> to, float rate) {
            to.enqueue([&seen, rate] { seen.push_back(rate); });
        }));
        CHECK(changes([&](BasicStreamRef<Host> to, float rate) {
            to.enqueue([&seen, flag = rate > 0.3F, number = 2.0, last = 'a'] {
                seen.push_back(flag ? static_cast<float>(number) : static_cast<float>(last));
            });
        }));
        stream.sync();
    }
}

} // namespace pipeline_checked_graphs
