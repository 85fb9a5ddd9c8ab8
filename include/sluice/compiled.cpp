// The library sluice::compiled in one source, for programs without CMake. What does not depend on a program's types is compiled here, and
// not once more with each of its files, whose compiler takes a third of the time or less:
//
//     nvcc -std=c++20 -O2 -DSLUICE_COMPILED=1 -I. -c sluice/compiled.cpp                  once
//     nvcc -std=c++20 -O2 -DSLUICE_COMPILED=1 -I. program.cu other.cpp compiled.o
//
// SLUICE_COMPILED, SLUICE_CHECKED and SLUICE_HAS_CUDA are the same for all files of a program. One that defines SLUICE_COMPILES_COMMON,
// SLUICE_COMPILES_CUDA or SLUICE_COMPILES_CHECKER, and includes this, is that part alone.
#if defined(SLUICE_COMPILED) && SLUICE_COMPILED == 1
#else
#error "compile sluice/compiled.cpp, and all other files of the program, with -DSLUICE_COMPILED=1"
#endif
#if !defined(SLUICE_COMPILES_COMMON) && !defined(SLUICE_COMPILES_CUDA) && !defined(SLUICE_COMPILES_CHECKER)
#define SLUICE_COMPILES_COMMON
#define SLUICE_COMPILES_CUDA
#define SLUICE_COMPILES_CHECKER
#endif
#define SLUICE_COMPILES_BODIES

// A name that the library has in common with one of the other kind, checked or not. Both in one program would each give half of what
// goes together, and the linker says no instead.
#define SLUICE_ONE_KIND(part)                                                                                \
    namespace sluice::detail {                                                                               \
    void link_compiled_or_compiled_checked_not_both_##part() {}                                              \
    }                                                                                                        \
    static_assert(true)

#ifdef SLUICE_COMPILES_CHECKER
#include <sluice/backend/detail/checked/checker.hpp>

SLUICE_ONE_KIND(checker);
#endif

// A backend's graphs by key, pipelines, sources and readbacks.
#if defined(SLUICE_COMPILES_COMMON) || defined(SLUICE_COMPILES_CUDA)
#include <sluice/backend/checked.hpp>
#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/readback.hpp>
#include <sluice/pipeline/source.hpp>

#define SLUICE_COMPILE_FOR(...)                                                                              \
    template class sluice::detail::CaptureCore<__VA_ARGS__>;                                                 \
    template class sluice::detail::PipelineCore<__VA_ARGS__>;                                                \
    template struct sluice::detail::SourceSlot<__VA_ARGS__>;                                                 \
    template class sluice::detail::SourceLedger<__VA_ARGS__>;                                                \
    template class sluice::detail::SourceCore<__VA_ARGS__>;                                                  \
    template class sluice::detail::ReadbackState<__VA_ARGS__>
#endif

// The Host backend by all of its names, and what does not depend on a backend.
#ifdef SLUICE_COMPILES_COMMON
SLUICE_ONE_KIND(host);

SLUICE_COMPILE_FOR(sluice::UncheckedHost);
SLUICE_COMPILE_FOR(sluice::Checked<sluice::UncheckedHost>);
#if SLUICE_CHECKED // otherwise the first of these
SLUICE_COMPILE_FOR(sluice::Host);
#endif
#endif

// The Cuda backend likewise.
#if defined(SLUICE_COMPILES_CUDA) && SLUICE_HAS_CUDA
SLUICE_ONE_KIND(cuda);

SLUICE_COMPILE_FOR(sluice::Cuda);
SLUICE_COMPILE_FOR(sluice::UncheckedCuda);
SLUICE_COMPILE_FOR(sluice::Checked<sluice::UncheckedCuda>);
#if !SLUICE_CHECKED
SLUICE_COMPILE_FOR(sluice::Checked<sluice::Cuda>);
#endif
#endif
