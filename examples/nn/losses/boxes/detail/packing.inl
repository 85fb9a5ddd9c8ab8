// Variant 2: from padded predictions to packed ones, and the gradients back. The same for both backends.
#pragma once

#include <nn/elementwise/for_each.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>

namespace nn::detail {

template <class P, class U>
struct GatherBoxes {
    const Box<P>* predictions;
    std::int64_t width;
    sluice::RaggedView<const Box<U>> shape;
    Box<P>* packed;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        const auto value = static_cast<std::int64_t>(i);
        if (value >= shape.size())
            return;
        const std::int64_t row = shape.row_of(value);
        const std::int64_t position = value - shape.offset(row);
        if (position < width) {
            packed[value] = predictions[row * width + position];
        } else { // there is no such prediction, and the mean will show it
            packed[value] = box_as<P>(Box<float>{NAN, NAN, NAN, NAN});
        }
    }
};

template <class G, class U>
struct ScatterBoxes {
    const Box<G>* packed;
    sluice::RaggedView<const Box<U>> shape;
    Box<G>* padded;
    std::int64_t width;

    SLUICE_HOST_DEVICE void operator()(std::size_t row_index, std::size_t column) const {
        const auto row = static_cast<std::int64_t>(row_index);
        const auto position = static_cast<std::int64_t>(column);
        const std::int64_t length = row < shape.rows() ? shape.length(row) : 0;
        padded[row * width + position] =
            position < length && length <= width ? packed[shape.offset(row) + position] : zero_box<G>();
    }
};

template <class P, class U, sluice::Backend B>
void run_gather(sluice::BasicStreamRef<B> stream, const Box<P>* predictions, std::size_t width,
                sluice::RaggedView<const Box<U>> shape, Box<P>* packed) {
    for_each(stream, static_cast<std::size_t>(shape.value_capacity()),
             GatherBoxes<P, U>{predictions, static_cast<std::int64_t>(width), shape, packed});
}

template <class G, class U, sluice::Backend B>
void run_scatter(sluice::BasicStreamRef<B> stream, const Box<G>* packed,
                 sluice::RaggedView<const Box<U>> shape, Box<G>* padded, std::size_t rows,
                 std::size_t width) {
    for_each(stream, rows, width,
             ScatterBoxes<G, U>{packed, shape, padded, static_cast<std::int64_t>(width)});
}

} // namespace nn::detail
