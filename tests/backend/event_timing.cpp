// The time between two events.
#include <chrono>
#include <thread>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"

namespace backend_event_timing {

using namespace sluice;
using namespace sluice::test;

namespace {
constexpr EventOptions with_timing{.timing = true};
}

TEST_CASE_TEMPLATE("the time between two events is the time of the work between them", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> start{with_timing};
    BasicEvent<B> stop{with_timing};

    const auto began = std::chrono::steady_clock::now();
    start.record(stream);
    run_on(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    stop.record(stream);
    stop.sync();
    const std::chrono::duration<float, std::milli> around = std::chrono::steady_clock::now() - began;

    const float between = elapsed_milliseconds(start, stop);
    CHECK(between >= 19.0f);
    CHECK(between <= around.count() + 1.0f);
    CHECK(elapsed_milliseconds(start, start) == 0.0f);
}

TEST_CASE_TEMPLATE("the latest record counts", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> once{with_timing};
    BasicEvent<B> twice{with_timing};
    BasicEvent<B> stop{with_timing};
    once.record(stream);
    twice.record(stream);
    run_on(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    twice.record(stream);
    stop.record(stream);
    stop.sync();
    CHECK(elapsed_milliseconds(once, stop) >= elapsed_milliseconds(twice, stop) + 19.0f);
}

TEST_CASE_TEMPLATE("without timing there is no time", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> timed{with_timing};
    BasicEvent<B> untimed;
    timed.record(stream);
    untimed.record(stream);
    stream.sync();
    for (const bool first : {true, false}) {
        const auto error = caught_error([&] {
            (void)(first ? elapsed_milliseconds(untimed, timed) : elapsed_milliseconds(timed, untimed));
        });
        REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
        CHECK(error->name() == "cudaErrorInvalidResourceHandle");
        CHECK(contains(error->call(), "cudaEventElapsedTime"));
#else
        CHECK(
            error->what() ==
            std::string("elapsed_milliseconds: both events must be made with EventOptions{.timing = true}"));
#endif
    }
}

TEST_CASE_TEMPLATE("an event that has not been reached has no time yet", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> start{with_timing};
    BasicEvent<B> stop{with_timing};
    const ScopedLatch latch;
    start.record(stream);
    hold(stream, latch);
    stop.record(stream);
    const auto error = caught_error([&] { (void)elapsed_milliseconds(start, stop); });
    REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
    CHECK(error->name() == "cudaErrorNotReady");
#else
    CHECK(error->what() ==
          std::string("elapsed_milliseconds: an event has not been reached yet; wait for both first"));
#endif
    latch.open();
    stop.sync();
    CHECK(elapsed_milliseconds(start, stop) >= 0.0f);
}

TEST_CASE_TEMPLATE("an event that was never recorded has no time", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> recorded{with_timing};
    const BasicEvent<B> never{with_timing};
    recorded.record(stream);
    recorded.sync();
    for (const bool first : {true, false}) {
        const auto error = caught_error([&] {
            (void)(first ? elapsed_milliseconds(never, recorded) : elapsed_milliseconds(recorded, never));
        });
        REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
        CHECK(error->name() == "cudaErrorInvalidResourceHandle");
#else
        CHECK(error->what() == std::string("elapsed_milliseconds: an event has never been recorded"));
#endif
    }
}

} // namespace backend_event_timing
