/// \file
/// Views of batches of images in device memory, and their layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <nn/core/float16.hpp>
#include <sluice/memory/span.hpp>

namespace augment {

/// The order of a batch's numbers in memory.
enum class Layout {
    planar,      ///< [N, C, H, W]
    interleaved, ///< [N, H, W, C]
};

/// The extents of one image, which holds fewer than 2^31 numbers; height and width are at most 2^20.
struct ImageShape {
    int channels = 0;
    int height = 0;
    int width = 0;

    friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// A type that pixels are read from and written to: `std::uint8_t`, `nn::Half` or float. Arithmetic is in float. A float
/// becomes a byte by rounding to nearest, ties to even, clamped to 0 … 255; NaN becomes 0.
template <class T>
concept PixelType =
    std::is_same_v<std::remove_const_t<T>, std::uint8_t> ||
    std::is_same_v<std::remove_const_t<T>, nn::Half> || std::is_same_v < std::remove_const_t<T>,
float > ;

/// `count()` images of one shape without gaps, in the memory of a backend's device. `T` may be const. Trivially copyable;
/// owns nothing.
template <class T, sluice::Backend B>
class Images {
public:
    using Element = T;
    using backend = B;

    /// Views `elements`. Throws `sluice::Error` unless they are a whole number of images, at least one, and fewer than
    /// 2^31 of them.
    Images(sluice::DeviceSpan<T, B> elements, ImageShape shape, Layout layout = Layout::planar);

    /// A view of writable images converts to one of const images.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) Images(Images<U, B> other)
        : data_(other.data()), count_(other.count()), shape_(other.shape()), layout_(other.layout()) {}

    T* data() const noexcept { return data_; }
    int count() const noexcept { return count_; }
    ImageShape shape() const noexcept { return shape_; }
    Layout layout() const noexcept { return layout_; }

private:
    T* data_;
    int count_;
    ImageShape shape_;
    Layout layout_;
    // In place of padding, which captures would take for changes of a kernel's arguments.
    [[maybe_unused]] std::int32_t unused_ = 0;
};

namespace detail {

/// The number at channel c, row y and column x is `data[c * channel + y * row + x * column]`.
struct Strides {
    std::int64_t image;
    int channel;
    int row;
    int column;
    int unused = 0; ///< As above.
};

SLUICE_HOST_DEVICE constexpr Strides strides(ImageShape shape, Layout layout);

std::string text_of(ImageShape shape);

/// Throws `sluice::Error`, beginning with `what`, unless all extents are in range.
void require_image(const char* what, ImageShape shape);

SLUICE_HOST_DEVICE inline float load_pixel(std::uint8_t value) { return static_cast<float>(value); }
SLUICE_HOST_DEVICE inline float load_pixel(nn::Half value) { return static_cast<float>(value); }
SLUICE_HOST_DEVICE inline float load_pixel(float value) { return value; }

template <class T>
SLUICE_HOST_DEVICE T store_pixel(float value);

} // namespace detail

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

SLUICE_HOST_DEVICE constexpr Strides strides(ImageShape shape, Layout layout) {
    const int pixels = shape.height * shape.width;
    const std::int64_t image = static_cast<std::int64_t>(shape.channels) * pixels;
    if (layout == Layout::planar)
        return {image, pixels, shape.width, 1};
    return {image, 1, shape.channels * shape.width, shape.channels};
}

inline std::string text_of(ImageShape shape) {
    return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
           std::to_string(shape.width);
}

/// "1 image", "2 images".
template <class Integer>
std::string counted(Integer number, const char* noun) {
    return std::to_string(number) + ' ' + noun + (number == 1 ? "" : "s");
}

inline void require_image(const char* what, ImageShape shape) {
    constexpr int most = 1 << 20;
    if (shape.channels < 1 || shape.height < 1 || shape.width < 1 || shape.channels > most ||
        shape.height > most || shape.width > most) {
        throw sluice::Error(std::string(what) + " of " + text_of(shape) +
                            " pixels; channels, height and width must be 1 to " + std::to_string(most));
    }
    if (static_cast<std::int64_t>(shape.height) * shape.width >
        std::numeric_limits<int>::max() / shape.channels) {
        throw sluice::Error(std::string(what) + " of " + text_of(shape) +
                            " pixels; one image must hold fewer than 2^31 numbers");
    }
}

template <class T>
SLUICE_HOST_DEVICE T store_pixel(float value) {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
        // A comparison with NaN is false.
        const float clamped = value > 0.0f ? (value < 255.0f ? value : 255.0f) : 0.0f;
        return static_cast<std::uint8_t>(nn::detail::bits_of(clamped + 8388608.0f) & 0xFFu);
    } else {
        return T(value);
    }
}

} // namespace detail

template <class T, sluice::Backend B>
Images<T, B>::Images(sluice::DeviceSpan<T, B> elements, ImageShape shape, Layout layout)
    : data_(elements.data()), count_(0), shape_(shape), layout_(layout) {
    static_assert(PixelType<T>, "augment::Images: pixels are std::uint8_t, nn::Half or float");
    detail::require_image("images", shape);
    const std::size_t each = static_cast<std::size_t>(shape.channels) *
                             static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
    if (elements.empty()) {
        throw sluice::Error("a batch of images is empty; it must hold at least one image of " +
                            detail::text_of(shape));
    }
    if (elements.size() % each != 0 ||
        elements.size() / each > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw sluice::Error("a batch of " + detail::counted(elements.size(), "element") +
                            " was given, which is no number of images of " + detail::text_of(shape));
    }
    count_ = static_cast<int>(elements.size() / each);
}

} // namespace augment
