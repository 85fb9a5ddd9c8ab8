/// \file
/// Bodies of batch_norm.hpp, the same for both backends, and their explicit instantiation.
#pragma once

#include <nn/elementwise/for_each.hpp>
#include <nn/norm/batch_norm.hpp>
#include <nn/norm/detail/batch_norm.hpp>
#include <nn/norm/detail/batch_norm_gradients.hpp>
#include <nn/norm/detail/column_pairs.hpp>

namespace nn {
namespace detail {

template <sluice::Backend B>
void require_channels(const BatchNorm<B>& norm, std::size_t channels) {
    for (const std::size_t size :
         {norm.weight.size(), norm.bias.size(), norm.running_mean.size(), norm.running_variance.size(),
          norm.mean.size(), norm.inverse_deviation.size(), norm.fused_scale.size(), norm.fused_bias.size()})
        require_size("batch norm: channels", size, channels);
}

template <class T, sluice::Backend B>
FinishStatistics<T> finish_statistics(const T* in, std::size_t rows, const BatchNorm<B>& norm,
                                      const BatchNormOptions& options) {
    if (rows < 2) [[unlikely]] {
        throw sluice::Error("batch norm: " + std::to_string(rows) +
                            " value for each channel; training expects at least 2");
    }
    return {in,
            norm.weight.data(),
            norm.bias.data(),
            norm.running_mean.data(),
            norm.running_variance.data(),
            norm.mean.data(),
            norm.inverse_deviation.data(),
            norm.fused_scale.data(),
            norm.fused_bias.data(),
            static_cast<double>(rows),
            options.epsilon,
            options.momentum};
}

inline void require_scratch(std::size_t size, std::size_t rows, std::size_t channels) {
    if (size < batch_norm_scratch(rows, channels)) [[unlikely]] {
        throw sluice::Error("batch norm: " + std::to_string(size) +
                            " elements of scratch; expected at least " +
                            std::to_string(batch_norm_scratch(rows, channels)));
    }
}

inline void require_optional(const char* what, std::size_t actual, std::size_t expected) {
    if (actual != 0)
        require_size(what, actual, expected);
}

} // namespace detail

template <class T, sluice::Backend B>
void batch_norm_statistics(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> in,
                           const BatchNorm<B>& norm, const BatchNormOptions& options,
                           SpanArgument<double, B> scratch) {
    detail::require_channels(norm, in.columns());
    detail::require_scratch(scratch.size(), in.rows(), in.columns());
    const auto finish = detail::finish_statistics(in.data(), in.rows(), norm, options);
    detail::with_vector_width<B, T>(in.columns(), [&](auto width) {
        detail::column_pair_sums<width()>(stream, in.rows(), in.columns(),
                                          detail::CentredMoments<T>{{in.data(), in.columns()}}, finish,
                                          scratch.data());
    });
}

template <sluice::Backend B>
void batch_norm_from_sums(sluice::BasicStreamRef<B> stream, SpanArgument<const float, B> sums,
                          std::size_t rows, const BatchNorm<B>& norm, const BatchNormOptions& options) {
    const std::size_t channels = norm.weight.size();
    detail::require_channels(norm, channels);
    require_size("batch norm: sums", sums.size(), 2 * channels);
    detail::for_each(stream, channels,
                     detail::StatisticsFromSums{
                         sums.data(), channels,
                         detail::finish_statistics(static_cast<const float*>(nullptr), rows, norm, options)});
}

template <sluice::Backend B>
void batch_norm_inference(sluice::BasicStreamRef<B> stream, const BatchNorm<B>& norm,
                          const BatchNormOptions& options) {
    detail::require_channels(norm, norm.weight.size());
    detail::for_each(stream, norm.weight.size(),
                     detail::InferenceScale{norm.weight.data(), norm.bias.data(), norm.running_mean.data(),
                                            norm.running_variance.data(), norm.fused_scale.data(),
                                            norm.fused_bias.data(), options.epsilon});
}

template <class T, sluice::Backend B>
void fold_weights(sluice::BasicStreamRef<B> stream, ConstMatrixArgument<B> weights,
                  SpanArgument<const float, B> scale, SpanArgument<T, B> folded) {
    require_size("fold_weights: elements of the folded weights", folded.size(), weights.size());
    detail::require_optional("fold_weights: elements of the scale", scale.size(), weights.rows());
    detail::for_each(stream, weights.rows(), weights.columns(),
                     detail::FoldWeights<T>{weights.data(), scale.data(), folded.data(), weights.columns()});
}

template <class T, class Out, sluice::Backend B>
void scale_bias_relu(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> in,
                     SpanArgument<const float, B> scale, SpanArgument<const float, B> bias,
                     const std::type_identity_t<Residual<T, B>>& residual, bool relu,
                     std::type_identity_t<Matrix<Out, B>> out) {
    const std::size_t columns = in.columns();
    require_size("scale_bias_relu: columns of the output", out.columns(), columns);
    require_size("scale_bias_relu: rows of the output", out.rows(), in.rows());
    detail::require_optional("scale_bias_relu: elements of the scale", scale.size(), columns);
    detail::require_optional("scale_bias_relu: elements of the bias", bias.size(), columns);
    detail::require_optional("scale_bias_relu: elements of the residual", residual.maps.size(), in.size());
    detail::require_optional("scale_bias_relu: the residual's scale", residual.scale.size(), columns);
    detail::require_optional("scale_bias_relu: the residual's bias", residual.bias.size(), columns);
    detail::with_vector_width<B, T>(columns, [&](auto width) {
        detail::for_each_row<width()>(
            stream, in.rows(), columns,
            detail::ScaleBiasRelu<T, Out>{in.data(), scale.data(), bias.data(), residual.maps.data(),
                                          residual.scale.data(), residual.bias.data(), out.data(), columns,
                                          relu});
    });
}

template <class T, sluice::Backend B>
void batch_norm_backward(sluice::BasicStreamRef<B> stream, const BatchNorm<B>& norm,
                         const BatchNormGradients<T, B>& gradients, SpanArgument<double, B> scratch) {
    const Matrix<const T, B>& in = gradients.in;
    const std::size_t columns = in.columns();
    detail::require_channels(norm, columns);
    detail::require_scratch(scratch.size(), in.rows(), columns);
    require_size("batch norm: elements of the gradient", gradients.gradient.size(), in.size());
    require_size("batch norm: elements of the input's gradient", gradients.in_gradient.size(), in.size());
    detail::require_optional("batch norm: elements of the ReLU's output", gradients.relu_output.size(),
                             in.size());
    detail::require_optional("batch norm: elements of the second gradient", gradients.other_gradient.size(),
                             in.size());
    require_size("batch norm: gradients of the weight", gradients.weight_gradient.size(), columns);
    require_size("batch norm: gradients of the bias", gradients.bias_gradient.size(), columns);
    if (gradients.relu && gradients.relu_output.size() + gradients.other_gradient.size() > 0) [[unlikely]]
        throw sluice::Error(
            "batch norm: `relu` beside a ReLU's output or a second gradient; expected `relu` alone");
    const detail::FinishGradients finish{gradients.weight_gradient.data(), gradients.bias_gradient.data()};
    const float* const scale = gradients.relu ? norm.fused_scale.data() : nullptr;
    const float* const bias = gradients.relu ? norm.fused_bias.data() : nullptr;
    detail::with_vector_width<B, T>(columns, [&](auto width) {
        const auto sum = [&](const auto& moments) {
            detail::column_pair_sums<width()>(stream, in.rows(), columns, moments, finish, scratch.data());
        };
        if (gradients.relu) {
            sum(detail::ReluGradientMoments<T>{{in.data(), gradients.gradient.data(), columns},
                                               norm.mean.data(),
                                               norm.inverse_deviation.data(),
                                               scale,
                                               bias});
        } else {
            sum(detail::GradientMoments<T>{in.data(), gradients.relu_output.data(),
                                           gradients.other_gradient.data(), gradients.gradient.data(),
                                           norm.mean.data(), norm.inverse_deviation.data(), columns});
        }
        detail::for_each_row<width()>(
            stream, in.rows(), columns,
            detail::InputGradient<T>{{in.data(), gradients.gradient.data(), columns},
                                     scale,
                                     bias,
                                     norm.weight.data(),
                                     norm.mean.data(),
                                     norm.inverse_deviation.data(),
                                     gradients.weight_gradient.data(),
                                     gradients.bias_gradient.data(),
                                     gradients.in_gradient.data(),
                                     static_cast<float>(1.0 / static_cast<double>(in.rows()))});
    });
}

template <class T, sluice::Backend B>
void bias_gradient(sluice::BasicStreamRef<B> stream, std::type_identity_t<Matrix<const T, B>> gradient,
                   SpanArgument<float, B> sums, SpanArgument<double, B> scratch) {
    require_size("bias_gradient: elements of the bias", sums.size(), gradient.columns());
    detail::require_scratch(scratch.size(), gradient.rows(), gradient.columns());
    detail::with_vector_width<B, T>(gradient.columns(), [&](auto width) {
        detail::column_pair_sums<width()>(stream, gradient.rows(), gradient.columns(),
                                          detail::ColumnSums<T>{{gradient.data(), gradient.columns()}},
                                          detail::KeepFirst{sums.data()}, scratch.data());
    });
}

} // namespace nn

/// Explicit instantiations, in namespace nn, once for each backend and type of the maps.
#define NN_INSTANTIATE_BATCH_NORM(Backend, T)                                                                \
    template void batch_norm_statistics<T>(                                                                  \
        sluice::BasicStreamRef<Backend>, std::type_identity_t<Matrix<const T, Backend>>,                     \
        const BatchNorm<Backend>&, const BatchNormOptions&, SpanArgument<double, Backend>);                  \
    template void scale_bias_relu<T, T>(                                                                     \
        sluice::BasicStreamRef<Backend>, std::type_identity_t<Matrix<const T, Backend>>,                     \
        SpanArgument<const float, Backend>, SpanArgument<const float, Backend>,                              \
        const std::type_identity_t<Residual<T, Backend>>&, bool, std::type_identity_t<Matrix<T, Backend>>);  \
    template void fold_weights<T>(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,             \
                                  SpanArgument<const float, Backend>, SpanArgument<T, Backend>);             \
    template void batch_norm_backward(sluice::BasicStreamRef<Backend>, const BatchNorm<Backend>&,            \
                                      const BatchNormGradients<T, Backend>&, SpanArgument<double, Backend>); \
    template void bias_gradient<T>(sluice::BasicStreamRef<Backend>,                                          \
                                   std::type_identity_t<Matrix<const T, Backend>>,                           \
                                   SpanArgument<float, Backend>, SpanArgument<double, Backend>);

/// Likewise, once for each backend.
#define NN_INSTANTIATE_BATCH_NORM_BACKEND(Backend)                                                           \
    NN_INSTANTIATE_BATCH_NORM(Backend, float)                                                                \
    NN_INSTANTIATE_BATCH_NORM(Backend, Half)                                                                 \
    template void batch_norm_from_sums(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>,  \
                                       std::size_t, const BatchNorm<Backend>&, const BatchNormOptions&);     \
    template void batch_norm_inference(sluice::BasicStreamRef<Backend>, const BatchNorm<Backend>&,           \
                                       const BatchNormOptions&);                                             \
    template void scale_bias_relu<Half, float>(                                                              \
        sluice::BasicStreamRef<Backend>, std::type_identity_t<Matrix<const Half, Backend>>,                  \
        SpanArgument<const float, Backend>, SpanArgument<const float, Backend>,                              \
        const std::type_identity_t<Residual<Half, Backend>>&, bool,                                          \
        std::type_identity_t<Matrix<float, Backend>>);
