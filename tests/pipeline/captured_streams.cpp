// Streams that are being captured while a pipeline is called: the call is refused, and nothing else changes.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace pipeline_captured_streams {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Words = PinnedBuffer<int, B>;
using Device = DeviceBuffer<int, B>;

constexpr std::size_t words = 4;

// While it is there, what `stream` is handed goes into a graph, which goes with it.
class Capturing {
public:
    explicit Capturing(Ref stream) : stream_(stream) { B::begin_capture(stream.get(), CaptureMode::relaxed); }
    Capturing& operator=(Capturing&&) = delete;
    ~Capturing() {
        if (stream_)
            end();
    }
    // How many operations it has.
    std::size_t end() {
        const Ref stream = *std::exchange(stream_, std::nullopt);
        const auto graph = B::end_capture(stream.get());
        const std::size_t nodes = B::node_count(graph);
        B::destroy_graph(graph);
        return nodes;
    }

private:
    std::optional<Ref> stream_;
};

// Two stages, the second one on the caller's stream where that is `external`.
struct Chain {
    Words in{words};
    BasicStream<B> mine;

    Chain() { std::fill(in.begin(), in.end(), 1); }
    auto pipeline(const PipelineOptions& options, bool external) {
        StageOptions<B> on_mine;
        if (external)
            on_mine.stream = mine;
        return Pipeline{
            Stages{Stage{"load", [](Ref stream, const Words& from, Device& to) { copy(stream, to, from); }},
                   Stage{"fetch", [](Ref stream, const Device& from, Words& to) { copy(stream, to, from); },
                         on_mine}},
            Slots{[](int) { return Device(words); }, [](int) { return Words(words); }}, options};
    }
};

// Each schedule, with the caller's stream one of a stage's, and one beside the pipeline.
template <class Check>
void for_each_way(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const bool external : {false, true}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(external);
            check(PipelineOptions{.schedule = schedule}, external);
        }
    }
}

// That `call` was refused, and that the pipeline still has every batch pass all stages.
template <class P>
void check_refused(P& pipeline, Chain& chain, const char* name, Ref captured,
                   const std::function<void()>& call) {
    CAPTURE(name);
    const std::size_t before = pipeline.submitted();
    {
        Capturing capturing(captured);
        const std::string text = text_of(call);
        CHECK(text.starts_with(std::string(name) + ": "));
        CHECK(contains(text, "is being captured, and a pipeline would not know of the replays"));
        CHECK(capturing.end() == 0);
    }
    CHECK_FALSE(pipeline.failed());
    CHECK(pipeline.submitted() == before);
    pipeline.submit(chain.in).wait();
    pipeline.finish();
    CHECK(pipeline.completed() == before + 1);
}

} // namespace

TEST_CASE("Captured streams: a flush to one, and a wait for one, are refused, and the pipeline goes on") {
    for_each_way([](const PipelineOptions& options, bool external) {
        Chain chain;
        auto pipeline = chain.pipeline(options, external);
        for (int round = 0; round < 3; ++round) { // also with nothing under way
            check_refused(pipeline, chain, "flush", chain.mine, [&] { pipeline.flush(chain.mine); });
            pipeline.submit(chain.in).stays();
            check_refused(pipeline, chain, "flush", chain.mine, [&] { pipeline.flush(chain.mine); });
            pipeline.submit(chain.in).stays();
            check_refused(pipeline, chain, "wait_for", chain.mine, [&] { pipeline.wait_for(chain.mine); });
        }
    });
}

TEST_CASE("Captured streams: no call is taken while a stage's stream is captured") {
    for_each_way([](const PipelineOptions& options, bool external) {
        if (!external)
            return;
        Chain chain;
        auto pipeline = chain.pipeline(options, external);
        const auto refused = [&](const char* name, const std::function<void()>& call) {
            check_refused(pipeline, chain, name, chain.mine, call);
            pipeline.submit(chain.in).stays();
            check_refused(pipeline, chain, name, chain.mine, call);
        };
        refused("submit", [&] { pipeline.submit(chain.in).stays(); });
        refused("try_submit", [&] { (void)pipeline.try_submit(chain.in).has_value(); });
        refused("flush", [&] { pipeline.flush(); });
        refused("finish", [&] { pipeline.finish(); });
        refused("wait_for_room", [&] { pipeline.wait_for_room(); });
        refused("completed", [&] { (void)pipeline.completed(); });
        refused("reset", [&] { pipeline.reset(); });
    });
}

TEST_CASE("Captured streams: a batch's handle can still be asked once the capture is over") {
    for_each_way([](const PipelineOptions& options, bool external) {
        if (!external)
            return;
        Chain chain;
        auto pipeline = chain.pipeline(options, external);
        BatchRead read = pipeline.submit(chain.in);
        check_refused(pipeline, chain, "BatchRead::wait", chain.mine, [&] { read.wait(); });
        read = pipeline.submit(chain.in);
        {
            const Capturing capturing(chain.mine);
            CHECK(contains(text_of([&] { read.wait(); }), "BatchRead::wait: "));
            CHECK(contains(text_of([&] { (void)read.is_ready(); }), "BatchRead::is_ready: "));
        }
        read.wait();
        CHECK(read.is_ready());
        CHECK_FALSE(pipeline.failed());
    });
}

TEST_CASE("Captured streams: one that the pipeline made, too, where a batch would be recorded and not run") {
    for_each_way([](const PipelineOptions& options, bool external) {
        Chain chain;
        auto pipeline = chain.pipeline(options, external);
        const Ref streams[] = {pipeline.stream(0), pipeline.stream(1)};
        for (const Ref stream : streams) {
            check_refused(pipeline, chain, "submit", stream, [&] { pipeline.submit(chain.in).stays(); });
            pipeline.submit(chain.in).stays();
            pipeline.reset(); // then, too
            check_refused(pipeline, chain, "submit", stream, [&] { pipeline.submit(chain.in).stays(); });
        }
    });
}

TEST_CASE("Captured streams: a graphed stage that flushes another pipeline to its stream runs eagerly") {
    Chain chain;
    auto other = chain.pipeline({.schedule = Schedule::overlapped}, false);
    Pipeline pipeline{Stages{Stage{"outer",
                                   [&](Ref stream, const Words& in, Device& to) {
                                       other.submit(chain.in).stays();
                                       other.flush(stream);
                                       copy(stream, to, in);
                                   }}},
                      Slots{[](int) { return Device(words); }},
                      {.schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}}};
    for (int batch = 0; batch < 12; ++batch)
        pipeline.submit(chain.in).stays();
    pipeline.finish();
    other.finish();
    CHECK(pipeline.graph_counters().replays == 0);
    CHECK(other.completed() >= 12);
}

} // namespace pipeline_captured_streams
