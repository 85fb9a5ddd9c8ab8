/// \file
/// The operators that move pixels.
///
/// Each is a small struct of what is the same for all samples. `Prepared` adds a sample's parameters. `at` computes the
/// pixel (y, x) of the result from pixels of `previous`, a functor of coordinates that returns all channels. Rows go down,
/// columns to the right. Coordinates are the same on every backend.
///
/// Boxes are in edge coordinates, where pixel (y, x) covers y … y + 1 and x … x + 1.
#pragma once

#include <augment/detail/arithmetic.hpp>
#include <augment/images.hpp>
#include <augment/parameters.hpp>

namespace augment {

/// One pixel: `Channels` neighbouring channels of it.
template <int Channels>
struct Pixel {
    float value[static_cast<std::size_t>(Channels)];
};

/// The kind of an operator, which decides how a chain evaluates it.
enum class OperatorKind { geometry, value, blur };

/// A window of `height` by `width` from (top, left): an exact copy.
struct Crop {
    int height = 0;
    int width = 0;

    static constexpr OperatorKind kind = OperatorKind::geometry;
    struct Prepared {
        int top;
        int left;
    };
    /// Throws `sluice::Error` for a crop that is larger than the image.
    ImageShape output_shape(ImageShape in) const;
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return {in.channels, height, width}; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const;
    template <int C, class Previous>
    SLUICE_HOST_DEVICE static Pixel<C> at(const Prepared& p, const Previous& previous, int y, int x) {
        return previous(y + p.top, x + p.left);
    }
};

/// A window as torchvision's `roi_align(aligned=False)` takes it, which is not a copy: each pixel is the mean of the 2x2
/// block that begins at it; blocks at the image's lower and right edges repeat its last row and column.
struct RoiAlignCrop {
    int height = 0;
    int width = 0;

    static constexpr OperatorKind kind = OperatorKind::geometry;
    struct Prepared {
        int top;
        int left;
        int last_row;
        int last_column;
    };
    /// Throws `sluice::Error` for a crop that is larger than the image.
    ImageShape output_shape(ImageShape in) const;
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return {in.channels, height, width}; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const;
    template <int C, class Previous>
    SLUICE_HOST_DEVICE static Pixel<C> at(const Prepared& p, const Previous& previous, int y, int x);
};

/// To `height` by `width`, bilinear, with half-pixel centres, corners not aligned. What shrinks is antialiased with a
/// triangle as wide as the scale, as PyTorch's `interpolate(antialias=True)` does, unless `antialias` is false.
struct Resize {
    int height = 0;
    int width = 0;
    bool antialias = true;

    static constexpr OperatorKind kind = OperatorKind::geometry;
    struct Prepared {
        int in_height;
        int in_width;
        float scale_y; ///< rows of the image for each row of the result
        float scale_x;
        bool filtered;
    };
    /// Throws `sluice::Error` for a size without pixels.
    ImageShape output_shape(ImageShape in) const;
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return {in.channels, height, width}; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const;
    template <int C, class Previous>
    SLUICE_HOST_DEVICE static Pixel<C> at(const Prepared& p, const Previous& previous, int y, int x);
};

/// Swaps left and right where the sample's `flip` is not 0.
struct Flip {
    static constexpr OperatorKind kind = OperatorKind::geometry;
    struct Prepared {
        int width;
        bool flip;
    };
    ImageShape output_shape(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const {
        return {in.width, parameters.flip != 0};
    }
    template <int C, class Previous>
    SLUICE_HOST_DEVICE static Pixel<C> at(const Prepared& p, const Previous& previous, int y, int x) {
        return previous(y, p.flip ? p.width - 1 - x : x);
    }
};

/// How a rotation samples.
struct Nearest {};  ///< the nearest pixel, ties to even
struct Bilinear {}; ///< see Rotate

/// Rotates by the sample's angle, counter-clockwise, about the image's centre; the image keeps its size, and what comes from
/// outside is `fill`. `Bilinear` does as torchvision does: what is m inside and 1 - m outside, where the image is continued
/// with 0 to a value v, becomes m (v - fill) + fill.
template <class Sampling>
struct Rotate {
    static_assert(std::is_same_v<Sampling, Nearest> || std::is_same_v<Sampling, Bilinear>,
                  "augment::Rotate: sample with augment::Nearest or augment::Bilinear");
    float fill = 0.0f;

    static constexpr OperatorKind kind = OperatorKind::geometry;
    struct Prepared {
        float sine;
        float cosine;
        float centre_y;
        float centre_x;
        int height;
        int width;
        float fill;
    };
    ImageShape output_shape(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE ImageShape shape_after(ImageShape in) const { return in; }
    SLUICE_HOST_DEVICE Prepared prepare(const SampleParameters& parameters, ImageShape in) const;
    template <int C, class Previous>
    SLUICE_HOST_DEVICE static Pixel<C> at(const Prepared& p, const Previous& previous, int y, int x);
};

} // namespace augment

#include <augment/operators/detail/geometry.inl>
