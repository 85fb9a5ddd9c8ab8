// A wait for a batch is not one for those behind it: the work of a later batch only goes on once the wait has ended.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/source.hpp>

#include "support/doctest.hpp"
#include "support/waits.hpp"

namespace pipeline_waits_graphed {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Host;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<int, B>;
using HostCells = PinnedBuffer<int, B>;

/// Work that counts its runs, of which the n-th waits until `open(n)`, and that takes a while.
class Gate {
public:
    void open(int run) { open_ = run; }
    /// Which run it is.
    int pass() {
        const int run = run_++;
        pass(run);
        return run;
    }
    /// The n-th in the order of batches, where others may overtake it.
    void pass(int run) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        const auto end = std::chrono::steady_clock::now() + patience;
        while (open_ < run) {
            if (std::chrono::steady_clock::now() > end) {
                ++late_;
                break;
            }
            std::this_thread::yield();
        }
    }
    int late() const { return late_; }

private:
    std::atomic<int> open_{0}, run_{0}, late_{0};
};

struct Batch {
    PinnedSpan<const int, B> values;
};

template <class Visit>
void for_each_schedule(int slots, Visit&& visit) {
    for (const bool each_stage : {true, false}) {
        for (const int steps : {0, 2}) {
            for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(each_stage);
                CAPTURE(steps);
                PipelineOptions options{.schedule = schedule,
                                        .slots = slots,
                                        .steps_per_graph = steps,
                                        .graph_each_stage = each_stage};
                visit(options);
            }
        }
    }
}

const auto fetch = [](Ref on, const Cells& in, HostCells& out) {
    const int* const from = in.data();
    int* const to = out.data();
    on.enqueue([from, to] { *to = *from + 1; });
};
const auto cells = [](int) { return Cells(1); };
const auto host_cells = [](int) { return HostCells(1); };
constexpr int count = 60;

/// Of all batches that are submitted, the last ones wait for the first one's result.
template <class BatchType, class MakeSource>
void check_results(const PipelineOptions& options, int flush_at, const MakeSource& make_source) {
    const int ahead = (options.slots - 1) / 2; // batches of a graph, at most
    Gate gate;
    const Stage load{"load", [&gate](Ref on, const BatchType&, Cells& out) {
                         on.enqueue([&gate, to = out.data()] { *to = gate.pass(); });
                     }};
    Pipeline pipeline{Stages{load, Stage{"fetch", fetch}}, Slots{cells, host_cells}, options};
    int results = 0;
    for (const int epoch : {0, 1}) {
        auto source = make_source();
        gate.open(results + ahead);
        for (const HostCells& result : pipeline.run(source)) {
            CHECK(result[0] == ++results);
            gate.open(results + ahead);
            if (results == flush_at + epoch * count)
                pipeline.flush();
        }
        CHECK(results == (epoch + 1) * count);
        CHECK((pipeline.graph_counters().replays > 0) == (options.schedule == Schedule::graphed));
        pipeline.reset();
    }
    CHECK(gate.late() == 0);
}

/// Fills `buffers` in turns, each once its batch has been read. `opened(number)`: so many runs may be over before batch `number` is submitted.
template <class P, class Opened>
void refill_in_turns(P& pipeline, Gate& gate, int buffers, bool polls, const Opened& opened) {
    std::vector<HostCells> values;
    values.reserve(static_cast<std::size_t>(buffers));
    for (int i = 0; i < buffers; ++i)
        values.emplace_back(1);
    std::vector<BatchRead> reads(values.size());
    for (int number = 0; number < count; ++number) {
        BatchRead& earlier = reads[static_cast<std::size_t>(number % buffers)];
        HostCells& value = values[static_cast<std::size_t>(number % buffers)];
        while (polls && !earlier.is_ready() && gate.late() == 0)
            std::this_thread::yield();
        earlier.wait();
        gate.open(opened(number));
        value[0] = number;
        earlier = pipeline.submit(Batch{value});
    }
    gate.open(count);
    pipeline.finish();
}

} // namespace

TEST_CASE("a loop over run: a result does not wait for the batches behind it") {
    if (!streams_overlap<B>())
        return;
    for (const int slots : {3, 6}) {
        CAPTURE(slots);
        for (const int flush_at : {count, 30, 37}) {
            CAPTURE(flush_at);
            for_each_schedule(slots, [&](const PipelineOptions& options) {
                HostCells value(1);
                check_results<Batch>(options, flush_at,
                                     [&] { return std::vector<Batch>(count, Batch{value}); });
                check_results<HostCells>(options, flush_at, [] {
                    return Source([](int) { return HostCells(1); },
                                  [](std::size_t index, HostCells& out) { out[0] = static_cast<int>(index); },
                                  SourceOptions<B>{.workers = 1, .slots = 16, .batches = count});
                });
            });
        }
    }
}

TEST_CASE("a loop over run: nor where graphs and eager steps take turns") {
    if (!streams_overlap<B>())
        return;
    // Batches that have not been seen before run eagerly, a pair at a time.
    for (const std::size_t period : {6u, 8u, 10u}) {
        for (const std::size_t offset : {0u, 1u, 2u, 3u}) {
            CAPTURE(period);
            CAPTURE(offset);
            std::vector<HostCells> values;
            for (int i = 0; i < 2 * count + 1; ++i)
                values.emplace_back(1);
            std::size_t unseen = 0;
            const PipelineOptions options{.schedule = Schedule::graphed, .slots = 6, .steps_per_graph = 2};
            check_results<Batch>(options, count, [&] {
                std::vector<Batch> batches;
                for (std::size_t i = 0; i < count; ++i)
                    batches.push_back({values[(i + offset) % period < 2 ? ++unseen : 0]});
                return batches;
            });
        }
    }
}

TEST_CASE("a refilled buffer: a wait until it is read does not wait for the batches behind it") {
    if (!streams_overlap<B>())
        return;
    for (const bool polls : {false, true}) {
        CAPTURE(polls);
        for_each_schedule(6, [&](const PipelineOptions& options) {
            Gate gate;
            std::vector<int> read;
            const Stage load{"load", [&](Ref on, const Batch& batch, Cells&) {
                                 on.enqueue([&, from = batch.values.data()] {
                                     (void)gate.pass();
                                     read.push_back(*from);
                                 });
                             }};
            Pipeline pipeline{Stages{load, Stage{"fetch", fetch}}, Slots{cells, host_cells}, options};
            // The last one that was submitted waits for this one.
            refill_in_turns(pipeline, gate, 4, polls, [](int number) { return number - 2; });
            CHECK(gate.late() == 0);
            CHECK(read.size() == count);
            for (std::size_t number = 0; number < read.size(); ++number)
                CHECK(read[number] == static_cast<int>(number));
        });
    }
}

TEST_CASE("more buffers than slots: a wait until one is read does not wait for those behind it in its slot") {
    if (!streams_overlap<B>())
        return;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3, 5}) {
            for (const int lanes : {1, 2}) {
                for (const bool polls : {false, true}) {
                    CAPTURE(std::string(to_string(schedule)));
                    CAPTURE(slots);
                    CAPTURE(lanes);
                    CAPTURE(polls);
                    Gate gate;
                    const Stage load{"load",
                                     [&](Ref on, const Batch& batch, Cells& out) {
                                         on.enqueue([&, from = batch.values.data(), to = out.data()] {
                                             gate.pass(*from);
                                             *to = *from;
                                         });
                                     },
                                     {.lanes = lanes}};
                    // It reads the batch as well.
                    std::vector<int> sums;
                    const Stage add{"add", [&](Ref on, const Batch& batch, const Cells& in) {
                                        on.enqueue([&, from = batch.values.data(), other = in.data()] {
                                            sums.push_back(*from + *other);
                                        });
                                    }};
                    Pipeline pipeline{
                        Stages{load, add}, Slots{cells}, {.schedule = schedule, .slots = slots}};
                    constexpr int buffers = 6;
                    gate.open(buffers);
                    // The first waits may be for later batches: no end was marked for them.
                    refill_in_turns(pipeline, gate, buffers, polls, [](int number) {
                        return number < 2 * buffers ? number : number - buffers + 2;
                    });
                    CHECK(gate.late() == 0);
                    CHECK(sums.size() == count);
                    for (std::size_t number = 0; number < sums.size(); ++number)
                        CHECK(sums[number] == 2 * static_cast<int>(number));
                }
            }
        }
    }
}

TEST_CASE("graphed: the first wait, behind launches without a mark, is for the batch") {
    std::atomic<int> read{0};
    const Stage load{"load", [&](Ref on, const Batch&, Cells&) {
                         on.enqueue([&] {
                             std::this_thread::sleep_for(std::chrono::microseconds(300));
                             ++read;
                         });
                     }};
    HostCells value(1);
    Pipeline pipeline{
        Stages{load, Stage{"fetch", fetch}}, Slots{cells, host_cells}, {.schedule = Schedule::graphed}};
    for (int batch = 1; batch < 120; ++batch)
        pipeline.submit(Batch{value}).stays();
    pipeline.submit(Batch{value}).wait();
    CHECK(read == 120);
    CHECK(pipeline.graph_counters().replays > 100);
}

TEST_CASE("lanes: what one is through tells nothing of the other") {
    if (!streams_overlap<B>())
        return;
    constexpr int held = 40, ahead = 30;
    std::atomic<bool> open{false};
    std::atomic<int> others{0}; // on the other lane, behind it
    const Stage read{"read",
                     [&](Ref on, const Batch& batch) {
                         on.enqueue([&, from = batch.values.data()] {
                             const auto end = std::chrono::steady_clock::now() + patience;
                             while (*from == held && !open && std::chrono::steady_clock::now() < end)
                                 std::this_thread::yield();
                             others += *from > held && *from % 2 != held % 2;
                         });
                     },
                     {.lanes = 2}};
    Pipeline pipeline{Stages{read}, Slots{}, {.schedule = Schedule::overlapped}};
    std::vector<HostCells> values;
    std::vector<BatchRead> reads;
    for (int number = 0; number <= held + ahead; ++number) {
        values.emplace_back(1)[0] = number;
        reads.push_back(pipeline.submit(Batch{values.back()}));
        if (number >= 5 && number < held)
            reads[static_cast<std::size_t>(number) - 5].wait(); // Ends are marked from here on.
    }
    while (others < ahead / 2)
        std::this_thread::yield();
    CHECK(!reads[held].is_ready());
    CHECK(!reads[held + 2].is_ready());
    open = true;
    reads[held].wait();
    pipeline.finish();
}

TEST_CASE("graphed: a loop over run with fewer slots than stages has a graph for each stage") {
    struct Number {
        int value;
    };
    const Stage load{"load", [](Ref on, const Number& batch, Cells& out) {
                         on.enqueue([to = out.data(), value = batch.value] { *to = value; });
                     }};
    const Stage pass{"pass", [](Ref on, const Cells& in, Cells& out) {
                         on.enqueue([to = out.data(), from = in.data()] { *to = *from + 1; });
                     }};
    for (const int slots : {1, 2, 3, 4}) {
        for (const int steps : {0, 3}) {
            for (const int before : {0, 5}) {
                CAPTURE(slots);
                CAPTURE(steps);
                CAPTURE(before);
                static int told;
                told = 0;
                PipelineOptions options{
                    .schedule = Schedule::graphed, .slots = slots, .steps_per_graph = steps};
                options.graphs.on_refusal = [](const char*) { ++told; };
                Pipeline pipeline{Stages{load, pass, Stage{"fetch", fetch}}, Slots{cells, cells, host_cells},
                                  options};
                for (int number = 0; number < before; ++number)
                    pipeline.submit(Number{3}).stays();
                std::vector<Number> batches(200, Number{3});
                int results = 0;
                for (const HostCells& result : pipeline.run(batches)) {
                    ++results;
                    CHECK(result[0] == 5);
                }
                CHECK(results == 200);
                CHECK(pipeline.options().graph_each_stage == (slots == 2));
                CHECK(pipeline.graph_counters().replays >
                      (slots == 2 ? 400 : 150) / (steps == 3 && slots == 4 ? 2 : 1));
                CHECK(told == 0);
            }
        }
    }
}

} // namespace pipeline_waits_graphed
