/// \file
/// Counts what goes through the global `operator new`. The array and nothrow forms of the standard library
/// call the two forms below, so that these see everything.
#include "heap_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(void* memory) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

} // namespace

std::size_t bench::heap_allocations() noexcept { return allocations.load(std::memory_order_relaxed); }

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes > 0 ? bytes : 1)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    // aligned_alloc wants a multiple of the alignment.
    const auto unit = static_cast<std::size_t>(alignment);
    const std::size_t units = bytes > 0 ? (bytes - 1) / unit + 1 : 1;
    return counted(std::aligned_alloc(unit, units * unit));
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
