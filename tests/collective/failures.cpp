// A rank that does not come, leaves, or does something else: the others end with one sentence, in time.
#include <string>
#include <thread>
#include <vector>

#include <sluice/graph.hpp>

#include "collective/ranks.hpp"
#include "support/doctest.hpp"

namespace collective_failures {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using std::chrono::milliseconds;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// One all-reduce of `count` elements, waited for.
void reduce_once(const Comm& rank, std::size_t count) {
    DeviceBuffer<float, B> memory(count);
    const BasicStream<B> stream;
    fill_bytes(stream, memory, 0);
    all_reduce(stream, rank, memory);
    stream.sync();
}

double seconds_of(const std::chrono::steady_clock::time_point& begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

TEST_CASE("a rank that never comes fails the others within the timeout") {
    if (!enough_devices(3))
        return;
    std::vector<Comm> ends = communicators(3, milliseconds(150));
    const Comm absent = std::move(ends[1]); // keeps its seat, and does nothing
    std::vector<Comm> present;
    present.push_back(std::move(ends[0]));
    present.push_back(std::move(ends[2]));
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> thrown =
        on_ranks(std::move(present), [](Comm rank) { reduce_once(rank, 5); });
    CHECK(seconds_of(begin) >= 0.14);
    CHECK(seconds_of(begin) < 8);
    for (const std::string& text : thrown) {
        CAPTURE(text);
#if defined(SLUICE_TEST_CUDA) // NCCL does not know who
        CHECK(contains(
            text,
            "the other ranks did not come to collective number 0, all_reduce of 5 float32 (sum), within"));
#else
        CHECK(contains(text, "rank 1 did not come to the all_reduce of 5 float32 (sum)"));
#endif
        CHECK(contains(text, "within 150 ms"));
    }
    CHECK_THROWS_AS(absent.require_alive(), Error);
}

TEST_CASE("all ranks that have not come are named, the first one too") {
    if (!enough_devices(3))
        return;
    std::vector<Comm> ends = communicators(3, milliseconds(150));
    std::vector<Comm> present;
    present.push_back(std::move(ends[1]));
    const std::vector<std::string> thrown =
        on_ranks(std::move(present), [](Comm rank) { reduce_once(rank, 5); });
    CAPTURE(thrown[0]);
#if !defined(SLUICE_TEST_CUDA) // NCCL does not know who
    CHECK(contains(thrown[0],
                   "rank 0 and rank 2 did not come to the all_reduce of 5 float32 (sum) of rank 1 of 3"));
#endif
}

TEST_CASE("a rank that goes in the middle of many steps fails the others at once") {
    if (!enough_devices(3))
        return;
    // The timeout is far away: it is not what ends the others.
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> thrown = on_ranks(communicators(3), [](Comm rank) {
        for (int step = 0; step < 40; ++step) {
            if (rank.rank() == 2 && step == 17)
                throw std::runtime_error("rank 2 dies");
            reduce_once(rank, 100);
        }
    });
    CHECK(seconds_of(begin) < 30);
    CHECK(thrown[2] == "rank 2 dies");
    for (int other : {0, 1}) {
        const std::string& text = thrown[static_cast<std::size_t>(other)];
        CAPTURE(text);
        CHECK((contains(text, "rank 2 of 3 has left") || contains(text, "of 3 has left")));
    }
}

TEST_CASE("a rank that has gone before the others come fails them") {
    if (!enough_devices(2))
        return;
    std::vector<Comm> ends = communicators(2);
    ends.pop_back();
    const std::vector<std::string> thrown =
        on_ranks(std::move(ends), [](Comm rank) { reduce_once(rank, 3); });
    CAPTURE(thrown[0]);
    CHECK(contains(thrown[0], "rank 1 of 2 has left"));
    // In no stage.
    CHECK(contains(thrown[0], "; rank 0 needs it for "));
    CHECK(contains(thrown[0], "all_reduce of 3 float32 (sum)"));
    CHECK_FALSE(contains(thrown[0], "in stage"));
}

#if !defined(SLUICE_TEST_CUDA) // where a thread sees it, some time
TEST_CASE("a communicator that is assigned to leaves its own group, and has the other one's rank") {
    if (!enough_devices(2))
        return;
    std::vector<Comm> first = communicators(2), second = communicators(2);
    first[0] = std::move(second[1]);
    Comm& itself = first[0];
    first[0] = std::move(itself);
    CHECK(first[0].rank() == 1);
    CHECK(contains(on_ranks(
                       [&] {
                           std::vector<Comm> left;
                           left.push_back(std::move(first[1]));
                           return left;
                       }(),
                       [](Comm rank) { reduce_once(rank, 3); })[0],
                   "rank 0 of 2 has left"));
    std::vector<Comm> whole;
    whole.push_back(std::move(second[0]));
    whole.push_back(std::move(first[0]));
    for (const std::string& text : on_ranks(std::move(whole), [](Comm rank) { reduce_once(rank, 3); }))
        CHECK(text == "");
}

TEST_CASE("a rank that leaves when no rank waits for it does not fail the others, until they need it") {
    if (!enough_devices(2))
        return;
    std::vector<Comm> ends = communicators(2);
    ends.pop_back();
    ends[0].require_alive(); // may write its checkpoint
    const std::vector<std::string> thrown =
        on_ranks(std::move(ends), [](Comm rank) { reduce_once(rank, 3); });
    CHECK(contains(thrown[0], "rank 1 of 2 has left"));
}
#endif

TEST_CASE("abort ends all ranks with its reason, and the group stays failed") {
    if (!enough_devices(2))
        return;
    const std::vector<std::string> thrown = on_ranks(communicators(2), [](Comm rank) {
        if (rank.rank() == 0)
            rank.abort("the loss is not a number");
        std::string first;
        try {
            reduce_once(rank, 7);
        } catch (const Error& error) {
            first = error.what();
        }
        CHECK(contains(first, "the loss is not a number"));
        reduce_once(rank, 7);
    });
    for (const std::string& text : thrown)
        CHECK(contains(text, "the loss is not a number"));
}

TEST_CASE(
    "ranks that have nothing to do for longer than the timeout are not given up, after replays either") {
    if (!enough_devices(2))
        return;
#if defined(SLUICE_TEST_CUDA)
    constexpr milliseconds timeout(2000); // the first collective connects the ranks
#else
    constexpr milliseconds timeout(300);
#endif
    const std::vector<std::string> thrown = on_ranks(communicators(2, timeout), [&](Comm rank) {
        DeviceBuffer<float, B> memory(512);
        const BasicStream<B> stream;
        const auto reduce_in_parts = [&](BasicStreamRef<B> s) {
            for (std::size_t part = 0; part < 4; ++part)
                all_reduce(s, rank, memory.span().subspan(part * 128, 128), Reduction::average);
        };
        fill(stream, memory, static_cast<float>(rank.rank()));
        reduce_in_parts(stream);
        stream.sync();
        const BasicGraph<B> graph = capture(stream, reduce_in_parts);
        const BasicGraphExec<B> replays(graph);
        for (int i = 0; i < 50; ++i) {
            replays.launch(stream);
            if (i % 8 == 0)
                reduce_in_parts(stream);
        }
        stream.sync();
        std::this_thread::sleep_for(timeout * 5 / 4);
        replays.launch(stream);
        std::vector<float> values(memory.size());
        copy_and_wait(stream, values, memory);
        CHECK(values == std::vector<float>(memory.size(), 0.5f));
        rank.require_alive();
    });
    for (const std::string& text : thrown)
        CHECK(text == "");
}

#if !defined(SLUICE_TEST_CUDA) // NCCL does not look whether calls fit each other
TEST_CASE("ranks that make different calls are told so") {
    if (!enough_devices(2))
        return;
    const std::vector<std::string> thrown =
        on_ranks(communicators(2), [](Comm rank) { reduce_once(rank, rank.rank() == 0 ? 5 : 6); });
    for (const std::string& text : thrown) {
        CAPTURE(text);
        CHECK(contains(text, "all_reduce of 5 float32 (sum)"));
        CHECK(contains(text, "all_reduce of 6 float32 (sum)"));
        CHECK(contains(text, "all ranks must make the same calls in the same order"));
    }
}

TEST_CASE("calls match when all that both sides must agree on is the same") {
    using namespace detail;
    int here = 0, there = 0;
    const CollectiveCall call{.kind = CollectiveKind::broadcast,
                              .element = CollectiveElement::int32,
                              .reduction = Reduction::sum,
                              .root = 1,
                              .in = &here,
                              .out = &here,
                              .count = 7};
    const auto changed = [&](auto&& change) {
        CollectiveCall other = call;
        change(other);
        CHECK(other.matches(call) == call.matches(other));
        return !other.matches(call);
    };
    CHECK_FALSE(changed([](CollectiveCall&) {}));
    CHECK_FALSE(changed([&](CollectiveCall& of) { of.in = of.out = &there; }));
    CHECK_FALSE(changed([&](CollectiveCall& of) { of.stage = "reduce"; }));
    CHECK(changed([](CollectiveCall& of) { of.kind = CollectiveKind::all_reduce; }));
    CHECK(changed([](CollectiveCall& of) { of.element = CollectiveElement::float32; }));
    CHECK(changed([](CollectiveCall& of) { of.reduction = Reduction::maximum; }));
    CHECK(changed([](CollectiveCall& of) { of.root = 0; }));
    CHECK(changed([](CollectiveCall& of) { of.count = 6; }));

    // The text has what counts for the kind.
    CHECK(call.text() == "broadcast of 7 int32 from rank 1");
    const auto text_of_kind = [&](CollectiveKind kind) {
        CollectiveCall other = call;
        other.kind = kind;
        return other.text();
    };
    CHECK(text_of_kind(CollectiveKind::all_reduce) == "all_reduce of 7 int32 (sum)");
    CHECK(text_of_kind(CollectiveKind::reduce_scatter) == "reduce_scatter of 7 int32 (sum)");
    CHECK(text_of_kind(CollectiveKind::all_gather) == "all_gather of 7 int32");
    CollectiveCall in_stage = call;
    in_stage.stage = "reduce";
    CHECK(in_stage.text() == "broadcast of 7 int32 from rank 1 in stage 'reduce'");
}

TEST_CASE("two collectives of a rank at the same time are refused") {
    if (!enough_devices(2))
        return;
    std::vector<Comm> ends = communicators(2);
    DeviceBuffer<float, B> memory(4);
    const BasicStream<B> first;
    const BasicStream<B> second;
    fill_bytes(first, memory, 0);
    first.sync();
    std::string text;
    try {
        all_reduce(first, ends[0], memory.span().first(2));
        all_reduce(second, ends[0], memory.span().last(2));
        second.sync();
        first.sync();
    } catch (const Error& error) {
        text = error.what();
    }
    CAPTURE(text);
    // A checked backend sees it before it happens.
    if (detail::IsChecked<B>::value) {
        CHECK(contains(text, "collective of the same communicator"));
        ends[0].abort("over");
    } else {
        CHECK(contains(text, "two collectives of rank 0 of 2 ran at the same time"));
    }
}
#endif

} // namespace collective_failures
