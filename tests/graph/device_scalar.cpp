// A value in device memory that the host changes between launches.
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/graph/device_scalar.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace graph_device_scalar {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Scalar = DeviceScalar<int, B>;

std::vector<int> values_of(const BasicStream<B>& stream, const DeviceBuffer<int, B>& buffer) {
    std::vector<int> values(buffer.size());
    copy_and_wait(stream, values, buffer);
    return values;
}

} // namespace

TEST_CASE("a scalar holds its first value from the start") {
    const BasicStream<B> stream;
    const Scalar given(42);
    const DeviceScalar<float, B> none;
    CHECK(given.value_and_wait(stream) == 42);
    CHECK(none.value_and_wait(stream) == 0.0f);
    CHECK(given.span().size() == 1);
    CHECK(given.span().data() == given.data());
}

TEST_CASE("set is in the stream's order, and each reader sees the value of its time") {
    const BasicStream<B> stream;
    for (const int slots : {1, 2, 8}) {
        CAPTURE(slots);
        Scalar scalar(-1, slots);
        const int* const address = scalar.data();
        DeviceBuffer<int, B> seen(100);
        std::vector<int> expected;
        for (int i = 0; i < 100; ++i) {
            scalar.set(stream, i * i);
            copy(stream, seen.span().subspan(static_cast<std::size_t>(i), 1), scalar.span());
            expected.push_back(i * i);
        }
        CHECK(values_of(stream, seen) == expected);
        CHECK(scalar.value_and_wait(stream) == 99 * 99);
        CHECK(scalar.data() == address);
    }
}

TEST_CASE("set does not wait while a slot is left, and keeps values that are on their way") {
    const BasicStream<B> stream;
    Scalar scalar(0, 4);
    DeviceBuffer<int, B> seen(4);
    {
        ScopedLatch latch;
        hold(stream, latch);
        for (int i = 0; i < 4; ++i) {
            scalar.set(stream, i + 10); // would never return if it waited
            copy(stream, seen.span().subspan(static_cast<std::size_t>(i), 1), scalar.span());
        }
        CHECK_FALSE(stream.is_done());
    }
    CHECK(values_of(stream, seen) == std::vector<int>{10, 11, 12, 13});
}

TEST_CASE("a scalar that goes while a value is on its way waits for it") {
    const BasicStream<B> stream;
    for (int i = 0; i < 20; ++i) {
        Scalar first(1);
        Scalar second(2);
        first.set(stream, i);
        second.set(stream, -i);
        first = std::move(second);
        CHECK(first.value_and_wait(stream) == -i);
        first.set(stream, 5);
    }
    stream.sync();
}

TEST_CASE("setting makes nothing and allocates nothing") {
    const BasicStream<B> stream;
    Scalar scalar(0);
    const auto events = B::counts().events.created.load();
    const auto pinned = B::counts().pinned_allocations.created.load();
    const auto device = B::counts().device_allocations.created.load();
    for (int i = 0; i < 50; ++i)
        scalar.set(stream, i);
    stream.sync();
    CHECK(B::counts().events.created == events);
    CHECK(B::counts().pinned_allocations.created == pinned);
    CHECK(B::counts().device_allocations.created == device);
}

TEST_CASE("a captured reader sees what is set before each launch") {
    const BasicStream<B> stream;
    Scalar scalar(1);
    DeviceBuffer<int, B> seen(1);
    const BasicGraph<B> graph = capture(stream, [&](Ref s) { copy(s, seen, std::as_const(scalar).span()); });
    const BasicGraphExec<B> executable(graph);
    for (int i = 0; i < 20; ++i) {
        scalar.set(stream, 3 * i);
        executable.launch(stream);
        CHECK(values_of(stream, seen) == std::vector<int>{3 * i});
    }
}

TEST_CASE("a scalar works again once its stream's fault is cleared") {
    const BasicStream<B> stream;
    for (const int slots : {1, 8}) {
        CAPTURE(slots);
        Scalar scalar(1, slots);
        stream.enqueue([] { throw std::runtime_error("the tape ran out"); });
        for (int i = 0; i < 2 * slots; ++i)
            scalar.set(stream, i);
        CHECK(contains(text_of([&] { stream.sync(); }), "the tape ran out"));
        B::clear_failure(stream.get());
        for (int i = 0; i < 2 * slots; ++i) {
            scalar.set(stream, 100 + i);
            CHECK(scalar.value_and_wait(stream) == 100 + i);
        }
    }
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("a task that sets a scalar does not write a slot that is on its way") {
    const BasicStream<B> stream;
    Scalar scalar(1, 1);
    std::string text;
    stream.enqueue([&] {
        scalar.set(stream, 2);
        text = text_of([&] { scalar.set(stream, 3); });
    });
    stream.sync();
    CHECK(contains(text, "a task cannot wait"));
    CHECK(scalar.value_and_wait(stream) == 2);
}

TEST_CASE("assigning a scalar brings along which of its slots comes next") {
    const BasicStream<B> stream;
    Scalar from(1, 2);
    Scalar to(0, 2);
    std::string text;
    stream.enqueue([&] {
        from.set(stream, 2); // its first slot is on its way while this task runs
        to = std::move(from);
        text = text_of([&] { to.set(stream, 3); });
    });
    stream.sync();
    CHECK(text == "");
    CHECK(to.value_and_wait(stream) == 3);
}
#endif

TEST_CASE("a scalar refuses what makes no sense") {
    const BasicStream<B> stream;
    CHECK(contains(text_of([] { Scalar scalar(0, 0); }), "slots is 0; expected 1 to 1048576"));
    CHECK(contains(text_of([] { Scalar scalar(0, -3); }), "slots is -3; expected 1 to 1048576"));

    Scalar scalar(7);
    const auto set = text_of([&] { (void)capture(stream, [&](Ref s) { scalar.set(s, 8); }); });
    CHECK(contains(set, "would bake"));
    const auto read = text_of([&] { (void)capture(stream, [&](Ref s) { (void)scalar.value_and_wait(s); }); });
    CHECK(contains(read, "being captured"));
    CHECK(scalar.value_and_wait(stream) == 7); // and works as before
    scalar.set(stream, 9);
    CHECK(scalar.value_and_wait(stream) == 9);

    Scalar other(std::move(scalar));
    CHECK(other.value_and_wait(stream) == 9);
    CHECK(contains(text_of([&] { scalar.set(stream, 1); }), "moved from"));
    CHECK(contains(text_of([&] { (void)scalar.value_and_wait(stream); }), "moved from"));
}

} // namespace graph_device_scalar
