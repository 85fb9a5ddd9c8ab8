// A program whose own types are called as some names in sluice's bodies are: no compiler warns that one hides the other.
struct Accumulator {};
struct Callable {};
struct Calls {};
struct Element {};
struct Given {};
struct Graph {};
struct Inputs {};
struct Kept {};
struct Key {};
struct Node {};
struct Places {};
struct Queue {};
struct Result {};
struct Sum {};
struct Times {};
struct Value {};
struct Wait {};
struct Work {};

#include <cstddef>

#include <sluice/ragged/reshape.hpp>
#include <sluice/ragged/rows.hpp>
#include <sluice/report.hpp>
#include <sluice/sluice.hpp>

struct Batch {
    sluice::PinnedBuffer<float> values{8};
};
struct Slot {
    sluice::DeviceBuffer<float> values{8};
};

int main() {
    sluice::Source source{
        [](int) { return Batch{}; }, [](std::size_t, Batch&) {}, {.workers = 2, .batches = 4}};
    sluice::Readback<float> losses{8, [](std::size_t, auto) {}};
    sluice::Stage load{"load", [](sluice::StreamRef stream, const Batch& in, Slot& out) {
                           sluice::copy(stream, out.values, in.values);
                       }};
    sluice::Stage train{"train",
                        [&](sluice::StreamRef stream, const Slot& in) { losses.push(stream, in.values); }};
    sluice::TwoStreamPipeline pipeline{
        load, train, [](int) { return Slot{}; }, {.schedule = sluice::Schedule::graphed, .timed_batches = 2}};
    for (const auto& batch : source)
        pipeline.submit(batch);
    pipeline.finish();
    losses.finish();

    sluice::Semaphore semaphore;
    const sluice::Stream stream;
    semaphore.signal(stream, 1);
    sluice::RaggedBatch<float> rows{{.rows = 2, .values = 8}};
    sluice::RaggedWorkspace<> workspace{rows.capacity()};
    sluice::ragged::softmax(stream, rows, rows);
    sluice::ragged::sort(stream, rows, rows, workspace);
    sluice::DeviceBuffer<float> sums{2};
    sluice::GraphCapture<int> graphs;
    graphs.run(stream, 1, [&](sluice::StreamRef to) { sluice::ragged::sum(to, sums, rows.view()); });
}
