// Contract 10 for graphs: work is captured, and called, with the device current that its streams belong to. Needs two devices.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/branch_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_devices {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using On = DeviceGuard<B>;

bool two_devices() {
    if (B::device_count() >= 2)
        return true;
    MESSAGE("skipped: needs two devices, and there are " << B::device_count());
    return false;
}

// Notes with which device current it is called, and of which device the stream is.
struct Work {
    DeviceBuffer<int, B> memory{4};
    std::set<int> seen;

    void operator()(Ref stream) {
        seen.insert(B::current_device());
        seen.insert(stream.device());
        fill_bytes(stream, memory, 1);
    }
};

} // namespace

TEST_CASE("Contract 10: capture makes its stream on the device of the caller's") {
    if (!two_devices())
        return;
    std::optional<On> at_home(std::in_place, 1);
    const BasicStream<B> stream;
    Work work;
    at_home.reset();
    (void)capture(stream.ref(), work);
    CHECK(work.seen == std::set{1});
    CHECK(B::current_device() == 0);
}

TEST_CASE("Contract 10: GraphCapture calls its work on its own device, however it runs it") {
    if (!two_devices())
        return;
    for (const GraphOptions& options :
         {GraphOptions{.check = false}, GraphOptions{.check = false, .comparisons = 2},
          GraphOptions{.check = true}}) {
        std::optional<On> at_home(std::in_place, 1);
        const BasicStream<B> stream;
        Work work;
        GraphCapture<int, B> graphs(options);
        at_home.reset();
        for (int run = 0; run < 5; ++run) {
            work.seen.clear();
            const Replay replay = graphs.run(stream, 1, work);
            CHECK(replay.replayed() == (run > 0));
            CHECK((work.seen.empty() || work.seen == std::set{1}));
            CHECK(work.seen.empty() == (run > 1 && !*options.check && run > options.comparisons + 1));
            CHECK(B::current_device() == 0);
        }
        work.seen.clear();
        (void)graphs.recapture(stream, 1, work);
        CHECK(work.seen == std::set{1});
        CHECK(B::current_device() == 0);
        stream.sync();
    }
}

#if !defined(SLUICE_TEST_CUDA) // which takes the current device for that of a stream that is being captured
TEST_CASE("Contract 10: the bodies of branches are captured on the condition's device") {
    if (!two_devices())
        return;
    std::optional<On> at_home(std::in_place, 1);
    const BasicStream<B> stream;
    DeviceBuffer<unsigned, B> x(1);
    BasicCondition<B> condition;
    GraphCapture<int, B> graphs({.warmup = 0});
    at_home.reset();
    std::set<int> of_body;
    (void)graphs.run(stream, 1, [&](Ref s) {
        ops::decide(s.get(), condition.setter(s), x.data());
        // Whatever is current by then.
        const On away(0);
        if_nonzero(s, condition, [&](Ref body) {
            of_body.insert(body.device());
            ops::multiply_add(body.get(), x.data(), 1, 1);
        });
    });
    CHECK(of_body == std::set{1});
    stream.sync();
}
#endif

TEST_CASE(
    "Contract 10: what belongs to a device refuses a stream of another one, before anything is enqueued") {
    if (!two_devices())
        return;
    const BasicStream<B> here;
    std::optional<On> at_home(std::in_place, 1);
    const BasicStream<B> there;
    at_home.reset();
    const auto refusal = [](auto&& call) {
        const std::string text = text_of(call);
        CHECK(contains(text, "both must be the same device's"));
        return text;
    };

    PingPong<int, B> pair(2);
    CHECK(refusal([&] { pair.swap(there); }) == "PingPong::swap: the stream belongs to device 1, the pair to "
                                                "device 0; both must be the same device's");
    refusal([&] { pair.reset(there); });
    refusal([&] { (void)pair.front_and_wait(there); });
    CHECK(pair.front_and_wait(here).data() == pair.first().data());

    DeviceScalar<int, B> scalar(3);
    CHECK(refusal([&] { scalar.set(there, 4); }) ==
          "DeviceScalar::set: the stream belongs to device 1, the scalar to device 0; both must be the same "
          "device's");
    refusal([&] { (void)scalar.value_and_wait(there); });
    CHECK(scalar.value_and_wait(here) == 3);

    DeviceBuffer<int, B> memory(1);
    fill(here, memory, 5);
    here.sync();
    const BasicGraph<B> graph = capture(here, [&](Ref stream) { fill(stream, memory, 6); });
    const BasicGraphExec<B> executable(graph);
    CHECK(refusal([&] { executable.launch(there); }) ==
          "launch: the stream belongs to device 1, the graph to device 0; both must be the same device's");
    refusal([&] { executable.upload(there); });
    BasicGraphBuilder<B> builder;
    (void)builder.fill(memory, 6);
    auto built = builder.instantiate();
    refusal([&] { built.launch(there); });
    GraphCapture<int, B> graphs;
    int runs = 0;
    CHECK(contains(refusal([&] { (void)graphs.run(there, 1, [&](Ref) { ++runs; }); }), "GraphCapture::run"));
    CHECK(runs == 0);
    int value = 0;
    copy_and_wait(here, std::span<int>(&value, 1), memory);
    CHECK(value == 5);
}

} // namespace graph_devices
