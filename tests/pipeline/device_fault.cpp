// Contract 5: a fault of the device. It is lost to the process from then on, so this is a program of its own,
// once as it is and once, with SLUICE_TEST_LAUNCH_BLOCKING, with faults attributed to stages.
#include <string>

#include "pipeline/chain.hpp"
#include "support/alive.hpp"

namespace pipeline_device_fault {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Cuda;
constexpr std::size_t words = 32;
constexpr std::size_t batches = 5;
#if defined(SLUICE_TEST_LAUNCH_BLOCKING)
constexpr bool launch_blocking = true;
#else
constexpr bool launch_blocking = false;
#endif

} // namespace

TEST_CASE("Contract 5: an illegal address is reported, reset says that the device is lost, nothing hangs") {
    const Alive before = alive_now<B>();
    {
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [](std::size_t index, PinnedBuffer<Word, B>& out) {
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 2, .slots = 2, .batches = 2 * batches}};
        Chain<B> chain(3, words, 2 * batches);
        Readback<Word, B> readback(
            words, [](auto, auto) {}, 8);
        chain.after = [&](std::size_t stage, CudaStreamRef stream, std::size_t batch) {
            if (stage == 2)
                readback.push(stream, chain.memory(2));
            if (stage == 1 && batch + 1 == batches) {
                ops::spin(stream, 20000); // the fault comes after the last submit
                ops::write_illegal_address(stream);
            }
        };
        auto pipeline = chain.pipeline<3>({.launch_blocking = launch_blocking});
        const Caught error([&] {
            for (std::size_t batch = 0; batch < batches; ++batch)
                pipeline.submit(*source.next());
            pipeline.finish();
        });
        REQUIRE(error);
        CHECK(error->name() == "cudaErrorIllegalAddress");
        CHECK(contains(error->call(), "cudaStreamSynchronize"));
        CHECK(error->stage() == (launch_blocking ? "second" : ""));
        CHECK(error->batch() == (launch_blocking ? std::optional(batches - 1) : std::nullopt));
        CHECK(pipeline.failed());
        CHECK(contains_all(text_of([&] { pipeline.submit(*source.next()); }),
                           {"submit: the pipeline has failed before", "cudaErrorIllegalAddress"}));
        CHECK(contains_all(text_of([&] { pipeline.finish(); }), {"finish: the pipeline has failed before"}));
        CHECK(contains_all(
            text_of([&] { pipeline.reset(); }),
            {"reset: the device is lost, and only a new process helps", "cudaErrorIllegalAddress"}));
        CHECK(pipeline.failed());
        CHECK(contains(text_of([&] { readback.finish(); }), "cudaErrorIllegalAddress"));
        CHECK(contains(text_of([&] { auto another = chain.pipeline<2>(); }), "cudaErrorIllegalAddress"));
    }
    CHECK(alive_now<B>() == before);
}

} // namespace pipeline_device_fault
