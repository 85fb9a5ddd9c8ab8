/// \file
/// What the compiler and the machine offer. Nothing else in sluice tests for the toolkit by itself.
#pragma once

// Every header of sluice comes here first. The file that is not there ends the compilation, before the errors that would
// follow by the hundred.
#if __cplusplus < 201709L // what GCC 10 says of -std=c++20
#error "sluice needs C++20: compile with -std=c++20 or later"
#include <sluice/backend/detail/owned.hpp>
#include <sluice/needs_cxx20>
#endif
#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
#error "sluice needs exceptions, by which it reports errors: compile without -fno-exceptions"
#include <sluice/needs_exceptions>
#endif

#if defined(__NVCC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1204
#error "sluice needs nvcc 12.4 or later: older ones break designated initializers in templates"
#include <sluice/needs_nvcc>
#endif

/// 1 when the CUDA runtime's headers are there and the Cuda backend is compiled, otherwise 0.
/// The CMake target sets it; a project that copies the headers can define it, or leave it to the look below.
#if !defined(SLUICE_HAS_CUDA)
#if __has_include(<cuda_runtime_api.h>)
#define SLUICE_HAS_CUDA 1
#else
#define SLUICE_HAS_CUDA 0
#endif
#endif

/// 1: `Host` and `Cuda`, and with them all that names no backend, are `Checked`: the order of all accesses is looked
/// after, see backend/checked.hpp. For a whole program, never for some of its files alone.
#if !defined(SLUICE_CHECKED)
#define SLUICE_CHECKED 0
#endif

/// 1: what does not depend on the user's types is not compiled with each file, but comes from the library that the CMake
/// target `sluice::compiled` stands for. For a whole program, as the target sees to.
#if !defined(SLUICE_COMPILED)
#define SLUICE_COMPILED 0
#endif
/// 1 where a file has these bodies all the same: without the library, and in its own sources. nvcc's passes for devices, one for
/// each architecture, emit nothing of the host's, so they have none either.
#if defined(__CUDA_ARCH__) || (SLUICE_COMPILED && !defined(SLUICE_COMPILES_BODIES))
#define SLUICE_HAS_BODIES 0
#else
#define SLUICE_HAS_BODIES 1
#endif
/// The same of bodies that are no templates, which only one source of the library may have: those that depend on no backend,
#define SLUICE_HAS_COMMON_BODIES 0
/// those of the Cuda backend,
#define SLUICE_HAS_CUDA_BODIES 0
/// and those of the checker.
#define SLUICE_HAS_CHECKER_BODIES 0
#if SLUICE_HAS_BODIES
#if !SLUICE_COMPILED || defined(SLUICE_COMPILES_COMMON)
#undef SLUICE_HAS_COMMON_BODIES
#define SLUICE_HAS_COMMON_BODIES 1
#endif
#if !SLUICE_COMPILED || defined(SLUICE_COMPILES_CUDA)
#undef SLUICE_HAS_CUDA_BODIES
#define SLUICE_HAS_CUDA_BODIES 1
#endif
#if !SLUICE_COMPILED || defined(SLUICE_COMPILES_CHECKER)
#undef SLUICE_HAS_CHECKER_BODIES
#define SLUICE_HAS_CHECKER_BODIES 1
#endif
#endif

/// Stands before such a body that is no template: `inline`, or nothing where it is the library's. The function is declared
/// without: nvcc wants the body of each inline function that a template names, also where it is not used.
#if SLUICE_COMPILED
#define SLUICE_BODY
#else
#define SLUICE_BODY inline
#endif

/// 1 where this compiler takes kernels, and the Cuda backend is there to launch them, otherwise 0.
#if defined(__CUDACC__) && SLUICE_HAS_CUDA
#define SLUICE_HAS_KERNELS 1
#else
#define SLUICE_HAS_KERNELS 0
#endif

/// A short function that compilers put in its place without optimisation too, instead of making a function of it for each type.
#define SLUICE_ALWAYS_INLINE [[gnu::always_inline]]

/// Marks a function that kernels may call too. Empty when a plain C++ compiler reads it.
#if defined(__CUDACC__)
#define SLUICE_HOST_DEVICE __host__ __device__
#else
#define SLUICE_HOST_DEVICE
#endif

namespace sluice {

/// The first number of the library's version, which is the one of `find_package(sluice 0.1)`.
inline constexpr int version_major = 0;
/// The second number of the library's version.
inline constexpr int version_minor = 1;
/// The third number of the library's version.
inline constexpr int version_patch = 0;

} // namespace sluice
