// Bodies of cross_entropy.hpp, the same for both backends.
#pragma once

#include <cmath>

#include <nn/elementwise/for_each.hpp>
#include <nn/losses/cross_entropy.hpp>

namespace nn {
namespace detail {

/// Where a row's label and prediction are.
struct RasterPlace {
    const std::int32_t* raster_of_row; // null: a row is a sample of its own
    std::size_t pixels;

    SLUICE_HOST_DEVICE std::size_t operator()(std::size_t row) const {
        if (raster_of_row == nullptr)
            return row;
        const std::size_t image = quotient(row, pixels);
        return image * pixels + static_cast<std::size_t>(raster_of_row[row - image * pixels]);
    }
};

struct SoftmaxCrossEntropy {
    const float* logits;
    const std::uint8_t* labels;
    float* gradient;
    float* losses;
    std::size_t classes;
    float scale;
    RasterPlace place;

    SLUICE_HOST_DEVICE void operator()(std::size_t row) const {
        const float* mine = logits + row * classes;
        float* result = gradient + row * classes;
        const std::size_t label = labels[place(row)];
        if (label >= classes) {
            losses[row] = NAN;
            for (std::size_t j = 0; j < classes; ++j)
                result[j] = 0.0f;
            return;
        }
        float greatest = mine[0];
        for (std::size_t j = 1; j < classes; ++j)
            greatest = mine[j] > greatest ? mine[j] : greatest;
        const float chosen = mine[label] - greatest;
        // `result` may be `logits`: from here on it holds the exponentials.
        float sum = 0.0f;
        for (std::size_t j = 0; j < classes; ++j) {
            const float power = expf(mine[j] - greatest);
            result[j] = power;
            sum += power;
        }
        losses[row] = logf(sum) - chosen;
        for (std::size_t j = 0; j < classes; ++j) {
            result[j] = (result[j] / sum - (j == label ? 1.0f : 0.0f)) * scale;
        }
    }
};

struct PredictClasses {
    const float* logits;
    std::uint8_t* predictions;
    std::size_t classes;
    RasterPlace place;

    SLUICE_HOST_DEVICE void operator()(std::size_t row) const {
        const float* mine = logits + row * classes;
        std::size_t best = 0;
        for (std::size_t j = 1; j < classes; ++j)
            best = mine[j] > mine[best] ? j : best;
        predictions[place(row)] = static_cast<std::uint8_t>(best);
    }
};

/// Throws unless `rows` rows are whole images of `pixels` pixels, or there are no images.
inline void require_whole_images(const char* what, std::size_t rows, std::size_t pixels) {
    if (pixels != 0 && rows % pixels != 0) {
        throw sluice::Error(std::string(what) + ": " + std::to_string(rows) +
                            " rows are no multiple of an image's " + std::to_string(pixels) + " pixels");
    }
}

} // namespace detail

template <sluice::Backend B>
void softmax_cross_entropy(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                           SpanArgument<const std::uint8_t, B> labels,
                           SpanArgument<const std::int32_t, B> raster_of_row, MatrixArgument<B> gradient,
                           SpanArgument<float, B> losses) {
    detail::require_whole_images("softmax_cross_entropy", logits.rows(), raster_of_row.size());
    require_size("softmax_cross_entropy: labels", labels.size(), logits.rows());
    require_size("softmax_cross_entropy: elements of the gradient", gradient.size(), logits.size());
    require_size("softmax_cross_entropy: elements of the losses", losses.size(), logits.rows());
    for_each(stream, logits.rows(),
             detail::SoftmaxCrossEntropy{logits.data(),
                                         labels.data(),
                                         gradient.data(),
                                         losses.data(),
                                         logits.columns(),
                                         1.0f / static_cast<float>(logits.rows()),
                                         {raster_of_row.data(), raster_of_row.size()}});
}

template <sluice::Backend B>
void predict_classes(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                     SpanArgument<const std::int32_t, B> raster_of_row,
                     SpanArgument<std::uint8_t, B> predictions) {
    detail::require_whole_images("predict_classes", logits.rows(), raster_of_row.size());
    require_size("predict_classes: predictions", predictions.size(), logits.rows());
    if (logits.columns() > 256) {
        throw sluice::Error("predict_classes: " + std::to_string(logits.columns()) +
                            " classes do not fit a byte; expected at most 256");
    }
    for_each(stream, logits.rows(),
             detail::PredictClasses{logits.data(),
                                    predictions.data(),
                                    logits.columns(),
                                    {raster_of_row.data(), raster_of_row.size()}});
}

} // namespace nn

/// Explicit instantiations, in namespace nn, once for each backend.
#define NN_INSTANTIATE_CROSS_ENTROPY(Backend)                                                                \
    template void softmax_cross_entropy(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,       \
                                        SpanArgument<const std::uint8_t, Backend>,                           \
                                        SpanArgument<const std::int32_t, Backend>, MatrixArgument<Backend>,  \
                                        SpanArgument<float, Backend>);                                       \
    template void predict_classes(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,             \
                                  SpanArgument<const std::int32_t, Backend>,                                 \
                                  SpanArgument<std::uint8_t, Backend>);
