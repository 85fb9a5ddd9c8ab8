/// \file
/// pipeline_shapes: pipelines of several shapes on CUDA, beside the same written by hand on the runtime API.
///
///     pipeline_shapes                                      everything
///     pipeline_shapes --benchmark_filter=^uneven           a group
///     pipeline_shapes --benchmark_out=shapes.json          each repetition as well, as JSON
///
/// | group | what it shows | aim |
/// | --- | --- | --- |
/// | `host_time` | until the host has enqueued a step of a diamond of 4 stages, and of 1 producer with 3 readers | at most 1.03 times `by_hand` |
/// | `uneven` | two stages that take times drawn at random, in each schedule, and the slower one alone | `graphed:16` at most 1.03 times `overlapped`; with 4 slots and uneven times 1.12 times as fast as `graphed:1`; 2 and 2 microseconds: 3.8 a step |
/// | `slow_source` | a source that takes longer than the stages, and one that does not | the automatic length of graphs loses nothing |
/// | `cpu_stage` | a CPU stage between two GPU stages: one batch by itself, and the rate of many | at most 8 us more; 1.03 times the slowest stage |
/// | `multi_copy` | the schedule of NVIDIA's simpleMultiCopy | at most 1.02 times `by_hand` |
/// | `two_gpus` | two stages on two devices, and both on one; left out where there is one device | 1.9 times as fast |
///
/// Times are microseconds a step: medians of bursts that the subjects of a case take in turns (support/rounds.hpp). The
/// last columns: CUDA objects, buffers and heap blocks that all measured steps of sluice's made together.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "shapes.hpp"
#include "support/round_table.hpp"

int main(int argc, char** argv) {
    // Defaults come first, so that the command line overrides them.
    char repetitions[] = "--benchmark_repetitions=3";
    std::vector<char*> arguments{argv[0], repetitions};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 2;
    if (!bench::describe())
        return EXIT_SUCCESS;

    bench::add_host_time();
    bench::add_uneven();
    bench::add_slow_source();
    bench::add_cpu_stage();
    bench::add_multi_copy();
    bench::add_two_gpus();

    bench::RoundTable table;
    if (benchmark::RunSpecifiedBenchmarks(&table) == 0)
        return 2;
    benchmark::Shutdown();
    return table.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}
