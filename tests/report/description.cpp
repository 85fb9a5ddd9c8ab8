// A pipeline described before it runs.
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/report.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_description {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Images {
    DeviceBuffer<float, Host> values{256};
};
struct Left {
    std::vector<DeviceBuffer<char, Host>> parts;
};
struct Right {
    PinnedBuffer<double, Host> values{32};
    DeviceBuffer<char, Host> also{100};
};
struct Loss {
    PinnedBuffer<float, Host> value{1};
};

Left make_left(int /*slot*/) {
    const DeviceBuffer<char, Host> gone(5000); // by the time that the slot is there
    Left left;
    left.parts.emplace_back(10);
    left.parts.emplace_back(20);
    return left;
}

// load -> left, right -> loss, which reads the batch as well; report is on the CPU.
auto diamond(const PipelineOptions& options) {
    Stage load{"load", [](HostStreamRef, const int&, Images&) {}, StageOptions<Host>{.priority = -1}};
    Stage left{"left", [](HostStreamRef, const Images&, Left&) {}, StageOptions<Host>{.lanes = 2}};
    Stage right{"right", [](HostStreamRef, const Images&, Right&) {}, StageOptions<Host>{.graphed = false}};
    Stage loss{"loss", [](HostStreamRef, const int&, const Left&, const Right&, Loss&) {}};
    Stage report{"report", [](const Loss&) {}};
    return Pipeline{Stages{load, left, right, loss, report},
                    Slots{[](int) { return Images{}; }, make_left, [](int) { return Right{}; },
                          [](int) { return Loss{}; }},
                    options};
}

std::string waits_of(const StageDescription& stage) {
    std::string text;
    for (const StageWait& wait : stage.waits)
        text += (wait.former ? "f" : "s") + std::to_string(wait.stage);
    return text;
}

} // namespace

TEST_CASE("a description has what each stage takes, waits for and makes, before anything was submitted") {
    const auto pipeline = diamond({.slots = 3});
    const PipelineDescription description = describe(pipeline);
    CHECK(description.backend == std::string(Host::name));
    CHECK(description.schedule == Schedule::overlapped);
    CHECK(description.graphs == GraphedWork::none);
    CHECK(description.slots == 3);
    REQUIRE(description.stages.size() == 5);
    const StageDescription& load = description.stages[0];
    const StageDescription& left = description.stages[1];
    const StageDescription& right = description.stages[2];
    const StageDescription& loss = description.stages[3];
    const StageDescription& report = description.stages[4];

    CHECK(load.name == "load");
    CHECK(load.unit == "host 0");
    CHECK(load.priority == -1);
    CHECK(load.reads_batch);
    CHECK(load.reads.empty());
    CHECK(waits_of(load) == "f1f2"); // its readers, for the batch before in the slot
    CHECK(left.lanes == 2);
    CHECK(left.reads == std::vector<std::size_t>{0});
    CHECK(waits_of(left) == "s0f3");
    CHECK(waits_of(right) == "s0f3");
    CHECK_FALSE(right.graphed);
    CHECK(loss.graphed);
    CHECK(loss.reads_batch);
    CHECK(loss.reads == std::vector<std::size_t>{1, 2});
    CHECK(waits_of(loss) == "s1s2f4");
    CHECK(report.is_cpu);
    CHECK_FALSE(report.graphed);
    CHECK_FALSE(report.has_output);
    CHECK(waits_of(report) == "s3");

    // Each lane its own stream.
    CHECK(load.streams == std::vector<std::size_t>{0});
    CHECK(left.streams == std::vector<std::size_t>{1, 2});
    CHECK(right.streams == std::vector<std::size_t>{3});
}

TEST_CASE("a description has the bytes that the slots hold in buffers, and no more") {
    const PipelineDescription description = describe(diamond({.slots = 3}));
    const auto bytes = [&](std::size_t stage) {
        return std::vector<std::size_t>{description.stages[stage].device_bytes,
                                        description.stages[stage].pinned_bytes};
    };
    CHECK(bytes(0) == std::vector<std::size_t>{3 * 256 * sizeof(float), 0});
    CHECK(bytes(1) == std::vector<std::size_t>{std::size_t{3 * 30}, 0});
    CHECK(bytes(2) == std::vector<std::size_t>{std::size_t{3 * 100}, 3 * 32 * sizeof(double)});
    CHECK(bytes(3) == std::vector<std::size_t>{0, 3 * sizeof(float)});
    CHECK(bytes(4) == std::vector<std::size_t>{0, 0});
    CHECK(description.stages[1].slot_bytes == sizeof(Left));
    CHECK(description.stages[4].slot_bytes == 0);
}

TEST_CASE("lanes of a stage have one stream under serial, the first stage's as well") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        std::vector<std::size_t> used; // by batch: the number of its stream among those of the stage
        std::vector<HostStreamRef> streams;
        Stage first{"first",
                    [&](HostStreamRef stream, const int&, int&) {
                        std::size_t number = 0;
                        while (number < streams.size() && streams[number].get() != stream.get())
                            ++number;
                        if (number == streams.size())
                            streams.push_back(stream);
                        used.push_back(number);
                    },
                    StageOptions<Host>{.lanes = 2}};
        Stage second{"second", [](HostStreamRef, const int&) {}};
        TwoStreamPipeline pipeline{first, second, [](int) { return 0; }, {.schedule = schedule, .slots = 2}};
        for (int batch = 0; batch < 4; ++batch)
            pipeline.submit(batch);
        pipeline.finish();
        using Used = std::vector<std::size_t>;
        CHECK(used == (schedule == Schedule::serial ? Used{0, 0, 0, 0} : Used{0, 1, 0, 1}));
    }
}

TEST_CASE("a description says how the schedule runs the stages") {
    const PipelineDescription serial = describe(diamond({.schedule = Schedule::serial}));
    for (const StageDescription& stage : serial.stages)
        CHECK(stage.streams == std::vector<std::size_t>{0});
    CHECK(serial.stages[1].lanes == 1);

    // One that opts out and a CPU stage leave a graph for each of the others.
    CHECK(describe(diamond({.schedule = Schedule::graphed})).graphs == GraphedWork::stages);
    const BasicStream<Host> own;
    Stage encode{"encode", [](HostStreamRef, const int&, Images&) {},
                 StageOptions<Host>{.stream = own.ref()}};
    Stage train{"train", [](HostStreamRef, const Images&) {}, StageOptions<Host>{.stream = own.ref()}};
    const TwoStreamPipeline two{
        encode, train, [](int) { return Images{}; }, {.schedule = Schedule::graphed, .steps_per_graph = 4}};
    const PipelineDescription graphed = describe(two);
    CHECK(graphed.graphs == GraphedWork::steps);
    const auto says = [](const PipelineDescription& of, const std::string& graphs) {
        CHECK(contains(to_json(of), "\"graphs\":\"" + graphs + '"'));
    };
    says(graphed, "steps");
    says(serial, "none");
    says(describe(diamond({.schedule = Schedule::graphed})), "stages");
    CHECK(graphed.steps_per_graph == 4);
    CHECK(graphed.stages[0].external_stream);
    CHECK(graphed.stages[0].streams == graphed.stages[1].streams);
    // Where one stage has such a stream, the others' are still the pipeline's.
    Stage inside{"inside", [](HostStreamRef, const Images&) {}};
    const TwoStreamPipeline one{encode, inside, [](int) { return Images{}; }};
    CHECK(describe(one).stages[0].external_stream);
    CHECK_FALSE(describe(one).stages[1].external_stream);
}

TEST_CASE("a description knows windows, what is changed in place, and the bound") {
    Stage load{"load", [](HostStreamRef, const int&, Images&) {}};
    Stage filter{"filter", [](HostStreamRef, InPlace<Images>&) {}};
    Stage add{"add", [](HostStreamRef, const Last<3, Images>&) {}};
    const Pipeline pipeline{Stages{load, filter, add}, Slots{[](int) { return Images{}; }},
                            PipelineOptions{.in_flight = 5}};
    const PipelineDescription description = describe(pipeline);
    CHECK(description.in_flight == 5);
    CHECK(description.slots == 4); // two, and two more that the window holds
    CHECK(description.stages[0].device_bytes == 4 * 256 * sizeof(float));
    CHECK(description.stages[1].in_place);
    CHECK(description.stages[1].device_bytes == 0);
    CHECK(description.stages[1].window == 1);
    CHECK_FALSE(description.stages[0].in_place);
    CHECK(description.stages[2].window == 3);
    REQUIRE(description.stages[0].waits.size() == 1);
    CHECK(description.stages[0].waits[0].stage == 2);
    CHECK(description.stages[0].waits[0].former);
    CHECK(description.stages[0].waits[0].ahead == 2);
    CHECK(contains(to_dot(description), "filter\\nhost 0, stream 1\\nin place\"];"));
}

TEST_CASE("a picture of a description says on how many threads a CPU stage runs") {
    PipelineDescription description = describe(diamond({}));
    StageDescription& report = description.stages[4];
    report.streams.clear(); // as where such stages are not on streams
    CHECK(contains(to_dot(description), ", a thread"));
    report.lanes = 3;
    CHECK(contains(to_dot(description), ", 3 threads"));
}

TEST_CASE("a description knows rates") {
    Stage load{"load", [](HostStreamRef, const int&, Images&) {}};
    Stage add{"add", [](HostStreamRef, const Images&, Loss&, Turn) {}, StageOptions<Host>{.every = 4}};
    Stage write{"write", [](HostStreamRef, const Loss&) {}};
    const Pipeline pipeline{Stages{load, add, write},
                            Slots{[](int) { return Images{}; }, [](int) { return Loss{}; }}};
    const PipelineDescription description = describe(pipeline);
    const auto rates = [&](std::size_t stage) {
        return std::vector<std::size_t>{description.stages[stage].batches_a_run,
                                        description.stages[stage].every};
    };
    CHECK(rates(0) == std::vector<std::size_t>{1, 1});
    CHECK(rates(1) == std::vector<std::size_t>{1, 4});
    CHECK(rates(2) == std::vector<std::size_t>{4, 1});
    CHECK(contains(to_dot(description), "stream 1, 4 runs an output\\n2 slots"));
    CHECK(contains(to_dot(description), "stream 2, once for 4 batches\"];"));
}

TEST_CASE("a pipeline whose type says only what it takes is described as the same pipeline is") {
    Stage encode{"encode", [](HostStreamRef, const int&, Images&) {}};
    Stage train{"train", [](HostStreamRef, const Images&) {}};
    const auto make = [](int) { return Images{}; };
    const AnyPipeline<int, Host> any{encode, train, make};
    const TwoStreamPipeline two{encode, train, make};
    CHECK(to_json(describe(any)) == to_json(describe(two)));
    CHECK(to_dot(describe(any)) == to_dot(describe(two)));
}

TEST_CASE("a description as JSON and as a picture") {
    Stage encode{"en\"code\\\n", [](HostStreamRef, const int&, Images&) {}};
    Stage train{"train", [](HostStreamRef, const Images&) {}};
    const TwoStreamPipeline pipeline{encode, train, [](int) { return Images{}; }};
    const PipelineDescription description = describe(pipeline);
    const std::string backend = Host::name;
    CHECK(
        to_json(description) ==
        R"({"backend":")" + backend +
            R"(","schedule":"overlapped","graphs":"none","steps_per_graph":0,"slots":2,"in_flight":128,"stages":[)"
            R"({"name":"en\"code\\\u000a","unit":")" +
            backend +
            R"( 0","is_cpu":false,"lanes":1,"streams":[0],"external_stream":false,"priority":0,"multiprocessors":0,"graphed":true,)"
            R"("reads_batch":true,"reads":[],"window":1,"batches_a_run":1,"every":1,"in_place":false,"waits":[{"stage":1,"former":true,"ahead":0}],"has_output":true,"slot_bytes":)" +
            std::to_string(sizeof(Images)) +
            R"(,"device_bytes":2048,"pinned_bytes":0},)"
            R"({"name":"train","unit":")" +
            backend +
            R"( 0","is_cpu":false,"lanes":1,"streams":[1],"external_stream":false,"priority":0,"multiprocessors":0,"graphed":true,)"
            R"("reads_batch":false,"reads":[0],"window":1,"batches_a_run":1,"every":1,"in_place":false,"waits":[{"stage":0,"former":false,"ahead":0}],"has_output":false,)"
            R"("slot_bytes":0,"device_bytes":0,"pinned_bytes":0}]})");
    CHECK(to_dot(description) == "digraph pipeline {\n"
                                 "  rankdir=LR;\n"
                                 "  label=\"overlapped, at most 128 batches in flight\";\n"
                                 "  node [shape=box];\n"
                                 "  batch [shape=ellipse];\n"
                                 "  s0 [label=\"en\\\"code\\\\\uFFFD\\n" +
                                     backend +
                                     " 0, stream 0\\n2 slots, device 2 KiB\"];\n"
                                     "  s1 [label=\"train\\n" +
                                     backend +
                                     " 0, stream 1\"];\n"
                                     "  batch -> s0;\n"
                                     "  s1 -> s0 [style=dashed, constraint=false];\n"
                                     "  s0 -> s1;\n"
                                     "}\n");
}

} // namespace report_description
