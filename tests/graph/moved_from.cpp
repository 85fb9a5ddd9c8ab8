// What owns a graph says so when it is used after it was moved from, and may be assigned to.
#include <string>
#include <utility>

#include <sluice/graph.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"
#include "support/self_move.hpp"

namespace graph_moved_from {

using namespace sluice;
using namespace sluice::test;

template <class Use>
void check_refused(const char* what, Use&& use) {
    CHECK(text_of(use) == moved_from(what));
}

TEST_CASE_TEMPLATE("a graph and an executable that were moved from are refused", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<float, B> memory(4);
    const auto fill = [&] {
        return capture(stream.ref(), [&](BasicStreamRef<B> s) { fill_bytes(s, memory, 0); });
    };
    BasicGraph<B> graph = fill();
    BasicGraphExec<B> executable(graph);
    const BasicGraph<B> taken = std::move(graph);
    BasicGraphExec<B> taken_executable = std::move(executable);
    check_refused("graph", [&] { (void)graph.nodes(); });
    check_refused("graph", [&] { (void)graph.edges(); });
    check_refused("graph", [&] { graph.write_dot("moved_from.dot"); });
    check_refused("graph", [&] { const BasicGraphExec<B> made(graph); });
    check_refused("graph", [&] { (void)taken_executable.update(graph); });
    check_refused("graph executable", [&] { executable.launch(stream); });
    check_refused("graph executable", [&] { executable.upload(stream); });
    check_refused("graph executable", [&] { (void)executable.update(taken); });
    graph = fill();
    executable = BasicGraphExec<B>(graph);
    executable.launch(stream);
    stream.sync();
}

TEST_CASE_TEMPLATE("a builder and what it made are refused when they were moved from", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<float, B> memory(4);
    BasicGraphBuilder<B> builder;
    const auto fill = builder.fill(memory, 0);
    auto executable = builder.instantiate();
    auto taken = std::move(executable);
    BasicGraph<B> child;
    const BasicGraph<B> taken_child = std::move(child);
    check_refused("graph", [&] { builder.child(child); });
    BasicGraphBuilder<B> taken_builder = std::move(builder);
    check_refused("graph executable", [&] { executable.launch(stream); });
    check_refused("graph executable", [&] { executable.upload(stream); });
    check_refused("graph executable", [&] { executable.set(fill, memory, 1); });
    check_refused("graph builder", [&] { builder.fill(memory, 0); });
    check_refused("graph builder", [&] { (void)builder.instantiate(); });
    check_refused("graph builder", [&] { (void)builder.graph().nodes(); });
    executable = taken_builder.instantiate();
    executable.launch(stream);
    stream.sync();
}

TEST_CASE_TEMPLATE("a pair of buffers that was moved from has no view", B, TestBackend) {
    PingPong<float, B> pair(4);
    const PingPong<float, B> taken = std::move(pair);
    check_refused("ping-pong pair", [&] { (void)pair.view(); });
    CHECK(pair.size() == 0);
    CHECK(pair.first().empty());
    CHECK(pair.second().empty());
    pair = PingPong<float, B>(4);
    CHECK(pair.view().size() == 4);
}

TEST_CASE("a setter of no condition is refused") {
    const std::string words =
        "a ConditionSetter is no condition's; expected one that a condition's setter() gave";
    CHECK(text_of([] { ConditionSetter().set(1); }) == words);
    CHECK(text_of([] { (void)ConditionSetter().get(); }) == words);
}

TEST_CASE_TEMPLATE("what owns a graph stays what it is when moved into itself", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<int, B> memory(4);
    PinnedBuffer<int, B> seen(4);
    BasicGraph<B> graph = capture(stream.ref(), [&](BasicStreamRef<B> s) { copy(s, seen, memory); });
    move_into_itself(graph);
    BasicGraphExec<B> executable(graph);
    move_into_itself(executable);
    int calls = 0;
    BasicGraphBuilder<B> builder;
    const auto filled = builder.fill(memory, 1);
    builder.host([&calls] { ++calls; }, {filled});
    move_into_itself(builder);
    auto built = builder.instantiate();
    move_into_itself(built);
    built.launch(stream);
    executable.launch(stream);
    stream.sync();
    CHECK(seen[3] == 0x01010101);
    CHECK(calls == 1);

    DeviceScalar<int, B> scalar(5, 2);
    move_into_itself(scalar);
    scalar.set(stream, 6);
    PingPong<int, B> pair(4);
    move_into_itself(pair);
    pair.swap(stream);
    BasicCondition<B> condition;
    move_into_itself(condition);
#if !defined(SLUICE_TEST_CUDA) // where only a kernel can set it
    bool ran = false;
    run_on(stream, [setter = condition.setter(stream)] { setter.set(1); });
    if_nonzero(stream, condition, [&](BasicStreamRef<B>) { ran = true; });
    stream.sync();
    CHECK(ran);
#endif
    stream.sync();
    CHECK(pair.size() == 4);
}

} // namespace graph_moved_from
