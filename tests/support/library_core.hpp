// For tests that compile bodies (BODIES, see cmake/SluiceTests.cmake): what the library has for a backend comes from there all the
// same. Tests' own backends stay theirs.
#pragma once

#include <sluice/pipeline.hpp>

// At the global namespace.
#if SLUICE_COMPILED
#define SLUICE_TEST_FROM_LIBRARY(...)                                                                        \
    extern template class sluice::detail::CaptureCore<__VA_ARGS__>;                                          \
    extern template class sluice::detail::PipelineCore<__VA_ARGS__>;                                         \
    extern template struct sluice::detail::SourceSlot<__VA_ARGS__>;                                          \
    extern template class sluice::detail::SourceLedger<__VA_ARGS__>;                                         \
    extern template class sluice::detail::SourceCore<__VA_ARGS__>;                                           \
    extern template class sluice::detail::ReadbackState<__VA_ARGS__>
#else
#define SLUICE_TEST_FROM_LIBRARY(...) static_assert(true)
#endif

SLUICE_TEST_FROM_LIBRARY(sluice::Host);
