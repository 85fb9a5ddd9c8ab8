// Contract 4: batches before one for which a stage throws pass all stages, under every schedule.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace pipeline_before_a_fault {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr std::size_t batches = 24;

struct Batch {
    PinnedSpan<const int, B> in;
    DeviceSpan<int, B> out;
    std::size_t index = 0;
};
struct Slot {
    DeviceBuffer<int, B> values;
};

// What has come out, where one of the three stages throws for one batch. 0: nothing.
std::vector<int> trained(const PipelineOptions& options, std::size_t throwing, std::size_t at) {
    PinnedBuffer<int, B> input(batches);
    DeviceBuffer<int, B> output(batches);
    const BasicStream<B> stream;
    for (std::size_t i = 0; i < batches; ++i)
        input[i] = static_cast<int>(i) + 1;
    fill_bytes(stream, output, 0);
    stream.sync();

    const auto look = [&](std::size_t stage, const Batch& batch) {
        if (stage == throwing && batch.index == at)
            throw std::runtime_error("as asked");
    };
    Stage first{"first", [&](BasicStreamRef<B> on, const Batch& batch, Tagged<int, Slot>& out) {
                    look(0, batch);
                    copy(on, out.values, batch.in);
                }};
    Stage second{"second", [&](BasicStreamRef<B> on, const Batch& batch, const Tagged<int, Slot>& in,
                               Tagged<char, Slot>& out) {
                     look(1, batch);
                     copy(on, out.values, in.values);
                 }};
    Stage third{"third", [&](BasicStreamRef<B> on, const Batch& batch, const Tagged<char, Slot>& in) {
                    look(2, batch);
                    copy(on, batch.out, in.values);
                }};
    const auto make = [](auto tag) { return Tagged<decltype(tag), Slot>{Slot{DeviceBuffer<int, B>(1)}}; };
    {
        Pipeline pipeline{Stages{first, second, third},
                          Slots{[&](int) { return make(int{}); }, [&](int) { return make(char{}); }},
                          options};
        std::string what;
        try {
            for (std::size_t i = 0; i < batches; ++i)
                (void)pipeline.submit(Batch{input.span().subspan(i, 1), output.span().subspan(i, 1), i});
            pipeline.finish();
        } catch (const Error& error) {
            what = error.what();
        }
        CHECK(what == "stage '" +
                          std::string(throwing == 0   ? "first"
                                      : throwing == 1 ? "second"
                                                      : "third") +
                          "', batch " + std::to_string(at) + ": its callable threw: as asked");
    }
    std::vector<int> result(batches);
    copy_and_wait(stream, result, output);
    return result;
}

} // namespace

TEST_CASE("Contract 4: batches before one for which a stage throws are not lost, under any schedule") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int steps : {0, 1, 4}) {
            for (const std::size_t throwing : {0u, 1u, 2u}) {
                for (const std::size_t at : {0u, 3u, 13u, 22u}) {
                    CAPTURE(std::string(to_string(schedule)));
                    CAPTURE(steps);
                    CAPTURE(throwing);
                    CAPTURE(at);
                    PipelineOptions options{.schedule = schedule, .steps_per_graph = steps};
                    options.graphs.on_refusal = nullptr;
                    std::vector<int> expected(batches, 0);
                    for (std::size_t i = 0; i < at; ++i)
                        expected[i] = static_cast<int>(i) + 1;
                    CHECK(trained(options, throwing, at) == expected);
                }
            }
        }
    }
}

} // namespace pipeline_before_a_fault
