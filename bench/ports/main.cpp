/// \file
/// ports: programs of other people's kinds on CUDA, beside the same written by hand on the runtime API.
///
///     ports                                  everything
///     ports --benchmark_filter=^token_loop   a group
///     ports --benchmark_out=ports.json       each repetition as well, as JSON
///
/// | group | what it is | aim, of the rate by hand |
/// | --- | --- | --- |
/// | `overlap_add` | blocks of many channels through cuFFT, a filter and back in place, and the tail of the block before added: blocks in device memory, and from and to pinned memory. By hand on a stream a stage with events between them, and on one stream. Left out where there is no cuFFT | at least 0.97 |
/// | `integration` | blocks of samples, the power of 16, 4 and 1 of them added to one output, which a CPU stage writes. By hand with counters and `cudaLaunchHostFunc` | |
/// | `token_loop` | a transformer's decode loop of small kernels as one graph, of which most take the position or the token as an argument; `host`: until the host has enqueued a token. By hand with `cudaGraphExecKernelNodeSetParams` | at least 0.99, until done |
///
/// What comes out is compared with the CPU's results on random numbers, other ones in each run, before a case is measured. Times are
/// microseconds a step (a block, a token): medians of bursts that the subjects of a case take in turns (support/rounds.hpp). The
/// last columns: CUDA objects, buffers and heap blocks that all measured steps of sluice's made together.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "ports.hpp"
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

#ifdef SLUICE_BENCH_CUFFT
    bench::add_overlap_add();
#endif
    bench::add_integration();
    bench::add_token_loop();

    bench::RoundTable table;
    if (benchmark::RunSpecifiedBenchmarks(&table) == 0)
        return 2;
    benchmark::Shutdown();
    return table.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}
