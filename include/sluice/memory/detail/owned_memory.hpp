// What the owners of device and of pinned memory have in common.
#pragma once

#include <cstddef>
#include <utility>

#include <sluice/memory/detail/allocations.hpp>

namespace sluice::detail {

/// What every backend aligns its allocations to, in bytes.
inline constexpr std::size_t allocation_alignment = 256;

/// Device memory, allocated and freed at once or in the order of a stream.
template <class B>
class DeviceAllocator {
public:
    DeviceAllocator() noexcept = default;
    explicit DeviceAllocator(typename B::NativeStream stream) noexcept : stream_(stream), ordered_(true) {}

    void* allocate(std::size_t bytes) const {
        if (ordered_)
            return B::allocate_device(bytes, stream_);
        return Allocations::instance().added(B::allocate_device(bytes), bytes, &B::free_device, false);
    }
    void free(void* memory) const noexcept {
        if (ordered_) {
            B::free_device(memory, stream_);
        } else {
            Allocations::instance().remove(memory);
            B::free_device(memory);
        }
    }

private:
    // Not an optional, of which GCC 12 says that it may be uninitialized.
    typename B::NativeStream stream_{};
    bool ordered_ = false;
};

/// Pinned memory.
template <class B>
struct PinnedAllocator {
    template <class... Options>
    void* allocate(std::size_t bytes, const Options&... options) const {
        return Allocations::instance().added(B::allocate_pinned(bytes, options...), bytes, &B::free_pinned,
                                             true);
    }
    void free(void* memory) const noexcept {
        Allocations::instance().remove(memory);
        B::free_pinned(memory);
    }
};

/// `size()` elements from an allocator; null for none. A move leaves the source empty.
template <class T, class Allocator>
class OwnedMemory {
public:
    OwnedMemory() noexcept = default;
    /// Throws `Error` when there is not enough memory.
    template <class... Options>
    explicit OwnedMemory(std::size_t size, Allocator allocator = {}, const Options&... options)
        : size_(size), allocator_(allocator) {
        const std::size_t bytes = checked_bytes(size, sizeof(T));
        if (size > 0)
            data_ = static_cast<T*>(allocator_.allocate(bytes, options...));
    }
    OwnedMemory(OwnedMemory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          allocator_(other.allocator_) {}
    OwnedMemory& operator=(OwnedMemory&& other) noexcept {
        if (this != &other) {
            free();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            allocator_ = other.allocator_;
        }
        return *this;
    }
    ~OwnedMemory() { free(); }

    T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    void free() noexcept {
        if (data_ != nullptr)
            allocator_.free(
                const_cast<void*>(static_cast<const volatile void*>(data_))); // const is refused elsewhere
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    [[no_unique_address]] Allocator allocator_;
};

} // namespace sluice::detail
