// CCCL's `cuda::stream_ref`; SLUICE_TEST_HAS_CCCL_STREAM_REF says whether there is one. For files that nvcc compiles,
// since a plain C++ compiler may not find it, and before other headers of CCCL's.
#pragma once

#if __has_include(<cuda/stream_ref>)
// Without it the header is empty in CUDA 12.4, for one.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <cuda/stream_ref>
#define SLUICE_TEST_HAS_CCCL_STREAM_REF 1
#else
#define SLUICE_TEST_HAS_CCCL_STREAM_REF 0
#endif
