/// \file
/// Boxes, and views of them in rows of equal length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <nn/core/float16.hpp>
#include <sluice/memory/span.hpp>

namespace nn {

/// A box by two of its corners, in pixels: left, top, right, bottom. Nothing keeps it from being inverted. Aligned so
/// that one load or store takes it whole.
template <class T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Box {
    T x1;
    T y1;
    T x2;
    T y2;
};

/// The same box in another type; coordinates too precise for it are rounded.
template <class To, class From>
SLUICE_HOST_DEVICE Box<To> box_as(const Box<From>& box);

/// Boxes in `rows()` rows of `width()`, row after row, in device memory: [rows, width, 4] numbers. `T` may be const.
/// Trivially copyable; owns nothing.
template <class T, sluice::Backend B>
class PaddedBoxes {
public:
    using Element = std::conditional_t<std::is_const_v<T>, const Box<std::remove_const_t<T>>, Box<T>>;

    /// Throws `sluice::Error` unless there are exactly `rows * width` boxes.
    PaddedBoxes(sluice::DeviceSpan<Element, B> boxes, std::size_t rows, std::size_t width);
    /// The same from plain numbers, such as a network's output. Throws `sluice::Error` also when they do not begin at
    /// a multiple of a box's bytes.
    PaddedBoxes(sluice::DeviceSpan<T, B> numbers, std::size_t rows, std::size_t width);

    /// A view of boxes that may be written serves where they are only read.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>)
        PaddedBoxes(const PaddedBoxes<U, B>& other)
        : boxes_(other.span()), rows_(other.rows()), width_(other.width()) {}

    Element* data() const noexcept { return boxes_.data(); }
    std::size_t rows() const noexcept { return rows_; }
    std::size_t width() const noexcept { return width_; }
    std::size_t size() const noexcept { return boxes_.size(); }
    sluice::DeviceSpan<Element, B> span() const noexcept { return boxes_; }

private:
    sluice::DeviceSpan<Element, B> boxes_;
    std::size_t rows_;
    std::size_t width_;
};

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

/// Between numbers and the 16-bit types.
template <class To, class From>
SLUICE_HOST_DEVICE To number_as(From value) {
#if defined(__CUDA_ARCH__)
    // An addition takes a quarter of a conversion's time.
    if constexpr (std::is_same_v<From, std::uint8_t> && std::is_same_v<To, double>)
        return __hiloint2double(0x43300000, value) - 0x1p52;
#endif
    if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) {
        return static_cast<To>(value);
    } else {
        return static_cast<To>(static_cast<float>(value));
    }
}

} // namespace detail

template <class To, class From>
SLUICE_HOST_DEVICE Box<To> box_as(const Box<From>& box) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_class_v<From>) { // in one load, which compilers do not see by themselves
        static_assert(sizeof(Box<From>) == sizeof(uint2) && alignof(Box<From>) == alignof(uint2));
        const uint2 words = reinterpret_cast<const uint2&>(box);
        const auto number = [](unsigned bits) {
            return detail::number_as<To>(From::from_bits(static_cast<std::uint16_t>(bits)));
        };
        return {number(words.x & 0xFFFFu), number(words.x >> 16), number(words.y & 0xFFFFu),
                number(words.y >> 16)};
    }
#endif
    return {detail::number_as<To>(box.x1), detail::number_as<To>(box.y1), detail::number_as<To>(box.x2),
            detail::number_as<To>(box.y2)};
}

template <class T, sluice::Backend B>
PaddedBoxes<T, B>::PaddedBoxes(sluice::DeviceSpan<Element, B> boxes, std::size_t rows, std::size_t width)
    : boxes_(boxes), rows_(rows), width_(width) {
    if (boxes.size() != rows * width) {
        throw sluice::Error(std::to_string(rows) + " rows of " + std::to_string(width) +
                            " boxes cannot be made of " + std::to_string(boxes.size()) + " boxes");
    }
}

template <class T, sluice::Backend B>
PaddedBoxes<T, B>::PaddedBoxes(sluice::DeviceSpan<T, B> numbers, std::size_t rows, std::size_t width)
    : boxes_(reinterpret_cast<Element*>(numbers.data()), numbers.size() / 4), rows_(rows), width_(width) {
    if (numbers.size() != 4 * rows * width) {
        throw sluice::Error(std::to_string(rows) + " rows of " + std::to_string(width) +
                            " boxes cannot be made of " + std::to_string(numbers.size()) + " numbers");
    }
    if (reinterpret_cast<std::uintptr_t>(numbers.data()) % alignof(Element) != 0) {
        throw sluice::Error("boxes cannot be made of numbers that begin in between; expected an address that "
                            "is a multiple of " +
                            std::to_string(alignof(Element)) + " bytes");
    }
}

} // namespace nn
