// Which memory of sluice's lives, told apart from what lay at the same addresses before.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// The bytes of `count` elements of `element` bytes. Throws `Error` when no memory could hold them.
std::size_t checked_bytes(std::size_t count, std::size_t element);

/// Bytes of device and of pinned memory. Of differences, that are 0 or more.
struct MemoryBytes {
    std::size_t device = 0;
    std::size_t pinned = 0;
};

/// The device and pinned memory that is allocated now, with a number each that no other ever gets. A graph holds on to the
/// allocation that its copies were captured with, so that another one at the same address is not the same to it.
///
/// Any thread may use it. Memory that is allocated in stream order is not in it.
class Allocations {
public:
    Allocations& operator=(Allocations&&) = delete;

    /// The program's. Never destroyed: buffers of static storage may go after anything else.
    static Allocations& instance();

    void add(const void* memory, std::size_t bytes, bool pinned = false);
    /// The same of memory that is new, which is freed where that fails.
    void* added(void* memory, std::size_t bytes, void (*free)(void*) noexcept, bool pinned);
    void remove(const void* memory) noexcept;

    /// The number of the allocation that `pointer` points into; 0: it is none of sluice's.
    std::uint64_t number_of(const void* pointer);

    /// How many have been allocated or freed so far: while it stays the same, so do all numbers.
    std::uint64_t changes() const noexcept;

    /// What the calling thread has allocated less what it has freed, modulo all bytes that there could be.
    static MemoryBytes& of_thread() noexcept;

private:
    struct Blocks;
    Allocations();
    ~Allocations() = default; // never called

    Blocks& blocks_;
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/memory/detail/allocations.inl>
#endif
