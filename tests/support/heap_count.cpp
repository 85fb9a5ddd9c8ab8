// Replaces the global operator new and delete: all of them, so that what one allocates another frees. The
// address sanitizer sees the malloc and free beneath. Clang's thread sanitizer brings an operator new of its own
// and refuses a second one, so there its hook of every malloc counts.
#include "support/heap_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <sluice/backend/detail/checked/interface.hpp>

namespace {
std::atomic<std::uint64_t> allocations_made{0};

// But what the race checker of a checked program takes is its own.
void count() noexcept {
    if (!sluice::detail::checked::BookkeepingScope::active())
        allocations_made.fetch_add(1, std::memory_order_relaxed);
}
} // namespace

std::uint64_t sluice::test::HeapCount::total() noexcept {
    return allocations_made.load(std::memory_order_relaxed);
}

#if SLUICE_TEST_THREAD_SANITIZER

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));

namespace {
const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count(); }, [](const volatile void*) {});
} // namespace

#else

namespace {

void* allocate(std::size_t bytes) noexcept {
    count();
    return std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
    count();
    void* memory = nullptr;
    const auto align = static_cast<std::size_t>(alignment);
    return posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, bytes) == 0 ? memory
                                                                                              : nullptr;
}

void* or_throw(void* memory) {
    if (memory == nullptr)
        throw std::bad_alloc{};
    return memory;
}

} // namespace

void* operator new(std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new[](std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t a) { return or_throw(allocate(bytes, a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return or_throw(allocate(bytes, a)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return allocate(bytes, a);
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return allocate(bytes, a);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }

#endif
