/// \file
/// What a program with support/main.cpp defines.
#pragma once

namespace bench {

/// Registers the benchmarks of a backend. The CUDA ones are left out, with a word, where there is no device, and are not
/// in the program (SLUICE_BENCH_CUDA) where none could run them.
void add_host_benchmarks();
void add_cuda_benchmarks();

} // namespace bench
