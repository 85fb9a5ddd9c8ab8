// Counts the heap allocations of the whole program. A program that uses it lists support/heap_count.cpp among
// its sources, which replaces operator new.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define SLUICE_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_TEST_THREAD_SANITIZER 1
#endif
#endif
#ifndef SLUICE_TEST_THREAD_SANITIZER
#define SLUICE_TEST_THREAD_SANITIZER 0
#endif

namespace sluice::test {

/// Heap allocations made through `operator new`, on all threads, since this object was made.
class HeapCount {
public:
    HeapCount() noexcept : start_(total()) {}

    std::uint64_t allocations() const noexcept { return total() - start_; }

    /// Whether what C libraries take, such as OpenBLAS, is counted as well.
    static constexpr bool counts_malloc = SLUICE_TEST_THREAD_SANITIZER == 1;

    /// Those of the program since it began.
    static std::uint64_t total() noexcept;

private:
    std::uint64_t start_;
};

} // namespace sluice::test
