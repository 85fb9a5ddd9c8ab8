/// \file
/// A step of gradient descent that is applied when the weights are needed next.
#pragma once

#include <cstddef>

#include <nn/gemm/gemm_sgd_update.hpp>
#include <nn/layers/layer.hpp>

namespace nn {

/// For a Layer with a ReLU after it, of many weights and so few rows that it is bound by memory: stores the inputs of a
/// step, and applies it within the next forward product (see gemm_sgd_update.hpp). Until `flush`, the layer's weights are
/// one step old; its bias is up to date.
template <sluice::Backend B>
class DeferredUpdate {
public:
    /// Whether a backend has the product for so many rows.
    static constexpr bool supports(std::size_t rows) { return rows > 0 && rows <= gemm_sgd_update_rows<B>; }

    /// Not in use.
    DeferredUpdate() = default;
    /// For inputs of at most `rows` rows. Throws `sluice::Error`.
    DeferredUpdate(const LayerShape& shape, std::size_t rows);

    bool in_use() const noexcept { return rows_ > 0; }

    /// Where the gradient of the layer's output is to be written, after the layer's latest `forward`.
    Matrix<float, B> gradient(std::size_t rows) {
        return {gradient_.span().first(rows * columns_), rows, columns_};
    }

    /// Applies the stored step, then computes `out = relu(in * W + bias)`. The step stays stored.
    void forward(sluice::BasicStreamRef<B> stream, Layer<B>& layer, Matrix<const float, B> in,
                 Matrix<float, B> out);

    /// Stores a step: copies of the latest forward's input and of `factors`. The gradient is read when the step is
    /// applied.
    void defer(sluice::BasicStreamRef<B> stream, Matrix<const float, B> in,
               sluice::DeviceSpan<const float, B> factors);

    /// Drops the stored step. NaN × 0 is NaN, so all of its buffers are cleared.
    void discard(sluice::BasicStreamRef<B> stream);

    /// Applies the stored step, and drops it.
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
