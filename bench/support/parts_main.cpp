/// \file
/// The `main` of programs that time the parts of a network; see parts.hpp.
#include <cstdio>

#include "parts.hpp"

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
#if SLUICE_HAS_CUDA
    if (sluice::Cuda::device_count() > 0) {
        bench::add_parts();
        benchmark::RunSpecifiedBenchmarks();
        return 0;
    }
#endif
    std::fprintf(stderr, "There is no CUDA device, and nothing to measure.\n");
    return 0;
}
