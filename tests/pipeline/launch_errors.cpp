// Contract 5 on a device: launches that are refused, and memory that is not there. A program of its own, for
// tools that count every failed call of the runtime as an error.
#include <cstddef>
#include <string>

#include "pipeline/chain.hpp"
#include "support/alive.hpp"

namespace pipeline_launch_errors {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Cuda;
constexpr std::size_t words = 32;
constexpr std::size_t batches = 4;

template <class P>
void submit_all(P& pipeline, const Inputs<B>& inputs) {
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(inputs[batch]).stays();
}

} // namespace

TEST_CASE("Contract 5: an error from outside is not blamed on a stage, and changes nothing") {
    const Inputs<B> inputs(batches, words);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        Chain<B> chain(3, words, batches);
        auto pipeline = chain.pipeline<3>({.schedule = schedule});
        for (std::size_t batch = 0; batch < batches; ++batch) {
            ops::launch_refused(pipeline.stream(0).get());
            const Caught error([&] { pipeline.submit(inputs[batch]).stays(); });
            REQUIRE(error);
            CHECK(error->name().starts_with("cudaErrorInvalid")); // …Configuration or …Value, by the driver
            CHECK(error->stage().empty());
            CHECK_FALSE(error->batch());
            CHECK_FALSE(pipeline.failed());
            pipeline.submit(inputs[batch]).stays();
        }
        pipeline.finish();
        CHECK(pipeline.submitted() == batches);
        CHECK(chain.results(batches) == chain_results(3, words, batches_from(0, batches)));
    }
}

TEST_CASE("Contract 5: a launch that is refused is reported with its stage and batch") {
    const Inputs<B> inputs(batches, words);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (std::size_t bad = 0; bad < 3; ++bad) {
            Chain<B> chain(3, words, batches);
            chain.after = [=](std::size_t stage, CudaStreamRef stream, std::size_t batch) {
                // Under Schedule::graphed it is called once more, eagerly, since its capture is refused.
                if (stage == bad && (schedule == Schedule::graphed ? batch >= 2 : batch == 2))
                    ops::launch_refused(stream);
            };
            auto pipeline = chain.pipeline<3>({.schedule = schedule});
            const Caught error([&] { submit_all(pipeline, inputs); });
            REQUIRE(error);
            CHECK(error->name().starts_with("cudaErrorInvalid")); // …Configuration or …Value, by the driver
            CHECK(error->stage() == Chain<B>::names[bad]);
            CHECK(error->batch() == std::size_t{2});
            CHECK(pipeline.failed());

            pipeline.reset();
            chain.after = nullptr;
            chain.clear();
            submit_all(pipeline, inputs);
            pipeline.finish();
            CHECK(chain.results(batches) == chain_results(3, words, batches_from(0, batches)));
        }
    }
}

TEST_CASE("Contract 5: slots that do not fit into memory are refused, and nothing is leaked") {
    const Alive before = alive_now<B>();
    Stage first{"first", [](CudaStreamRef, int, DeviceBuffer<std::byte>&) {}};
    Stage last{"last", [](CudaStreamRef, DeviceBuffer<std::byte>&) {}};
    const auto make = [](int slot) {
        return DeviceBuffer<std::byte>(slot == 0 ? 1024 : std::size_t{1} << 50);
    };
    const Caught error([&] { TwoStreamPipeline pipeline{first, last, make}; });
    REQUIRE(error);
    CHECK(error->name() == "cudaErrorMemoryAllocation");
    CHECK(contains(error.text(), "1125899906842624 bytes"));
    CHECK(alive_now<B>() == before);
    Cuda::check_launches(); // and no error is left behind
}

} // namespace pipeline_launch_errors
