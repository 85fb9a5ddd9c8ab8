// Counts the heap allocations of the whole program. A program that uses it lists support/heap_count.cpp among
// its sources, which replaces operator new.
#pragma once

#include <cstdint>

namespace sluice::test {

/// Heap allocations made through `operator new`, on all threads, since this object was made.
class HeapCount {
public:
    HeapCount() noexcept : start_(total()) {}

    std::uint64_t allocations() const noexcept { return total() - start_; }

    /// Those of the program since it began.
    static std::uint64_t total() noexcept;

private:
    std::uint64_t start_;
};

} // namespace sluice::test
