// Kernels that begin early do begin early, where the device can; what they wait for is over then.
#include <vector>

#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/launch_early_ops.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/gate.hpp"

namespace sluice::test::ops {

namespace {

__global__ void accumulate_kernel(unsigned* to, const unsigned* from, unsigned short factor,
                                  std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    wait_for_earlier_kernels();
    if (i < count)
        to[i] = factor * to[i] + from[i];
    let_next_kernel_begin();
}

} // namespace

Accumulate accumulate() { return &accumulate_kernel; }

} // namespace sluice::test::ops

namespace graph_launch_early_gpu {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr unsigned long long patience = 3'000'000'000; // ns
constexpr unsigned none = 0, met = 1, alone = 2;

/// Where two kernels meet. All by way of memory that caches don't keep.
struct Meeting {
    unsigned arrived; ///< The second kernel has begun.
    unsigned outcome; ///< Whether the first one has seen it before it ended.
    unsigned value;   ///< Written by the first at its end.
    unsigned seen;    ///< What the second one read there.
};

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/// Lets the next kernel begin, and ends when that has; after a while without it, too.
__global__ void meet_first(volatile Meeting* meeting, unsigned value, unsigned long long wait) {
    let_next_kernel_begin();
    const unsigned long long end = nanoseconds() + wait;
    while (meeting->arrived == 0 && nanoseconds() < end)
        __nanosleep(1000);
    const unsigned outcome = meeting->arrived != 0 ? met : alone;
    for (const unsigned long long late = nanoseconds() + 200'000; nanoseconds() < late;)
        __nanosleep(1000);
    meeting->outcome = outcome;
    meeting->value = value;
}

/// `arrived` is what the test is about: the one write before the wait.
__global__ void meet_second(volatile Meeting* meeting) {
    meeting->arrived = 1;
    wait_for_earlier_kernels();
    meeting->seen = meeting->value;
}

/// Waits, and touches nothing.
__global__ void pass_by() {
    let_next_kernel_begin();
    wait_for_earlier_kernels();
}

__global__ void read_value(volatile Meeting* meeting) {
    wait_for_earlier_kernels();
    meeting->seen = meeting->value;
}

__global__ void decide_for_it(ConditionSetter setter) { setter.set(1); }

bool can_begin_early() {
    const bool can = Cuda::can_begin_early(reinterpret_cast<const void*>(&meet_second));
    if (!can)
        MESSAGE("no kernel begins early on this device, or in this code, which is for older ones");
    return can;
}

struct Place {
    CudaStream stream;
    DeviceBuffer<Meeting, Cuda> meeting{1};
    bool can = can_begin_early();
    bool meets = can && streams_overlap<Cuda>();
    unsigned long long wait = meets ? patience : 1'000'000;

    Meeting* at() { return meeting.data(); }
    void clear() {
        fill_bytes(stream, meeting, 0);
        stream.sync();
    }
    Meeting read() {
        std::vector<Meeting> found(1);
        copy_and_wait(stream, found, meeting);
        return found[0];
    }
    void first(CudaStreamRef s, unsigned value) {
        meet_first<<<1, 1, 0, s>>>(at(), value, wait);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
    void second(CudaStreamRef s) { launch_early(s, {.grid = 1, .block = 1}, meet_second, at()); }
    void check(unsigned value) {
        const Meeting found = read();
        if (meets || !can)
            CHECK(found.outcome == (meets ? met : alone));
        CHECK(found.seen == value);
        CHECK(found.value == value);
    }
};

/// The first launch of a kernel loads it, which waits for kernels that run.
void load(Place& place) {
    for (int run = 0; run < 2; ++run) {
        meet_first<<<1, 1, 0, place.stream.get()>>>(place.at(), 1, 0);
        place.second(place.stream);
        launch_early(place.stream.ref(), {}, pass_by);
        launch_early(place.stream.ref(), {}, read_value, place.at());
        place.clear();
    }
}

} // namespace

TEST_CASE(
    "launch_early: a kernel begins before the one ahead of it has ended, and waits for what that writes") {
    Place place;
    load(place);
    for (unsigned value = 5; value < 8; ++value) {
        place.clear();
        place.first(place.stream, value);
        place.second(place.stream);
        place.check(value);
    }
}

TEST_CASE("launch_early: so it does in a capture") {
    Place place;
    load(place);
    const CudaGraph graph = capture(place.stream, [&](CudaStreamRef s) {
        place.first(s, 9);
        place.second(s);
    });
    CHECK(graph.nodes() == 2);
    CHECK(graph.edges() == 1);
    const CudaGraphExec executable(graph);
    for (int run = 0; run < 3; ++run) {
        place.clear();
        executable.launch(place.stream);
        place.check(9);
    }
}

TEST_CASE("launch_early: a kernel launched as usual begins when the one ahead of it has ended") {
    Place place;
    load(place);
    place.clear();
    place.wait = 1'000'000;
    place.first(place.stream, 3);
    meet_second<<<1, 1, 0, place.stream.get()>>>(place.at());
    const Meeting found = place.read();
    CHECK(found.outcome == alone);
    CHECK(found.seen == 3);
}

TEST_CASE("launch_early: what comes after several that begin early sees what came before them") {
    Place place;
    load(place);
    const auto work = [&](CudaStreamRef s) {
        meet_first<<<1, 1, 0, s.get()>>>(place.at(), 17, 100'000);
        for (int i = 0; i < 3; ++i)
            launch_early(s, {.grid = 200, .block = 64}, pass_by);
        launch_early(s, {}, read_value, place.at());
    };
    for (int run = 0; run < 10; ++run) {
        place.clear();
        work(place.stream);
        CHECK(place.read().seen == 17);
    }
    const CudaGraphExec executable(capture(place.stream, work));
    for (int run = 0; run < 10; ++run) {
        place.clear();
        executable.launch(place.stream);
        CHECK(place.read().seen == 17);
    }
}

TEST_CASE("launch_early: behind an event and behind a copy") {
    Place place;
    load(place);
    const CudaStream side;
    CudaEvent forked, joined;
    PinnedBuffer<Meeting, Cuda> from(1);
    from[0] = {none, none, 23, none};
    const auto behind_event = [&](CudaStreamRef s) {
        forked.record(s);
        side.wait(forked);
        meet_first<<<1, 1, 0, side.get()>>>(place.at(), 21, 100'000);
        joined.record(side);
        launch_early(s, {}, pass_by);
        s.wait(joined);
        launch_early(s, {}, read_value, place.at());
    };
    const auto behind_copy = [&](CudaStreamRef s) {
        meet_first<<<1, 1, 0, s.get()>>>(place.at(), 21, 100'000);
        copy(s, place.meeting, from);
        launch_early(s, {}, read_value, place.at());
    };
    const auto check = [&](auto work, unsigned expected) {
        const CudaGraphExec executable(capture(place.stream, work));
        for (int run = 0; run < 10; ++run) {
            place.clear();
            work(place.stream.ref());
            CHECK(place.read().seen == expected);
            place.clear();
            executable.launch(place.stream);
            CHECK(place.read().seen == expected);
        }
    };
    check(behind_event, 21);
    check(behind_copy, 23);
}

TEST_CASE("early: a node begins before the one ahead of it has ended, and waits for what that writes") {
    Place place;
    load(place);
    PinnedBuffer<Meeting, Cuda> from(1);
    from[0] = {};
    CudaGraphBuilder builder;
    const auto cleared = builder.copy(place.meeting, from);
    const auto first = builder.kernel({}, meet_first, {cleared}, place.at(), 31, place.wait);
    const auto second = builder.kernel({}, meet_second, {first.early()}, place.at());
    builder.empty({second});
    CHECK(builder.graph().nodes() == 4);
    CHECK(builder.graph().edges() == 3);
    auto executable = builder.instantiate();
    for (unsigned value = 31; value < 34; ++value) {
        executable.set(first, place.at(), value, place.wait);
        executable.launch(place.stream);
        place.check(value);
    }
    // The graph of it is a child of another, and an executable takes a graph of the same kind.
    CudaGraphBuilder outer;
    outer.child(builder.graph());
    auto outer_executable = outer.instantiate();
    outer_executable.launch(place.stream);
    place.check(31);
    CudaGraphExec updated(builder.graph());
    CHECK(updated.update(builder.graph()));
    updated.launch(place.stream);
    place.check(31);
}

TEST_CASE("early: beside a plain edge a kernel may begin as usual, and waits for both") {
    Place place;
    load(place);
    place.wait = 1'000'000;
    PinnedBuffer<Meeting, Cuda> from(1);
    from[0] = {};
    CudaGraphBuilder builder;
    const auto cleared = builder.copy(place.meeting, from);
    const auto first = builder.kernel({}, meet_first, {cleared}, place.at(), 37, place.wait);
    builder.kernel({}, meet_second, {cleared, first.early()}, place.at());
    CHECK(builder.graph().edges() == 3);
    auto executable = builder.instantiate();
    for (int run = 0; run < 3; ++run) {
        executable.launch(place.stream);
        const Meeting found = place.read();
        CHECK(found.value == 37);
        CHECK(found.seen == 37);
    }
}

TEST_CASE("early: a plain edge holds a kernel up until the node ahead of it has ended") {
    Place place;
    load(place);
    place.clear();
    CudaGraphBuilder builder;
    const auto first = builder.kernel({}, meet_first, {}, place.at(), 41, 1'000'000);
    builder.kernel({}, meet_second, {first}, place.at());
    builder.instantiate().launch(place.stream);
    const Meeting found = place.read();
    CHECK(found.outcome == alone);
    CHECK(found.seen == 41);
}

TEST_CASE("early: several edges to one kernel, and in the body of a branch") {
    Place place, other;
    load(place);
    const auto add = [&](CudaGraphBuilder& builder) {
        const auto one = builder.kernel({}, meet_first, {}, place.at(), 51, 100'000);
        const auto two = builder.kernel({}, meet_first, {}, other.at(), 52, 100'000);
        const auto between = builder.kernel({}, pass_by, {one.early(), two.early()});
        builder.kernel({}, read_value, {between.early()}, place.at());
        builder.kernel({}, read_value, {between.early()}, other.at());
    };
    CudaGraphBuilder builder, around;
    add(builder);
    CudaCondition condition;
    const auto decided = around.kernel({}, decide_for_it, {}, around.setter(condition));
    around.if_nonzero(condition, add, {decided});
    for (CudaGraphBuilder* const made : {&builder, &around}) {
        auto executable = made->instantiate();
        for (int run = 0; run < 5; ++run) {
            place.clear();
            other.clear();
            executable.launch(place.stream);
            CHECK(place.read().seen == 51);
            CHECK(other.read().seen == 52);
        }
    }
}

TEST_CASE("early: nodes that are no kernels are refused") {
    DeviceBuffer<Meeting, Cuda> meeting(1), to(1);
    CudaGraphBuilder builder;
    const auto filled = builder.fill(meeting, 0);
    const auto kernel = builder.kernel({}, pass_by, {filled});
    CHECK(contains(text_of([&] { builder.kernel({}, pass_by, {filled.early()}); }),
                   "only a kernel lets another begin early"));
    CHECK(contains(text_of([&] { builder.copy(to, meeting, {kernel.early()}); }),
                   "only a kernel begins early"));
    CHECK(contains(text_of([&] { builder.host([] {}, {kernel.early()}); }), "only a kernel begins early"));
    CHECK(builder.graph().nodes() == 2);
}

} // namespace graph_launch_early_gpu
