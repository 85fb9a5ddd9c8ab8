// Bodies of geometry.hpp.
#pragma once

namespace augment {

namespace detail {

// Resizing: neighbours and their weights. ------------------------------------------------------------------------

SLUICE_HOST_DEVICE inline int least(int a, int b) { return a < b ? a : b; }
SLUICE_HOST_DEVICE inline int most(int a, int b) { return a > b ? a : b; }
SLUICE_HOST_DEVICE inline int clamped(int value, int low, int high) { return most(low, least(value, high)); }

template <int C>
SLUICE_HOST_DEVICE Pixel<C> filled(float value) {
    Pixel<C> result;
    for (int c = 0; c < C; ++c)
        result.value[c] = value;
    return result;
}

/// The two neighbours that a bilinear sample lies between, and the second one's weight.
struct Taps {
    int first;
    int second;
    float weight;
};

/// Those of the resized row or column `i`.
SLUICE_HOST_DEVICE inline Taps resize_taps(int i, float scale, int size) {
    const float centre = sum(product(scale, sum(static_cast<float>(i), 0.5f)), -0.5f);
    const float from_edge = centre > 0.0f ? centre : 0.0f;
    const int first = least(static_cast<int>(from_edge), size - 1);
    return {first, least(first + 1, size - 1), sum(from_edge, -static_cast<float>(first))};
}

/// The rows or columns that an antialiased resize takes its `i` from, and their weights.
struct Triangle {
    int begin;
    int end;
    float centre;
    float slope;

    SLUICE_HOST_DEVICE float weight(int j) const {
        const float distance = product(sum(sum(static_cast<float>(j), 0.5f), -centre), slope);
        const float value = 1.0f - (distance < 0.0f ? -distance : distance);
        return value > 0.0f ? value : 0.0f;
    }
    SLUICE_HOST_DEVICE float total() const {
        float result = 0.0f;
        for (int j = begin; j < end; ++j)
            result += weight(j);
        return result;
    }
};

SLUICE_HOST_DEVICE inline Triangle triangle(int i, float scale, int size) {
    const float support = scale > 1.0f ? scale : 1.0f;
    const float centre = product(scale, sum(static_cast<float>(i), 0.5f));
    const int begin = most(static_cast<int>(sum(sum(centre, -support), 0.5f)), 0);
    const int end = least(static_cast<int>(sum(sum(centre, support), 0.5f)), size);
    return {begin, end, centre, 1.0f / support};
}

/// The weights of a few rows or columns, computed once.
struct KeptWeights {
    static constexpr int most = 6; ///< enough to shrink to half the size
    float kept[static_cast<std::size_t>(most)];
    float sum_of_all = 0.0f;

    SLUICE_HOST_DEVICE explicit KeptWeights(const Triangle& from) {
        for (int k = 0; k < most; ++k) {
            kept[k] = from.begin + k < from.end ? from.weight(from.begin + k) : 0.0f;
            sum_of_all += kept[k];
        }
    }
    SLUICE_HOST_DEVICE float total() const { return sum_of_all; }
};

/// A row of what `filtered` computes.
template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> filtered_row(const Previous& previous, int j, const Triangle& columns,
                                         const Triangle& weights) {
    Pixel<C> row = filled<C>(0.0f);
    for (int i = columns.begin; i < columns.end; ++i) {
        const float weight = weights.weight(i);
        const Pixel<C> pixel = previous(j, i);
        for (int c = 0; c < C; ++c)
            row.value[c] += weight * pixel.value[c];
    }
    return row;
}
template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> filtered_row(const Previous& previous, int j, const Triangle& columns,
                                         const KeptWeights& weights) {
    Pixel<C> row = filled<C>(0.0f);
    for (int k = 0; k < KeptWeights::most; ++k) {
        if (columns.begin + k >= columns.end)
            break;
        const Pixel<C> pixel = previous(j, columns.begin + k);
        for (int c = 0; c < C; ++c)
            row.value[c] += weights.kept[k] * pixel.value[c];
    }
    return row;
}

/// The mean of `rows` and `columns`, weighted with `weights` along columns.
template <int C, class Previous, class Weights>
SLUICE_HOST_DEVICE Pixel<C> filtered(const Previous& previous, const Triangle& rows, const Triangle& columns,
                                     const Weights& weights) {
    Pixel<C> result = filled<C>(0.0f);
    float total = 0.0f;
    for (int j = rows.begin; j < rows.end; ++j) {
        const Pixel<C> row = filtered_row<C>(previous, j, columns, weights);
        const float weight = rows.weight(j);
        total += weight;
        for (int c = 0; c < C; ++c)
            result.value[c] += weight * row.value[c];
    }
    total *= weights.total();
    for (int c = 0; c < C; ++c)
        result.value[c] /= total;
    return result;
}

template <int C>
SLUICE_HOST_DEVICE Pixel<C> between(const Pixel<C>& a, const Pixel<C>& b, float weight) {
    Pixel<C> result;
    for (int c = 0; c < C; ++c)
        result.value[c] = a.value[c] + weight * (b.value[c] - a.value[c]);
    return result;
}

// Rotation. ------------------------------------------------------------------------------------------------------

/// The point of the input that a pixel of the rotated image comes from.
struct SourcePoint {
    float y;
    float x;
};

template <class Prepared>
SLUICE_HOST_DEVICE SourcePoint rotate_back(const Prepared& p, int y, int x) {
    const float from_y = sum(static_cast<float>(y), -p.centre_y);
    const float from_x = sum(static_cast<float>(x), -p.centre_x);
    // What depends on x alone comes first: a loop over y computes it once.
    return {sum(sum(product(p.sine, from_x), p.centre_y), product(p.cosine, from_y)),
            sum(sum(product(p.cosine, from_x), p.centre_x), -product(p.sine, from_y))};
}

SLUICE_HOST_DEVICE inline bool inside(int y, int x, int height, int width) {
    return static_cast<unsigned>(y) < static_cast<unsigned>(height) &&
           static_cast<unsigned>(x) < static_cast<unsigned>(width);
}

} // namespace detail

inline ImageShape Crop::output_shape(ImageShape in) const {
    detail::require_crop(in, height, width);
    return shape_after(in);
}

SLUICE_HOST_DEVICE inline Crop::Prepared Crop::prepare(const SampleParameters& parameters,
                                                       ImageShape in) const {
    return {detail::clamped(parameters.top, 0, in.height - height),
            detail::clamped(parameters.left, 0, in.width - width)};
}

inline ImageShape RoiAlignCrop::output_shape(ImageShape in) const {
    detail::require_crop(in, height, width);
    return shape_after(in);
}

SLUICE_HOST_DEVICE inline RoiAlignCrop::Prepared RoiAlignCrop::prepare(const SampleParameters& parameters,
                                                                       ImageShape in) const {
    return {detail::clamped(parameters.top, 0, in.height - height),
            detail::clamped(parameters.left, 0, in.width - width), in.height - 1, in.width - 1};
}

template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> RoiAlignCrop::at(const Prepared& p, const Previous& previous, int y, int x) {
    const int top = y + p.top;
    const int left = x + p.left;
    const int bottom = detail::least(top + 1, p.last_row);
    const int right = detail::least(left + 1, p.last_column);
    const Pixel<C> a = previous(top, left);
    const Pixel<C> b = previous(top, right);
    const Pixel<C> c = previous(bottom, left);
    const Pixel<C> d = previous(bottom, right);
    Pixel<C> result;
    for (int i = 0; i < C; ++i)
        result.value[i] = 0.25f * ((a.value[i] + b.value[i]) + (c.value[i] + d.value[i]));
    return result;
}

inline ImageShape Resize::output_shape(ImageShape in) const {
    const ImageShape out = shape_after(in);
    detail::require_image("a resize to images", out);
    return out;
}

SLUICE_HOST_DEVICE inline Resize::Prepared Resize::prepare(const SampleParameters&, ImageShape in) const {
    const float scale_y = static_cast<float>(in.height) / static_cast<float>(height);
    const float scale_x = static_cast<float>(in.width) / static_cast<float>(width);
    return {in.height, in.width, scale_y, scale_x, antialias && (scale_y > 1.0f || scale_x > 1.0f)};
}

template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> Resize::at(const Prepared& p, const Previous& previous, int y, int x) {
    if (p.filtered) {
        const detail::Triangle rows = detail::triangle(y, p.scale_y, p.in_height);
        const detail::Triangle columns = detail::triangle(x, p.scale_x, p.in_width);
        return columns.end - columns.begin <= detail::KeptWeights::most
                   ? detail::filtered<C>(previous, rows, columns, detail::KeptWeights(columns))
                   : detail::filtered<C>(previous, rows, columns, columns);
    }
    const detail::Taps rows = detail::resize_taps(y, p.scale_y, p.in_height);
    const detail::Taps columns = detail::resize_taps(x, p.scale_x, p.in_width);
    const Pixel<C> above = detail::between(previous(rows.first, columns.first),
                                           previous(rows.first, columns.second), columns.weight);
    const Pixel<C> below = detail::between(previous(rows.second, columns.first),
                                           previous(rows.second, columns.second), columns.weight);
    return detail::between(above, below, rows.weight);
}

template <class Sampling>
SLUICE_HOST_DEVICE typename Rotate<Sampling>::Prepared
Rotate<Sampling>::prepare(const SampleParameters& parameters, ImageShape in) const {
    const detail::SineCosine rotation = detail::sine_and_cosine(parameters.angle_degrees);
    return {rotation.sine,
            rotation.cosine,
            0.5f * static_cast<float>(in.height - 1),
            0.5f * static_cast<float>(in.width - 1),
            in.height,
            in.width,
            fill};
}

template <class Sampling>
template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> Rotate<Sampling>::at(const Prepared& p, const Previous& previous, int y, int x) {
    const detail::SourcePoint from = detail::rotate_back(p, y, x);
    if constexpr (std::is_same_v<Sampling, Nearest>) {
        const int row = detail::round_even(from.y);
        const int column = detail::round_even(from.x);
#if defined(__CUDA_ARCH__)
        // Without a branch, the loads of several pixels overlap.
        const bool in = detail::inside(row, column, p.height, p.width);
        Pixel<C> pixel = previous(in ? row : 0, in ? column : 0);
        for (int c = 0; c < C; ++c)
            pixel.value[c] = in ? pixel.value[c] : p.fill;
        return pixel;
#else
        if (!detail::inside(row, column, p.height, p.width))
            return detail::filled<C>(p.fill);
        return previous(row, column);
#endif
    } else {
        // A NaN fails these comparisons too.
        const bool seen = from.y > -1.0f && from.x > -1.0f && from.y < static_cast<float>(p.height) &&
                          from.x < static_cast<float>(p.width);
#if !defined(__CUDA_ARCH__)
        if (!seen)
            return detail::filled<C>(p.fill);
#endif
        const int row = detail::round_down(seen ? from.y : 0.0f);
        const int column = detail::round_down(seen ? from.x : 0.0f);
        const float down = detail::sum(from.y, -static_cast<float>(row));
        const float right = detail::sum(from.x, -static_cast<float>(column));
        Pixel<C> result = detail::filled<C>(0.0f);
        float covered = 0.0f;
        for (int corner = 0; corner < 4; ++corner) {
            const int y_corner = row + corner / 2;
            const int x_corner = column + corner % 2;
            const bool there = detail::inside(y_corner, x_corner, p.height, p.width);
#if !defined(__CUDA_ARCH__)
            if (!there)
                continue;
#endif
            const float weight =
                (corner / 2 == 0 ? 1.0f - down : down) * (corner % 2 == 0 ? 1.0f - right : right);
            // Without a branch, the loads of all corners overlap.
            const Pixel<C> pixel = previous(there ? y_corner : 0, there ? x_corner : 0);
            covered += there ? weight : 0.0f;
            for (int c = 0; c < C; ++c)
                result.value[c] += weight * (there ? pixel.value[c] : 0.0f);
        }
        for (int c = 0; c < C; ++c)
            result.value[c] = seen ? covered * (result.value[c] - p.fill) + p.fill : p.fill;
        return result;
    }
}

} // namespace augment
