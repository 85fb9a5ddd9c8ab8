// Bodies of pixels.hpp, the same for both backends.
#pragma once

#include <nn/elementwise/for_each.hpp>
#include <nn/elementwise/pixels.hpp>

namespace nn {
namespace detail {

template <class T>
struct RowsFromImages {
    const T* images;
    const std::int32_t* raster_of_row;
    float* rows;
    std::size_t pixels;
    std::size_t channels;
    float scale;

    SLUICE_HOST_DEVICE void operator()(std::size_t row, std::size_t channel) const {
        const std::size_t image = quotient(row, pixels);
        const std::size_t pixel = static_cast<std::size_t>(raster_of_row[row - image * pixels]);
        rows[row * channels + channel] =
            scale * static_cast<float>(images[(image * channels + channel) * pixels + pixel]);
    }
};

/// One element of one tap: `tap_row` counts taps within pixels within images.
struct GatherNeighbours {
    const float* rows;
    const std::int32_t* neighbours;
    float* gathered;
    std::size_t pixels;
    std::size_t channels;

    SLUICE_HOST_DEVICE void operator()(std::size_t tap_row, std::size_t channel) const {
        const std::size_t image = quotient(tap_row, 9 * pixels);
        const std::int32_t neighbour = neighbours[tap_row - image * 9 * pixels];
        float value = 0.0f;
        if (neighbour >= 0) {
            value = rows[(image * pixels + static_cast<std::size_t>(neighbour)) * channels + channel];
        }
        gathered[tap_row * channels + channel] = value;
    }
};

} // namespace detail

template <class T, sluice::Backend B>
void rows_from_any_images(sluice::BasicStreamRef<B> stream, SpanArgument<const T, B> images,
                          SpanArgument<const std::int32_t, B> raster_of_row, float scale,
                          MatrixArgument<B> rows) {
    const std::size_t pixels = raster_of_row.size();
    if (pixels == 0 || rows.rows() % pixels != 0) {
        throw sluice::Error("rows_from_images: " + std::to_string(rows.rows()) +
                            " rows are no multiple of an image's " + std::to_string(pixels) + " pixels");
    }
    require_size("rows_from_images: elements of the images", images.size(), rows.size());
    for_each(stream, rows.rows(), rows.columns(),
             detail::RowsFromImages<T>{images.data(), raster_of_row.data(), rows.data(), pixels,
                                       rows.columns(), scale});
}

template <sluice::Backend B>
void rows_from_images(sluice::BasicStreamRef<B> stream, SpanArgument<const std::uint8_t, B> images,
                      SpanArgument<const std::int32_t, B> raster_of_row, float scale,
                      MatrixArgument<B> rows) {
    rows_from_any_images<std::uint8_t>(stream, images, raster_of_row, scale, rows);
}

template <sluice::Backend B>
void rows_from_images(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> images,
                      SpanArgument<const std::int32_t, B> raster_of_row, float scale,
                      MatrixArgument<B> rows) {
    rows_from_any_images<float>(stream, images, raster_of_row, scale, rows);
}

template <sluice::Backend B>
void gather_neighbours(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> rows,
                       SpanArgument<const std::int32_t, B> neighbours, MatrixArgument<B> gathered) {
    const std::size_t pixels = neighbours.size() / 9;
    if (pixels == 0 || neighbours.size() % 9 != 0 || rows.rows() % pixels != 0) {
        throw sluice::Error("gather_neighbours: " + std::to_string(rows.rows()) +
                            " rows do not fit a table of " + std::to_string(neighbours.size()) +
                            " neighbours, nine for each pixel of an image");
    }
    require_size("gather_neighbours: rows of the result", gathered.rows(), rows.rows());
    require_size("gather_neighbours: columns of the result", gathered.columns(), 9 * rows.columns());
    for_each(
        stream, 9 * rows.rows(), rows.columns(),
        detail::GatherNeighbours{rows.data(), neighbours.data(), gathered.data(), pixels, rows.columns()});
}

} // namespace nn
