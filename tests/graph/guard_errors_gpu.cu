// Errors that were there before a capture, or that its work leaves: whose they are, and that none is lost.
#include <string>

#include "graph/guard_case.cuh"
#include "support/error_text.hpp"
#include "support/gate.hpp"

namespace graph_guard {

using namespace sluice::test;

TEST_CASE_FIXTURE(Fixture, "guard: an error that was there before is the caller's, and not the work's") {
    GraphOptions options;
    options.on_refusal = &listen;
    GraphCapture<NoKey, Cuda> graphs{options};
    const auto work = [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); };
    const auto thrown = [&](auto&& call) {
        add<<<1, 4096, 0, stream.get()>>>(number.data(), 1); // more threads than there can be
        return text_of(call);
    };
    const auto run = [&] { graphs.run(stream, work); };
    const std::string eager = thrown(run);
    CHECK(contains(eager, "an earlier call, before this run, had left an error behind: "));
    CHECK(contains(eager, "cudaErrorInvalid"));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(graphs.size() == 0);
    CHECK_FALSE(graphs.run(stream, work).replayed());
    CHECK(contains(thrown(run), "before this run"));
    CHECK(graphs.run(stream, work).replayed());
    CHECK(contains(thrown([&] { graphs.recapture(stream, NoKey{}, work); }), "before this recapture"));
    CHECK(contains(thrown([&] { (void)capture(stream, work); }), "before this capture"));
    CHECK(graphs.run(stream, work).replayed());
    CHECK(told == "");
    CHECK(graphs.counters().refusals == 0);
    CHECK(value() == 3); // the work did not run where an error was thrown
}

TEST_CASE_FIXTURE(Fixture, "guard: what a kernel that cannot be launched leaves is the work's, and refused") {
    CHECK(contains(refusal_of([&](CudaStreamRef s) {
                       add<<<1, 1, 0, s>>>(number.data(), 1);
                       if (capturing())
                           add<<<1, 4096, 0, s>>>(number.data(), 1);
                   }),
                   "was left out"));
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: a query of a captured event that the work does not survive is a refusal") {
    CudaEvent event;
    CHECK(contains(refusal_of([&](CudaStreamRef s) {
                       add<<<1, 1, 0, s>>>(number.data(), 1);
                       event.record(s);
                       (void)event.is_done();
                   }),
                   "capture"));
    CHECK(value() == 5);
}

TEST_CASE_FIXTURE(Fixture, "guard: no query clears the error that an earlier launch left") {
    if (!streams_overlap<Cuda>())
        return;
    const auto once = [&](CudaStreamRef s) { add<<<1, 1, 0, s>>>(number.data(), 1); };
    const CudaGraph graph = capture(stream, once);
    const CudaGraph longer = capture(stream, [&](CudaStreamRef s) {
        once(s);
        once(s);
        fill_bytes(s, number.span().last(1), 0);
    });
    CudaGraphExec executable(graph);
    Gate<Cuda> gate;
    CudaEvent event;
    gate.hold(stream);
    event.record(stream);

    add<<<1, 4096, 0, stream.get()>>>(number.data(), 1); // more threads than there can be
    const cudaError_t left = cudaPeekAtLastError();
    CHECK(left != cudaSuccess); // which one, depends on the toolkit
    CHECK_FALSE(event.is_done());
    CHECK_FALSE(stream.is_done());
    CHECK(cudaPeekAtLastError() == left);
    int on_the_host = 0;
    CHECK_FALSE(Cuda::is_device_memory(&on_the_host));
    CHECK(Cuda::is_device_memory(number.data()));
    CHECK(cudaPeekAtLastError() == left);
    CHECK(stream.device() == Cuda::current_device());
    CHECK(Cuda::device_count() > 0);
    CHECK(cudaPeekAtLastError() == left);
    gate.open();
    stream.sync();
    CHECK(event.is_done());
    CHECK(stream.is_done());
    CHECK(contains(text_of([] { Cuda::check_launches(); }), cudaGetErrorName(left)));

    // What sluice expects to fail leaves nothing behind.
    CHECK_FALSE(executable.update(longer));
    (void)Cuda::signature(longer.get());
    (void)Cuda::device_pointers(longer.get());
    CHECK(cudaGetLastError() == cudaSuccess);
}

} // namespace graph_guard
