/// \file
/// Bodies of cross_entropy_wide.hpp. The launch is a backend's own: `launch_wide_rows`, declared before this file's bodies
/// are instantiated.
#pragma once

#include <cmath>

#include <nn/elementwise/for_each.hpp>
#include <nn/losses/cross_entropy_wide.hpp>

namespace nn {
namespace detail {

/// A task for one row, by one thread on the CPU or a block on a device.
template <class G, class Label>
struct WideRow {
    const float* logits;
    const Label* labels;
    G* gradient; ///< or null
    float* losses;
    std::size_t classes;
    float gradient_scale;
    const float* factor; ///< of the gradient, or null

    SLUICE_HOST_DEVICE bool is_class(std::size_t row) const {
        // A negative label becomes a large number.
        return static_cast<std::size_t>(labels[row]) < classes;
    }
    SLUICE_HOST_DEVICE float loss(std::size_t row, float greatest, float sum) const {
        if (!is_class(row))
            return NAN;
        const float own = logits[row * classes + static_cast<std::size_t>(labels[row])];
        return std::log(sum) - (own - greatest);
    }
    SLUICE_HOST_DEVICE float scale() const {
        return factor != nullptr ? gradient_scale * *factor : gradient_scale;
    }
    SLUICE_HOST_DEVICE void write_gradient(std::size_t row, std::size_t j, float greatest, float sum) const {
        const float share = std::exp(logits[row * classes + j] - greatest) / sum;
        const float target = j == static_cast<std::size_t>(labels[row]) ? 1.0f : 0.0f;
        gradient[row * classes + j] = static_cast<G>(is_class(row) ? scale() * (share - target) : 0.0f);
    }
};

template <class G, class Label>
void launch_wide_rows(sluice::HostStreamRef stream, std::size_t rows, const WideRow<G, Label>& each) {
    for_each(stream, rows, [each](std::size_t row) {
        const float* const mine = each.logits + row * each.classes;
        float greatest = mine[0];
        for (std::size_t j = 1; j < each.classes; ++j)
            greatest = mine[j] > greatest ? mine[j] : greatest;
        double sum = 0.0;
        for (std::size_t j = 0; j < each.classes; ++j)
            sum += static_cast<double>(std::exp(mine[j] - greatest));
        each.losses[row] = each.loss(row, greatest, static_cast<float>(sum));
        if (each.gradient == nullptr)
            return;
        for (std::size_t j = 0; j < each.classes; ++j)
            each.write_gradient(row, j, greatest, static_cast<float>(sum));
    });
}

#if defined(__CUDACC__)
inline constexpr unsigned wide_threads = 256;

/// The same for all threads: `fold` of the values of a block, warp by warp, in a fixed order.
template <class Fold>
__device__ float fold_block(float value, float (&shared)[wide_threads / 32], const Fold& fold) {
    for (unsigned offset = 16; offset > 0; offset /= 2)
        value = fold(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    __syncthreads(); // the former fold's values have been read
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (unsigned i = 1; i < wide_threads / 32; ++i)
        value = fold(value, shared[i]);
    return value;
}

template <class G, class Label>
__global__ void __launch_bounds__(wide_threads) wide_rows_kernel(WideRow<G, Label> each) {
    __shared__ float shared[wide_threads / 32];
    const std::size_t row = blockIdx.x;
    const float* const mine = each.logits + row * each.classes;
    float greatest = -INFINITY;
    for (std::size_t j = threadIdx.x; j < each.classes; j += wide_threads)
        greatest = fmaxf(greatest, mine[j]);
    greatest = fold_block(greatest, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (std::size_t j = threadIdx.x; j < each.classes; j += wide_threads)
        sum += std::exp(mine[j] - greatest);
    sum = fold_block(sum, shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0)
        each.losses[row] = each.loss(row, greatest, sum);
    if (each.gradient == nullptr)
        return;
    for (std::size_t j = threadIdx.x; j < each.classes; j += wide_threads)
        each.write_gradient(row, j, greatest, sum);
}

template <class G, class Label>
void launch_wide_rows(sluice::CudaStreamRef stream, std::size_t rows, const WideRow<G, Label>& each) {
    wide_rows_kernel<<<static_cast<unsigned>(rows), wide_threads, 0, stream.get()>>>(each);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}
#endif

struct PredictWide {
    const float* logits;
    std::int32_t* predictions;
    std::size_t classes;

    SLUICE_HOST_DEVICE void operator()(std::size_t row) const {
        const float* const mine = logits + row * classes;
        std::size_t best = 0;
        for (std::size_t j = 1; j < classes; ++j)
            best = mine[j] > mine[best] ? j : best;
        predictions[row] = static_cast<std::int32_t>(best);
    }
};

} // namespace detail

template <class G, class Label, sluice::Backend B>
void softmax_cross_entropy_wide(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                                SpanArgument<const Label, B> labels, float loss_scale,
                                SpanArgument<G, B> gradient, SpanArgument<float, B> losses,
                                const float* factor) {
    require_size("softmax_cross_entropy_wide: labels", labels.size(), logits.rows());
    require_size("softmax_cross_entropy_wide: elements of the losses", losses.size(), logits.rows());
    if (!gradient.empty())
        require_size("softmax_cross_entropy_wide: elements of the gradient", gradient.size(), logits.size());
    if (logits.size() == 0)
        return;
    detail::launch_wide_rows(
        stream, logits.rows(),
        detail::WideRow<G, Label>{logits.data(), labels.data(), gradient.data(), losses.data(),
                                  logits.columns(), loss_scale / static_cast<float>(logits.rows()), factor});
}

template <sluice::Backend B>
void predict_classes_wide(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> logits,
                          SpanArgument<std::int32_t, B> predictions) {
    require_size("predict_classes_wide: predictions", predictions.size(), logits.rows());
    detail::for_each(stream, logits.rows(),
                     detail::PredictWide{logits.data(), predictions.data(), logits.columns()});
}

} // namespace nn

#define NN_INSTANTIATE_WIDE(Backend, G, Label)                                                               \
    template void softmax_cross_entropy_wide<G, Label>(                                                      \
        sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>, SpanArgument<const Label, Backend>,   \
        float, SpanArgument<G, Backend>, SpanArgument<float, Backend>, const float*);

/// Explicit instantiations, in namespace nn, once for each backend.
#define NN_INSTANTIATE_CROSS_ENTROPY_WIDE(Backend)                                                           \
    NN_INSTANTIATE_WIDE(Backend, float, std::uint8_t)                                                        \
    NN_INSTANTIATE_WIDE(Backend, float, std::int32_t)                                                        \
    NN_INSTANTIATE_WIDE(Backend, Half, std::uint8_t)                                                         \
    NN_INSTANTIATE_WIDE(Backend, Half, std::int32_t)                                                         \
    template void predict_classes_wide(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,        \
                                       SpanArgument<std::int32_t, Backend>);
