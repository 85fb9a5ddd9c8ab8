// Graphs made node by node, of the nodes that every backend has.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/graph/graph_builder.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace graph_builder {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Builder = BasicGraphBuilder<B>;
using Numbers = DeviceBuffer<int, B>;
using Pinned = PinnedBuffer<int, B>;

Pinned pinned_of(const std::vector<int>& values) {
    Pinned buffer(values.size());
    std::copy(values.begin(), values.end(), buffer.begin());
    return buffer;
}
std::vector<int> values_of(const Pinned& buffer) { return {buffer.begin(), buffer.end()}; }

} // namespace

TEST_CASE("copies and fills run in the order of their edges") {
    const BasicStream<B> stream;
    const Pinned in = pinned_of({1, 2, 3, 4});
    Pinned out(4);
    Numbers first(4), second(4);

    Builder builder;
    const auto uploaded = builder.copy(first, in);
    const auto moved = builder.copy(second, first, {uploaded});
    const auto cleared = builder.fill(second.span().first(2), 0, {moved});
    builder.copy(out, second, {cleared});
    CHECK(builder.graph().nodes() == 4);
    CHECK(builder.graph().edges() == 3);

    auto executable = builder.instantiate();
    for (int i = 0; i < 3; ++i) {
        std::fill(out.begin(), out.end(), -1);
        executable.launch(stream);
        stream.sync();
        CHECK(values_of(out) == std::vector<int>{0, 0, 3, 4});
    }
}

TEST_CASE("copies and fills take other places and values after instantiation") {
    const BasicStream<B> stream;
    const Pinned in = pinned_of({1, 2, 3, 4}), other_in = pinned_of({5, 6, 7, 8});
    Pinned out(4), other_out(4);
    std::fill(other_out.begin(), other_out.end(), -1);
    Numbers numbers(4);

    Builder builder;
    const auto uploaded = builder.copy(numbers, in);
    const auto filled = builder.fill(numbers.span().first(1), 0, {uploaded});
    const auto downloaded = builder.copy(out, numbers, {filled});
    auto executable = builder.instantiate();
    executable.upload(stream);
    executable.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{0, 2, 3, 4});

    executable.set(uploaded, numbers, other_in);
    executable.set(filled, numbers.span().subspan(2, 1), 0xff);
    executable.set(downloaded, other_out, numbers);
    executable.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{0, 2, 3, 4});
    CHECK(values_of(other_out) == std::vector<int>{5, 6, -1, 8});

    auto unchanged = builder.instantiate(); // what is set is the executable's own
    unchanged.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{0, 2, 3, 4});
}

TEST_CASE("a copy takes another length after instantiation") {
    const BasicStream<B> stream;
    const Pinned in = pinned_of({1, 2, 3, 4});
    Pinned out(4);
    Numbers numbers(4);
    Builder builder;
    const auto cleared = builder.fill(numbers, 0);
    const auto copied = builder.copy(numbers.span().first(2), in.span().first(2), {cleared});
    (void)builder.copy(out, numbers, {copied});
    auto executable = builder.instantiate();
    for (const std::size_t length : {3U, 1U}) {
        executable.set(copied, numbers.span().first(length), in.span().first(length));
        executable.launch(stream);
        stream.sync();
        CHECK(values_of(out) == (length == 3 ? std::vector<int>{1, 2, 3, 0} : std::vector<int>{1, 0, 0, 0}));
    }
}

TEST_CASE("a builder that is assigned to has the other one's nodes, and goes on with them") {
    const BasicStream<B> stream;
    const Pinned in = pinned_of({1, 2});
    Pinned out(2);
    Numbers numbers(2), never(2);
    Builder builder, other;
    (void)builder.copy(never, in);
    const auto uploaded = other.copy(numbers, in);
    builder = std::move(other);
    (void)builder.copy(out, numbers, {uploaded});
    CHECK(builder.graph().nodes() == 2);
    builder.instantiate().launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{1, 2});
    CHECK(contains(text_of([&] { other.empty(); }), "moved from"));
}

TEST_CASE("host nodes keep their tasks, and change them between launches") {
    const BasicStream<B> stream;
    const auto count = std::make_shared<std::atomic<int>>(0);
    int calls = 0;
    {
        std::unique_ptr<BasicBuiltGraphExec<B>> executable;
        std::unique_ptr<HostNode<B>> node;
        {
            Builder builder;
            node = std::make_unique<HostNode<B>>(builder.host([count] { *count += 1; }));
            builder.host([](void* data) { ++*static_cast<int*>(data); }, &calls, {*node});
            executable = std::make_unique<BasicBuiltGraphExec<B>>(builder.instantiate());
        }
        CHECK(count.use_count() == 2);
        executable->launch(stream);
        executable->set(*node, [count] { *count += 100; });
        executable->launch(stream);
        for (int i = 0; i < 20; ++i) {
            executable->set(*node, [count] { *count += 1000; });
            executable->launch(stream);
            stream.sync();
        }
        CHECK(count.use_count() <= 3); // what was replaced goes once no launch can call it
        executable->set(
            *node, [](void* data) { *static_cast<std::atomic<int>*>(data) += 100000; }, count.get());
        executable->launch(stream);
        // And goes away with launches in flight.
    }
    stream.sync();
    CHECK(*count == 120101);
    CHECK(calls == 23);
    CHECK(count.use_count() == 1);
}

TEST_CASE("an executable without tasks of its own keeps those that its nodes are given later") {
    const BasicStream<B> stream;
    const auto count = std::make_shared<std::atomic<int>>(0), other = std::make_shared<std::atomic<int>>(0);
    int calls = 0;
    {
        Builder builder;
        const auto call = [](void* data) { ++*static_cast<int*>(data); };
        const auto node = builder.host(call, &calls);
        const auto next = builder.host(call, &calls, {node});
        auto executable = builder.instantiate();
        executable.launch(stream);
        executable.set(node, [count] { *count += 1; });
        executable.set(next, [other] { *other += 1; });
        CHECK(count.use_count() == 2);
        CHECK(other.use_count() == 2);
        executable.launch(stream);
        executable.launch(stream);
        // And goes away with launches in flight.
    }
    stream.sync();
    CHECK(calls == 2);
    CHECK(*count == 2);
    CHECK(*other == 2);
    CHECK(count.use_count() == 1);
    CHECK(other.use_count() == 1);
}

TEST_CASE("a replaced task that a held launch calls is still there") {
    const BasicStream<B> stream;
    const auto sum = std::make_shared<std::atomic<int>>(0);
    Builder builder;
    const auto node = builder.host([kept = std::make_shared<int>(1), sum] { *sum += *kept; });
    auto executable = builder.instantiate();
    {
        ScopedLatch latch;
        hold(stream, latch);
        executable.launch(stream);
        executable.set(node, [kept = std::make_shared<int>(10), sum] { *sum += *kept; });
        executable.launch(stream);
        executable.set(node, [kept = std::make_shared<int>(100), sum] { *sum += *kept; });
        executable.launch(stream);
    }
    stream.sync();
    CHECK(*sum == 111);
}

TEST_CASE("a child graph runs as one node, and can be another one later") {
    const BasicStream<B> stream;
    Numbers numbers(4);
    Pinned out(4);
    const auto filling = [&](unsigned char value) {
        return capture(stream, [&, value](Ref s) {
            fill_bytes(s, numbers, 0);
            fill_bytes(s, numbers.span().first(2), value);
        });
    };
    Builder builder;
    const auto child = builder.child(filling(0xff));
    builder.copy(out, numbers, {child});
    CHECK(builder.graph().nodes() == 4);
    CHECK(builder.graph().edges() == 1);
    auto executable = builder.instantiate();
    executable.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{-1, -1, 0, 0});

    executable.set(child, filling(0));
    executable.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{0, 0, 0, 0});

    const BasicGraph<B> shorter = capture(stream, [&](Ref s) { fill_bytes(s, numbers, 0); });
    CHECK_FALSE(text_of([&] { executable.set(child, shorter); }).empty());
    executable.launch(stream);
    stream.sync();
    CHECK(values_of(out) == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("empty nodes join, and edges can be added later") {
    const BasicStream<B> stream;
    std::vector<int> order; // written by one node at a time: all are in one chain
    Builder builder;
    const auto note = [&order](int number) { return [&order, number] { order.push_back(number); }; };
    const auto first = builder.host(note(1));
    const auto second = builder.host(note(2), {first});
    const auto meeting = builder.empty({first, second});
    const auto third = builder.host(note(3));
    builder.depends(third, meeting);
    std::vector<BasicNode<B>> all{meeting, third};
    builder.host(note(4), all);
    CHECK(builder.graph().nodes() == 5);
    CHECK(builder.graph().edges() == 6);
    auto executable = builder.instantiate();
    executable.launch(stream);
    executable.launch(stream);
    stream.sync();
    CHECK(order == std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE("a builder's graph can be drawn") {
    Numbers numbers(4);
    Builder builder;
    builder.fill(numbers, 0, {builder.empty()});
    const std::string path = "graph_builder_test.dot";
    builder.graph().write_dot(path);
    std::ifstream file(path);
    std::string word;
    file >> word;
    CHECK(contains(word, "digraph"));
    file.close();
    std::remove(path.c_str());
}

TEST_CASE("a builder refuses what makes no sense") {
    const BasicStream<B> stream;
    Numbers numbers(4), none;
    Pinned pinned(4), shorter(3);
    Builder builder, other;
    CHECK(contains(text_of([&] { (void)builder.instantiate(); }), "add at least 1 node"));

    const auto mine = builder.fill(numbers, 0);
    const auto theirs = other.fill(numbers, 0);
    CHECK(contains(text_of([&] { builder.empty({mine, theirs}); }), "belongs to another builder"));
    CHECK(contains(text_of([&] { builder.depends(mine, theirs); }), "belongs to another builder"));
    CHECK(contains(text_of([&] { builder.depends(theirs, mine); }), "belongs to another builder"));
    CHECK(contains(text_of([&] { builder.depends(mine, mine); }), "added before it"));
    const auto later = builder.empty();
    CHECK(contains(text_of([&] { builder.depends(mine, later); }), "added before it"));

    CHECK(contains(text_of([&] { builder.copy(numbers, shorter); }),
                   "the source holds 3 and the destination 4"));
    CHECK(contains(text_of([&] { builder.copy(none, none); }), "at least 1"));
    CHECK(contains(text_of([&] { builder.copy(numbers.first(3), numbers.last(3)); }),
                   "a copy node: the source and the destination overlap"));
    CHECK(contains(text_of([&] { builder.fill(none, 0); }), "at least 1 element"));
    const char* const lets = "only a kernel lets another begin early; name the node without early()";
    CHECK(contains(text_of([&] { builder.empty({mine.early()}); }), lets));
    CHECK(contains(text_of([&] { builder.host([] {}, {later, mine.early()}); }), lets));
    CHECK(contains(text_of([&] { builder.depends(later, mine.early()); }), "early() belongs in the `after`"));
    CHECK(builder.graph().nodes() == 2);
    CHECK(builder.graph().edges() == 0);

    auto executable = builder.instantiate();
    const auto latest = builder.fill(numbers, 0, {mine});
    CHECK(contains(text_of([&] { executable.set(theirs, numbers, 1); }),
                   "another builder than the executable"));
    CHECK(contains(text_of([&] { executable.set(latest, numbers, 1); }),
                   "after the executable was instantiated"));
    CHECK(contains(text_of([&] { executable.set(mine, none, 1); }), "at least 1 element"));
    {
        // Each kind of node is looked at.
        Builder inner;
        inner.fill(numbers, 2);
        const auto copied = other.copy(numbers, pinned);
        const auto called = other.host([] {});
        const auto child = other.child(inner.graph());
        const auto refused = [&](auto set) {
            CHECK(contains(text_of(set), "another builder than the executable"));
        };
        refused([&] { executable.set(copied, numbers, pinned); });
        refused([&] { executable.set(called, [] {}); });
        refused([&] {
            executable.set(
                called, [](void*) {}, nullptr);
        });
        refused([&] { executable.set(child, inner.graph()); });
    }

    Builder moved(std::move(builder));
    CHECK(moved.graph().nodes() == 3);
    CHECK(contains(text_of([&] { builder.empty(); }), "moved from"));
    CHECK(contains(text_of([&] { (void)builder.instantiate(); }), "moved from"));
    auto works = moved.instantiate();
    works.set(mine, numbers, 0); // a builder that moves keeps its nodes
    works.launch(stream);
    std::vector<int> values(4, -1);
    copy_and_wait(stream, values, numbers);
    CHECK(values == std::vector<int>{0, 0, 0, 0});
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("tasks are the Host backend's kernels, and fail their stream by throwing") {
    const BasicStream<B> stream;
    int value = 1;
    Builder builder;
    const auto doubled = builder.task([&] { value *= 2; });
    builder.task([&] { value += 3; }, {doubled});
    auto executable = builder.instantiate();
    executable.launch(stream);
    executable.set(doubled, [&] { value *= 10; });
    executable.launch(stream);
    stream.sync();
    CHECK(value == 53);
    executable.set(doubled, [] { throw Error("no number"); });
    executable.launch(stream);
    CHECK(contains(text_of([&] { stream.sync(); }), "no number"));
    CHECK(value == 53);
    Host::clear_failure(stream.get());
    // The fault was the stream's to report, and the task can be replaced.
    executable.set(doubled, [&] { value *= 2; });
    executable.launch(stream);
    stream.sync();
    CHECK(value == 109);
}

TEST_CASE("a task behind early() of another runs after it, and takes its place among kernels") {
    const BasicStream<B> stream;
    Numbers numbers(4), copied(4);
    int seen = 0;
    Builder builder;
    const auto filled = builder.fill(numbers, 1);
    const auto first = builder.task([&] { numbers.data()[0] = 2; }, {filled});
    const auto second =
        builder.task([&] { seen = numbers.data()[0] + numbers.data()[1]; }, {filled, first.early()});
    builder.copy(copied, numbers, {second});
    CHECK(builder.graph().edges() == 4);
    builder.instantiate().launch(stream);
    stream.sync();
    CHECK(seen == 2 + 0x01010101);

    const char* const begins = "only a kernel begins early; name what it comes after without early()";
    CHECK(contains(text_of([&] { builder.copy(copied, numbers, {second.early()}); }), begins));
    CHECK(contains(text_of([&] { builder.host([] {}, {filled, second.early()}); }), begins));
    CHECK(
        contains(text_of([&] { builder.task([] {}, {builder.host([] {}).early()}); }), "only a kernel lets"));
    CHECK(builder.graph().nodes() == 5);
    CHECK(builder.graph().edges() == 4);
}
#endif

} // namespace graph_builder
