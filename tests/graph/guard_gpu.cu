// Contract 6 on a device: what a capture refuses, beside what graph_capture.cpp tests on every backend.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "graph/guard_case.cuh"
#include "support/error_text.hpp"

namespace graph_guard {

using namespace sluice::test;

TEST_CASE_FIXTURE(Fixture, "guard: sound work is not refused") {
    CHECK(refusal_of([&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); }).empty());
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: a kernel on the default stream within the work") {
    const std::string reason = refusal_of([&](CudaStreamRef s) {
        add<<<1, 1, 0, s>>>(number.data(), 1);
        add<<<1, 1>>>(number.data() + 1, 1);
    });
    CHECK(contains(reason, "default stream was used"));
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: a copy that waits on the default stream within the work") {
    const std::string reason = refusal_of([&](CudaStreamRef s) {
        int out = 0;
        add<<<1, 1, 0, s>>>(number.data(), 1);
        (void)cudaMemcpy(&out, number.data() + 1, sizeof(int), cudaMemcpyDeviceToHost);
    });
    CHECK(contains(reason, "default stream was used"));
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: the default stream itself") {
    GraphOptions options;
    options.on_refusal = &listen;
    GraphCapture<NoKey, Cuda> graphs{options};
    for (int run = 0; run < 3; ++run)
        graphs.run(CudaStreamRef(cudaStreamLegacy),
                   [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
    CHECK(contains(told, "default stream cannot be captured"));
    CHECK(value() == 3);
    CHECK(contains(text_of([] { (void)capture(CudaStreamRef(cudaStreamLegacy), [](CudaStreamRef) {}); }),
                   "default stream"));
}

TEST_CASE_FIXTURE(Fixture, "guard: a wait, an allocation and a query whose failures the work ignores") {
    SUBCASE("stream") {
        CHECK(contains(refusal_of([&](CudaStreamRef s) {
                           add<<<1, 1, 0, s>>>(number.data(), 1);
                           (void)cudaStreamSynchronize(s);
                       }),
                       "cudaErrorStreamCapture"));
    }
    SUBCASE("device") {
        CHECK(contains(refusal_of([&](CudaStreamRef s) {
                           add<<<1, 1, 0, s>>>(number.data(), 1);
                           (void)cudaDeviceSynchronize();
                       }),
                       "cudaErrorStreamCapture"));
    }
    SUBCASE("allocation") {
        CHECK(contains(refusal_of([&](CudaStreamRef s) {
                           void* memory = nullptr;
                           add<<<1, 1, 0, s>>>(number.data(), 1);
                           (void)cudaMalloc(&memory, 16);
                           (void)cudaFree(memory);
                       }),
                       "cudaErrorStreamCapture"));
    }
    SUBCASE("event") {
        const CudaEvent event;
        CHECK(contains(refusal_of([&](CudaStreamRef s) {
                           add<<<1, 1, 0, s>>>(number.data(), 1);
                           (void)cudaEventRecord(event.get(), s);
                           (void)cudaEventQuery(event.get());
                       }),
                       "capture"));
    }
    (void)cudaGetLastError();
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: an event that was recorded before the capture") {
    const CudaStream other;
    CudaEvent event;
    event.record(other);
    CHECK(contains(refusal_of([&](CudaStreamRef s) {
                       s.wait(event);
                       add<<<1, 1, 0, s>>>(number.data(), 1);
                   }),
                   "refused"));
    CHECK(value() == 5);
}

#if CUDART_VERSION >= 13000
TEST_CASE_FIXTURE(Fixture, "guard: the batched copy that CUDA 13 leaves out of a capture without ending it") {
    // Its failure is all that tells; the capture ends well, one operation short.
    const auto batched = [&](CudaStreamRef s) {
        void* to = number.data() + 1;
        const void* from = number.data();
        std::size_t bytes = sizeof(int);
        cudaMemcpyAttributes attributes{};
        attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        std::size_t first = 0;
        add<<<1, 1, 0, s>>>(number.data(), 1);
        return cudaMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &first, 1, s);
    };
    SUBCASE("the work ignores the failure") {
        CHECK(contains(refusal_of([&](CudaStreamRef s) { (void)batched(s); }), "was left out"));
    }
    SUBCASE("the work swallows the failure, but said how many operations there are") {
        CHECK(contains(refusal_of([&](CudaStreamRef s) {
                           (void)batched(s);
                           (void)cudaGetLastError();
                           expect_operations(2);
                       }),
                       "left operations out: 2 were issued and 1 captured"));
    }
    CHECK(value() == 5);
    std::vector<int> values(2);
    copy_and_wait(stream, values, number);
    CHECK(values[1] == 5); // each eager run has made the copy
}
#endif

TEST_CASE_FIXTURE(Fixture,
                  "guard: the per-thread default stream within the work, where that is looked after") {
    GraphOptions options;
    options.capture.watch_per_thread_stream = true;
    const auto capturing_it = [] {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        CHECK(cudaStreamIsCapturing(cudaStreamPerThread, &status) == cudaSuccess);
        return status != cudaStreamCaptureStatusNone;
    };
    SUBCASE("a kernel") {
        const std::string reason = refusal_of(
            [&](CudaStreamRef s) {
                add<<<1, 1, 0, s>>>(number.data(), 1);
                add<<<1, 1, 0, cudaStreamPerThread>>>(number.data() + 1, 1);
            },
            options);
        CHECK(contains(reason, "per-thread default stream was used"));
        std::vector<int> values(2);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        copy_and_wait(stream, values, number);
        CHECK(values[1] == 5); // in the eager runs alone
    }
    SUBCASE("sound work, with a fork of its own") {
        const CudaStream side;
        CudaEvent forked, joined;
        CHECK(refusal_of(
                  [&](CudaStreamRef s) {
                      forked.record(s);
                      side.wait(forked);
                      add<<<1, 1, 0, side.get()>>>(number.data() + 1, 1);
                      joined.record(side);
                      add<<<1, 1, 0, s>>>(number.data(), 1);
                      s.wait(joined);
                  },
                  options)
                  .empty());
    }
    SUBCASE("work that throws") {
        GraphCapture<NoKey, Cuda> graphs{options};
        bool throws = false;
        const auto work = [&](CudaStreamRef s) {
            add<<<1, 1, 0, s>>>(number.data(), 1);
            if (throws) {
                CHECK(capturing_it());
                throw Error("just now");
            }
        };
        graphs.run(stream, work);
        throws = true;
        CHECK(text_of([&] { graphs.run(stream, work); }) == "just now");
        CHECK_FALSE(capturing_it());
        throws = false;
        for (int run = 0; run < 4; ++run)
            CHECK(graphs.run(stream, work).replayed());
    }
    SUBCASE("work that waits") {
        CHECK(contains(refusal_of(
                           [&](CudaStreamRef s) {
                               add<<<1, 1, 0, s>>>(number.data(), 1);
                               s.sync();
                           },
                           options),
                       "cudaErrorStreamCapture"));
    }
    CHECK_FALSE(capturing_it());
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: other threads may use the default stream now and then") {
    std::atomic<bool> stop{false};
    std::atomic<int> failures{0};
    std::thread other([&] {
        DeviceBuffer<int, Cuda> memory(1);
        if (cudaMemset(memory.data(), 0, sizeof(int)) != cudaSuccess)
            ++failures;
        while (!stop) {
            int out = 0;
            if (cudaMemcpy(&out, memory.data(), sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess)
                ++failures;
            void* more = nullptr;
            if (cudaMalloc(&more, 1 << 20) != cudaSuccess || cudaFree(more) != cudaSuccess)
                ++failures;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    });
    GraphOptions options;
    options.on_refusal = &listen;
    GraphCapture<int, Cuda> graphs{options};
    for (int run = 0; run < 40; ++run)
        graphs.run(stream, run / 2, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
    stop = true;
    other.join();
    CHECK(failures == 0);
    CHECK(told.empty());
    CHECK(graphs.counters().replays == 20);
    CHECK(value() == 40);
}

namespace {

/// A thread that enqueues work all the time, on the stream that `given` says, until the end of the scope.
class Busy {
public:
    explicit Busy(cudaStream_t given)
        : thread_([this, given] {
              DeviceBuffer<int, Cuda> memory(1);
              while (!stop_) {
                  add<<<1, 1, 0, given>>>(memory.data(), 1);
                  if (cudaStreamSynchronize(given) != cudaSuccess)
                      ++failures_;
                  ++rounds_;
              }
          }) {
        while (rounds_ == 0)
            std::this_thread::yield();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() {
        stop_ = true;
        thread_.join();
        CHECK(failures_ == 0);
    }

private:
    std::atomic<bool> stop_{false};
    std::atomic<int> failures_{0};
    std::atomic<int> rounds_{0};
    std::thread thread_;
};

} // namespace

TEST_CASE_FIXTURE(
    Fixture,
    "guard: beside a thread that is always on the default stream captures may be refused, and results stay") {
    GraphOptions options;
    options.on_refusal = &listen;
    GraphCapture<int, Cuda> graphs{options};
    {
        const Busy other(nullptr);
        for (int run = 0; run < 40; ++run)
            graphs.run(stream, run / 4, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
    }
    CHECK(value() == 40);
    CHECK((graphs.counters().refusals == 0) == told.empty());
    CHECK((told.empty() || contains(told, "the default stream was used meanwhile")));
    CHECK(graphs.counters().replays + graphs.counters().eager.total() == 40);
    graphs.run(stream, 100, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
    CHECK(
        graphs.run(stream, 100, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); }).replayed());
    CHECK(value() == 42);
}

TEST_CASE_FIXTURE(Fixture,
                  "guard: a thread on a stream of its own, its own default stream, or one that is not "
                  "watched refuses no capture") {
    const CudaStream own;
    struct Way {
        cudaStream_t stream;
        bool watches;
    };
    for (const Way& way : {Way{own.get(), true}, Way{cudaStreamPerThread, true}, Way{nullptr, false}}) {
        CAPTURE(way.watches);
        clear();
        GraphOptions options;
        options.on_refusal = &listen;
        options.capture.watch_default_stream = way.watches;
        GraphCapture<int, Cuda> graphs{options};
        {
            const Busy other(way.stream);
            for (int run = 0; run < 40; ++run)
                graphs.run(stream, run / 4, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
        }
        CHECK(told.empty());
        CHECK(graphs.counters().replays == 30);
        CHECK(value() == 40);
    }
}

TEST_CASE_FIXTURE(Fixture, "guard: memory that has been freed since is found where checking is on") {
    GraphOptions options{.check = true};
    GraphCapture<NoKey, Cuda> graphs{options};
    DeviceBuffer<int, Cuda> other(1 << 20);
    int* memory = other.data();
    fill_bytes(stream, other, 0);
    const auto work = [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(memory, 1); };
    for (int run = 0; run < 3; ++run)
        graphs.run(stream, work);
    stream.sync();
    other = DeviceBuffer<int, Cuda>();
    CHECK(contains(text_of([&] { graphs.run(stream, work); }), "has been freed"));
    CHECK(value() == 0);
}

TEST_CASE_FIXTURE(Fixture, "guard: with checking on, another argument under the same key is an error") {
    GraphCapture<NoKey, Cuda> graphs{{.check = true}};
    int amount = 1;
    const auto work = [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), amount); };
    for (int run = 0; run < 3; ++run)
        graphs.run(stream, work);
    amount = 2;
    CHECK(contains(text_of([&] { graphs.run(stream, work); }), "in argument 1 of kernel "));
    CHECK(value() == 3);
}

TEST_CASE_FIXTURE(Fixture, "guard: kernels keep the priority of the stream that they were captured on") {
    const PriorityRange range = Cuda::priorities();
    const CudaStream urgent(StreamOptions{.priority = range.greatest});
    const CudaGraph graph = capture(urgent, [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); });
    cudaGraphNode_t node = nullptr;
    std::size_t count = 1;
    REQUIRE(cudaGraphGetNodes(graph.get(), &node, &count) == cudaSuccess);
    cudaKernelNodeAttrValue value{};
    REQUIRE(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value) == cudaSuccess);
    CHECK(value.priority == range.greatest);
}

} // namespace graph_guard
