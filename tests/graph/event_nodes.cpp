// Events that graphs record each time they run.
#include <cstdint>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_event_nodes {

using namespace sluice;
using namespace sluice::test;

static_assert(EventNodeBackend<TestBackend>);

TEST_CASE_TEMPLATE("event nodes: they tell of the latest run", B, TestBackend) {
    using Ref = BasicStreamRef<B>;
    const BasicStream<B> stream;
    DeviceBuffer<std::uint32_t, B> words(1 << 16);
    const EventOptions timing{.timing = true};
    const BasicEvent<B> begin(timing), end(timing);
    BasicEvent<B> before(timing), between(timing), after(timing);
    const BasicGraph<B> graph = capture(stream, [&](Ref s) {
        B::record_external(begin.get(), s.get());
        fill(s, words, std::uint32_t{7});
        B::record_external(end.get(), s.get());
    });
    CHECK(graph.nodes() == 3);
    const BasicGraphExec<B> executable(graph);
    before.record(stream);
    executable.launch(stream);
    between.record(stream);
    stream.sync();
    CHECK(begin.is_done());
    CHECK(end.is_done());
    CHECK(elapsed_milliseconds(before, begin) >= 0);
    CHECK(elapsed_milliseconds(begin, end) >= 0);
    CHECK(elapsed_milliseconds(end, between) >= 0);
    executable.launch(stream);
    after.record(stream);
    stream.sync();
    CHECK(elapsed_milliseconds(between, begin) >= 0);
    CHECK(elapsed_milliseconds(begin, end) >= 0);
    CHECK(elapsed_milliseconds(end, after) >= 0);
}

TEST_CASE_TEMPLATE("event nodes: no work, and refused outside of a capture", B, TestBackend) {
    const BasicStream<B> stream;
    const BasicEvent<B> event(EventOptions{.timing = true});
    CHECK(contains(text_of([&] {
                       capture(stream,
                               [&](BasicStreamRef<B> s) { B::record_external(event.get(), s.get()); });
                   }),
                   "nothing was captured"));
    CHECK_THROWS_AS(B::record_external(event.get(), stream.get()), Error);
    stream.sync();
}

} // namespace graph_event_nodes
