/// \file
/// Owners of device and of pinned memory.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/allocations.hpp>
#include <sluice/memory/span.hpp>

namespace sluice {

namespace detail {

/// What every backend aligns its allocations to, in bytes.
inline constexpr std::size_t allocation_alignment = 256;

/// The bytes of `count` elements. Throws `Error` when no memory could hold them.
template <class T>
std::size_t checked_bytes(std::size_t count) {
    if (count > (std::numeric_limits<std::size_t>::max)() / sizeof(T)) {
        throw Error("a buffer of " + std::to_string(count) + " elements of " + std::to_string(sizeof(T)) +
                    " bytes each is larger than any memory");
    }
    return count * sizeof(T);
}

/// Notes memory that has been allocated; frees it where that fails.
inline void* noted(void* memory, std::size_t bytes, void (*free)(void*) noexcept) {
    try {
        Allocations::instance().add(memory, bytes);
    } catch (...) {
        free(memory);
        throw;
    }
    return memory;
}

} // namespace detail

/// Owns `size()` elements in the memory of the device that was current when it was made. Their values are
/// undefined at first. Move-only; a moved-from buffer is empty and may be assigned to.
///
/// Made with a stream, it is allocated and freed in that stream's order: work enqueued there later may use it
/// at once, work on other streams must wait for the stream, and the stream must outlive the buffer. Made
/// without, any stream may use it at once, and it must outlive all work that uses it.
///
/// Not synchronised: one thread at a time, as for a `std::vector`.
template <class T, Backend B = DefaultBackend>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::DeviceBuffer: elements must be trivially copyable");
    static_assert(
        alignof(T) <= detail::allocation_alignment,
        "sluice::DeviceBuffer: elements must not be aligned to more than 256 bytes, as allocations are");

public:
    using backend = B;
    using value_type = T;

    /// No elements, no memory.
    DeviceBuffer() noexcept = default;

    /// Throws `Error` when there is not enough memory.
    explicit DeviceBuffer(std::size_t count) : size_(count) {
        const std::size_t bytes = detail::checked_bytes<T>(count);
        if (count > 0)
            data_ = static_cast<T*>(detail::noted(B::allocate_device(bytes), bytes, &B::free_device));
    }

    /// Allocates in the order of `stream`. Throws `Error` when there is not enough memory.
    DeviceBuffer(std::size_t count, BasicStreamRef<B> stream)
        : size_(count), stream_(stream.get()), ordered_(true) {
        const std::size_t bytes = detail::checked_bytes<T>(count);
        if (count > 0)
            data_ = static_cast<T*>(B::allocate_device(bytes, stream_));
    }

    DeviceBuffer(DeviceBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          stream_(other.stream_), ordered_(other.ordered_) {}
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        if (this != &other) {
            free();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            stream_ = other.stream_;
            ordered_ = other.ordered_;
        }
        return *this;
    }
    ~DeviceBuffer() { free(); }

    /// Device addresses: host code must not follow them, except on the Host backend's own stream.
    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::size_t bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }

    /// Not of a temporary buffer, whose memory goes before anybody can use the span.
    DeviceSpan<T, B> span() & noexcept { return {data_, size_}; }
    DeviceSpan<const T, B> span() const& noexcept { return {data_, size_}; }
    operator DeviceSpan<T, B>() & noexcept { return span(); }
    operator DeviceSpan<const T, B>() const& noexcept { return span(); }
    void span() && = delete;
    void span() const&& = delete;
    operator DeviceSpan<T, B>() && = delete;
    operator DeviceSpan<const T, B>() const&& = delete;

    /// `count` elements from `offset` on. Throws `Error` when they are not all there. Not of a temporary buffer.
    DeviceSpan<T, B> subspan(std::size_t offset, std::size_t count) & {
        return span().subspan(offset, count);
    }
    DeviceSpan<const T, B> subspan(std::size_t offset, std::size_t count) const& {
        return span().subspan(offset, count);
    }
    void subspan(std::size_t offset, std::size_t count) && = delete;
    void subspan(std::size_t offset, std::size_t count) const&& = delete;

    /// The first `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    DeviceSpan<T, B> first(std::size_t count) & { return span().first(count); }
    DeviceSpan<const T, B> first(std::size_t count) const& { return span().first(count); }
    void first(std::size_t count) && = delete;
    void first(std::size_t count) const&& = delete;

    /// The last `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    DeviceSpan<T, B> last(std::size_t count) & { return span().last(count); }
    DeviceSpan<const T, B> last(std::size_t count) const& { return span().last(count); }
    void last(std::size_t count) && = delete;
    void last(std::size_t count) const&& = delete;

private:
    void free() noexcept {
        if (data_ == nullptr)
            return;
        if (ordered_) {
            B::free_device(data_, stream_);
        } else {
            detail::Allocations::instance().remove(data_);
            B::free_device(data_);
        }
        data_ = nullptr;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    // Not an optional, of which GCC 12 says that it may be uninitialized.
    typename B::NativeStream stream_{};
    bool ordered_ = false;
};

/// Owns `size()` elements of host memory that devices copy from and to without a detour. Their values are
/// undefined at first. Move-only; a moved-from buffer is empty and may be assigned to.
///
/// A copy reads or writes it when the stream gets there: leave it alone until then. `Source` and `Readback`
/// do so by themselves. Not synchronised: one thread at a time, as for a `std::vector`.
template <class T, Backend B = DefaultBackend>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::PinnedBuffer: elements must be trivially copyable");
    static_assert(
        alignof(T) <= detail::allocation_alignment,
        "sluice::PinnedBuffer: elements must not be aligned to more than 256 bytes, as allocations are");

public:
    using backend = B;
    using value_type = T;

    /// No elements, no memory.
    PinnedBuffer() noexcept = default;

    /// Throws `Error` when there is not enough memory.
    explicit PinnedBuffer(std::size_t count) : size_(count) {
        const std::size_t bytes = detail::checked_bytes<T>(count);
        if (count > 0)
            data_ = static_cast<T*>(detail::noted(B::allocate_pinned(bytes), bytes, &B::free_pinned));
    }

    PinnedBuffer(PinnedBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        if (this != &other) {
            free();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~PinnedBuffer() { free(); }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::size_t bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }

    T& operator[](std::size_t index) noexcept { return data_[index]; }
    const T& operator[](std::size_t index) const noexcept { return data_[index]; }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + size_; }

    /// Not of a temporary buffer, whose memory goes before anybody can use the span.
    PinnedSpan<T, B> span() & noexcept { return {data_, size_}; }
    PinnedSpan<const T, B> span() const& noexcept { return {data_, size_}; }
    operator PinnedSpan<T, B>() & noexcept { return span(); }
    operator PinnedSpan<const T, B>() const& noexcept { return span(); }
    void span() && = delete;
    void span() const&& = delete;
    operator PinnedSpan<T, B>() && = delete;
    operator PinnedSpan<const T, B>() const&& = delete;

    /// `count` elements from `offset` on. Throws `Error` when they are not all there. Not of a temporary buffer.
    PinnedSpan<T, B> subspan(std::size_t offset, std::size_t count) & {
        return span().subspan(offset, count);
    }
    PinnedSpan<const T, B> subspan(std::size_t offset, std::size_t count) const& {
        return span().subspan(offset, count);
    }
    void subspan(std::size_t offset, std::size_t count) && = delete;
    void subspan(std::size_t offset, std::size_t count) const&& = delete;

    /// The first `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    PinnedSpan<T, B> first(std::size_t count) & { return span().first(count); }
    PinnedSpan<const T, B> first(std::size_t count) const& { return span().first(count); }
    void first(std::size_t count) && = delete;
    void first(std::size_t count) const&& = delete;

    /// The last `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    PinnedSpan<T, B> last(std::size_t count) & { return span().last(count); }
    PinnedSpan<const T, B> last(std::size_t count) const& { return span().last(count); }
    void last(std::size_t count) && = delete;
    void last(std::size_t count) const&& = delete;

private:
    void free() noexcept {
        if (data_ != nullptr) {
            detail::Allocations::instance().remove(data_);
            B::free_pinned(data_);
        }
        data_ = nullptr;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace sluice
