/// \file
/// A layer whose step of gradient descent waits until its weights are needed next.
#pragma once

#include <cstddef>

#include <nn/gemm/gemm_sgd_update.hpp>
#include <nn/layers/layer.hpp>

namespace nn {

/// Beside a Layer, with a ReLU after it, of many weights and so few rows that time goes into moving the weights through
/// memory: keeps what a step needs, and takes the step within the next product. Weights are then one step behind what
/// has been learnt, until `settle`; the bias is not.
template <sluice::Backend B>
class DeferredUpdate {
public:
    /// Whether a backend has the product for so many rows.
    static constexpr bool supports(std::size_t rows) { return rows > 0 && rows <= gemm_sgd_update_rows<B>; }

    /// Of none.
    DeferredUpdate() = default;
    /// For inputs of at most `rows` rows. Throws `sluice::Error`.
    DeferredUpdate(const LayerShape& shape, std::size_t rows);

    bool in_use() const noexcept { return rows_ > 0; }

    /// Where the gradient of the layer's output is to be written, after the layer's latest `forward`.
    Matrix<float, B> gradient(std::size_t rows) {
        return {gradient_.span().first(rows * columns_), rows, columns_};
    }

    /// Takes the step that is kept, and then `out = relu(in * W + bias)`. The step is still kept.
    void forward(sluice::BasicStreamRef<B> stream, Layer<B>& layer, Matrix<const float, B> in,
                 Matrix<float, B> out);

    /// Keeps a step: copies of the latest forward's input and of `factors`; the gradient is the one there is when it is
    /// taken.
    void defer(sluice::BasicStreamRef<B> stream, Matrix<const float, B> in,
               sluice::DeviceSpan<const float, B> factors);

    /// Forgets the step that is kept, and all of it: what is no number would stay none when multiplied with 0.
    void discard(sluice::BasicStreamRef<B> stream);

    /// Takes the step that is kept, and forgets it.
    void flush(sluice::BasicStreamRef<B> stream, Layer<B>& layer);

private:
    PendingStep<B> pending() const { return {{in_, rows_, inputs_}, {gradient_, rows_, columns_}, factors_}; }

    std::size_t rows_ = 0;
    std::size_t inputs_ = 0;
    std::size_t columns_ = 0;
    sluice::DeviceBuffer<float, B> in_; // rows of 0 make no step
    sluice::DeviceBuffer<float, B> gradient_;
    sluice::DeviceBuffer<float, B> factors_;
    sluice::DeviceBuffer<float, B> scratch_;
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
DeferredUpdate<B>::DeferredUpdate(const LayerShape& shape, std::size_t rows)
    : rows_(rows), inputs_(shape.rows()), columns_(shape.columns()), in_(rows * inputs_),
      gradient_(rows * columns_), factors_(2) {
    if constexpr (supports(1))
        scratch_ = sluice::DeviceBuffer<float, B>(gemm_sgd_update_scratch(inputs_, columns_));
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { discard(stream); });
}

template <sluice::Backend B>
void DeferredUpdate<B>::forward(sluice::BasicStreamRef<B> stream, Layer<B>& layer, Matrix<const float, B> in,
                                Matrix<float, B> out) {
    if constexpr (supports(1)) {
        gemm_sgd_update(stream, pending(), layer.weights(), in.with_columns(inputs_), layer.bias(),
                        out.with_columns(columns_), scratch_);
    }
}

template <sluice::Backend B>
void DeferredUpdate<B>::defer(sluice::BasicStreamRef<B> stream, Matrix<const float, B> in,
                              sluice::DeviceSpan<const float, B> factors) {
    sluice::copy(stream, in_.span().first(in.size()), in.span());
    // A step of fewer rows than the one before leaves gradients of that one behind.
    if (in.size() < in_.size())
        sluice::fill_bytes(stream, in_.span().subspan(in.size(), in_.size() - in.size()), 0);
    sluice::copy(stream, factors_, factors);
}

template <sluice::Backend B>
void DeferredUpdate<B>::discard(sluice::BasicStreamRef<B> stream) {
    sluice::fill_bytes(stream, in_, 0);
    sluice::fill_bytes(stream, gradient_, 0);
    sluice::fill_bytes(stream, factors_, 0);
}

template <sluice::Backend B>
void DeferredUpdate<B>::flush(sluice::BasicStreamRef<B> stream, Layer<B>& layer) {
    if constexpr (supports(1)) {
        sgd_update(stream, pending(), layer.weights());
        discard(stream);
    }
}

} // namespace nn
