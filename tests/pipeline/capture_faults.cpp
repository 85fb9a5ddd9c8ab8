// Contract 5: faults that a backend keeps with the stream on which work was captured, as CUDA's does. Here a host backend does.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"
#include "pipeline/thrown.hpp"

namespace pipeline_capture_faults {

using namespace sluice;
using namespace sluice::test;

namespace {

// Tasks that are captured fail the stream that they were captured on.
struct Blaming : Host {
    static constexpr const char* name = "blaming";

    static std::mutex& mutex() {
        static std::mutex value;
        return value;
    }
    static std::vector<NativeStream>& failed() {
        static std::vector<NativeStream> streams;
        return streams;
    }
    static bool any_failed() {
        const std::lock_guard lock(mutex());
        return !failed().empty();
    }
    static void throw_if_failed(NativeStream stream) {
        Host::throw_if_failed(stream);
        const std::lock_guard lock(mutex());
        if (std::find(failed().begin(), failed().end(), stream) != failed().end())
            throw Error("bad pixel");
    }
    static void clear_failure(NativeStream stream) noexcept {
        Host::clear_failure(stream);
        const std::lock_guard lock(mutex());
        std::erase(failed(), stream);
    }
};
using B = Blaming;
using Ref = BasicStreamRef<B>;

// Stages of which one fails, once, when it is replayed.
struct Work {
    std::atomic<int> fails{-1}; // the stage
    std::atomic<int> done{0};

    auto stages() {
        return Stages{Stage{"first", [this](Ref stream, const int&, int&) { run(stream, 0); }},
                      Stage{"last", [this](Ref stream, int&) { run(stream, 1); }}};
    }
    void run(Ref stream, int stage) {
        const bool captured = Host::is_capturing(stream.get());
        Host::enqueue(stream.get(), [this, stage, captured, native = stream.get()] {
            int expected = stage;
            if (captured && fails.compare_exchange_strong(expected, -1)) {
                const std::lock_guard lock(Blaming::mutex());
                Blaming::failed().push_back(native);
            }
            ++done;
        });
    }
};

} // namespace

TEST_CASE("Contract 5: a fault of captured work is told with its stage, and forgotten by reset") {
    for (const bool each_stage : {false, true}) {
        for (const int bad : {0, 1}) {
            CAPTURE(each_stage);
            CAPTURE(bad);
            Work work;
            PipelineOptions options{
                .schedule = Schedule::graphed, .steps_per_graph = 1, .graph_each_stage = each_stage};
            Pipeline pipeline{work.stages(), Slots{[](int) { return 0; }}, options};
            const auto submit = [&](int count) {
                for (int batch = 0; batch < count; ++batch)
                    pipeline.submit(7);
            };
            submit(12);
            pipeline.finish();
            CHECK(work.done == 24);
            const auto wait = [&] {
                for (std::size_t stage = 0; stage < 2; ++stage)
                    pipeline.stream(stage).sync();
            };
            submit(8);
            wait(); // so that the fault is not an earlier batch's, told by the next `submit`
            work.fails = bad;
            submit(1);
            wait();
            REQUIRE(work.fails == -1);
            const Caught error([&] { pipeline.submit(7); });
            REQUIRE(error);
            CHECK(contains(error.text(), "bad pixel"));
            CHECK(error->stage() == (bad == 0 ? "first" : "last"));
            CHECK_FALSE(error->batch());
            CHECK(pipeline.failed());

            pipeline.reset();
            CHECK(Blaming::failed().empty());
            work.done = 0;
            submit(12);
            pipeline.finish();
            CHECK(work.done == 24);
        }
    }
}

} // namespace pipeline_capture_faults
