/// \file
/// Spans that know where they live.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <sluice/backend/default.hpp>
#include <sluice/memory/detail/span_bounds.hpp>

namespace sluice {

/// Elements in the memory of a backend's device. The host cannot index it; a kernel takes it as an argument, and calls
/// `data()`, `size()`, `bytes()` and `empty()`. Trivially copyable; owns nothing. Converts to a span of const elements,
/// never to a host span. Of a pointer and a length it names memory of any other owner, such as a
/// `thrust::device_vector`.
template <class T, Backend B = DefaultBackend>
class DeviceSpan {
public:
    using backend = B;                      ///< Whose device memory it is.
    using element_type = T;                 ///< Of the elements; const where they may only be read.
    using value_type = std::remove_cv_t<T>; ///< The same, never const.

    /// No elements.
    constexpr DeviceSpan() noexcept = default;
    /// `size` elements from `data` on.
    SLUICE_HOST_DEVICE constexpr DeviceSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    /// A span of const elements, from one of elements that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr DeviceSpan(DeviceSpan<U, B> other) noexcept
        : DeviceSpan(other.data(), other.size()) {}

    /// A device address.
    SLUICE_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
    /// Elements.
    SLUICE_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    /// Bytes of all elements. Throws `Error` on the host where there are said to be more than any memory holds.
    SLUICE_HOST_DEVICE constexpr std::size_t bytes() const {
        detail::require_countable(size_, sizeof(T));
        return size_ * sizeof(T);
    }
    /// Whether there are no elements.
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }

    /// `count` elements from `offset` on. Throws `Error` when they are not all there.
    constexpr DeviceSpan subspan(std::size_t offset, std::size_t count) const {
        detail::require_subspan(offset, count, size_);
        return {data_ + offset, count};
    }
    /// The first `count` elements. Throws `Error` when there are fewer.
    constexpr DeviceSpan first(std::size_t count) const { return subspan(0, count); }
    /// The last `count` elements. Throws `Error` when there are fewer.
    constexpr DeviceSpan last(std::size_t count) const {
        return subspan(detail::offset_of_last(count, size_), count);
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Elements in host memory that a backend's devices copy from and to (page-locked, on CUDA). Host code reads
/// and writes it like a `std::span`, to which it converts. Trivially copyable; owns nothing. Made of a pointer and a
/// length it names memory of any other owner, which must be page-locked for copies to overlap with anything.
template <class T, Backend B = DefaultBackend>
class PinnedSpan {
public:
    using backend = B;                      ///< Whose devices copy from and to it.
    using element_type = T;                 ///< Of the elements; const where they may only be read.
    using value_type = std::remove_cv_t<T>; ///< The same, never const.

    /// No elements.
    constexpr PinnedSpan() noexcept = default;
    /// `size` elements from `data` on.
    SLUICE_HOST_DEVICE constexpr PinnedSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    /// A span of const elements, from one of elements that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr PinnedSpan(PinnedSpan<U, B> other) noexcept
        : PinnedSpan(other.data(), other.size()) {}

    /// A host address.
    SLUICE_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
    /// Elements.
    SLUICE_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    /// Bytes of all elements. Throws `Error` on the host where there are said to be more than any memory holds.
    SLUICE_HOST_DEVICE constexpr std::size_t bytes() const {
        detail::require_countable(size_, sizeof(T));
        return size_ * sizeof(T);
    }
    /// Whether there are no elements.
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    /// Element `index`, which is not checked.
    constexpr T& operator[](std::size_t index) const noexcept { return data_[index]; }
    /// The elements as a contiguous range.
    /// @{
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + size_; }
    /// @}

    /// `count` elements from `offset` on. Throws `Error` when they are not all there.
    constexpr PinnedSpan subspan(std::size_t offset, std::size_t count) const {
        detail::require_subspan(offset, count, size_);
        return {data_ + offset, count};
    }
    /// The first `count` elements. Throws `Error` when there are fewer.
    constexpr PinnedSpan first(std::size_t count) const { return subspan(0, count); }
    /// The last `count` elements. Throws `Error` when there are fewer.
    constexpr PinnedSpan last(std::size_t count) const {
        return subspan(detail::offset_of_last(count, size_), count);
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace sluice

/// \cond
// Its iterators outlive it, so that a temporary one converts to a `std::span` too.
template <class T, class B>
inline constexpr bool std::ranges::enable_borrowed_range<sluice::PinnedSpan<T, B>> = true;
/// \endcond
