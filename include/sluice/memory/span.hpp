/// \file
/// Spans that know where they live.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/backend/default.hpp>

namespace sluice {

namespace detail {

/// A pointer and a length. `Derived` is the span type that `first`, `last` and `subspan` give.
template <class Derived, class T>
class SpanBase {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr SpanBase() noexcept = default;
    SLUICE_HOST_DEVICE constexpr SpanBase(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

    SLUICE_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
    SLUICE_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    SLUICE_HOST_DEVICE constexpr std::size_t bytes() const noexcept { return size_ * sizeof(T); }
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }

    /// `count` elements from `offset` on. Throws `Error` when they are not all there.
    constexpr Derived subspan(std::size_t offset, std::size_t count) const {
        if (offset > size_ || count > size_ - offset) {
            throw Error("subspan: " + std::to_string(count) + " elements from " + std::to_string(offset) +
                        " on were asked for, of a span of " + std::to_string(size_));
        }
        return Derived{data_ + offset, count};
    }
    /// The first `count` elements. Throws `Error` when there are fewer.
    constexpr Derived first(std::size_t count) const { return subspan(0, count); }
    /// The last `count` elements. Throws `Error` when there are fewer.
    constexpr Derived last(std::size_t count) const {
        if (count > size_) {
            throw Error("last: " + std::to_string(count) + " elements were asked for, of a span of " +
                        std::to_string(size_));
        }
        return subspan(size_ - count, count);
    }

protected:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace detail

/// Elements in the memory of a backend's device. The host cannot index it; a kernel takes it as an argument, and calls
/// `data()`, `size()`, `bytes()` and `empty()`. Trivially copyable; owns nothing. Converts to a span of const elements,
/// never to a host span. Of a pointer and a length it names memory of any other owner, such as a
/// `thrust::device_vector`.
template <class T, Backend B = DefaultBackend>
class DeviceSpan : public detail::SpanBase<DeviceSpan<T, B>, T> {
public:
    using backend = B;
    using detail::SpanBase<DeviceSpan<T, B>, T>::SpanBase;

    /// A span of const elements, from one of elements that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr DeviceSpan(DeviceSpan<U, B> other) noexcept
        : DeviceSpan(other.data(), other.size()) {}
};

/// Elements in host memory that a backend's devices copy from and to (page-locked, on CUDA). Host code reads
/// and writes it like a `std::span`, to which it converts. Trivially copyable; owns nothing. Made of a pointer and a
/// length it names memory of any other owner, which must be page-locked for copies to overlap with anything.
template <class T, Backend B = DefaultBackend>
class PinnedSpan : public detail::SpanBase<PinnedSpan<T, B>, T> {
public:
    using backend = B;
    using detail::SpanBase<PinnedSpan<T, B>, T>::SpanBase;

    constexpr T& operator[](std::size_t index) const noexcept { return this->data_[index]; }
    constexpr T* begin() const noexcept { return this->data_; }
    constexpr T* end() const noexcept { return this->data_ + this->size_; }

    /// A span of const elements, from one of elements that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr PinnedSpan(PinnedSpan<U, B> other) noexcept
        : PinnedSpan(other.data(), other.size()) {}
};

} // namespace sluice

/// Its iterators outlive it, so that a temporary one converts to a `std::span` too.
template <class T, class B>
inline constexpr bool std::ranges::enable_borrowed_range<sluice::PinnedSpan<T, B>> = true;
