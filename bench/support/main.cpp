/// \file
/// The beginning and the end of the programs that print a table of ratios:
///
///     PROGRAM                                        everything
///     PROGRAM --benchmark_filter=two_stage           the two-stage step alone
///     PROGRAM --benchmark_repetitions=50             steadier medians
///     PROGRAM --benchmark_out=overhead.json          each repetition as well, as JSON
///
/// Beside each benchmark: CUDA objects (streams, events, graphs and executables), device and pinned buffers, and heap
/// blocks that all the measured steps made together. Each must be 0; otherwise the exit status is 1.
///
/// The repetitions of all benchmarks are shuffled, and within each repetition sluice and its baseline take turns
/// (paired.hpp), so that the ratios hold although times drift.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "benchmarks.hpp"
#include "ratio_table.hpp"

int main(int argc, char** argv) {
    // Defaults come first, so that the command line overrides them.
    char repetitions[] = "--benchmark_repetitions=15";
    char interleaving[] = "--benchmark_enable_random_interleaving=true";
    std::vector<char*> arguments{argv[0], repetitions, interleaving};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 2;

#if SLUICE_BENCH_CUDA
    bench::add_cuda_benchmarks();
#endif
    bench::add_host_benchmarks();

    bench::RatioTable table;
    if (benchmark::RunSpecifiedBenchmarks(&table) == 0)
        return 2;
    benchmark::Shutdown();
    if (!table.steady()) {
        std::fprintf(stderr, "A step in steady state has created or allocated something.\n");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
