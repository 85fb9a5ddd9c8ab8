/// \file
/// Explicit instantiations of what elementwise.hpp, sums.hpp, maps.hpp and pixels.hpp declare, for one backend.
#pragma once

#include <nn/elementwise/detail/elementwise.inl>
#include <nn/elementwise/detail/maps.inl>
#include <nn/elementwise/detail/pixels.inl>
#include <nn/elementwise/detail/sums.inl>

/// In namespace nn, once for each backend.
#define NN_INSTANTIATE_ELEMENTWISE(Backend)                                                                  \
    template void add_bias(sluice::BasicStreamRef<Backend>, MatrixArgument<Backend>,                         \
                           SpanArgument<const float, Backend>, bool);                                        \
    template void add_bias(sluice::BasicStreamRef<Backend>, std::type_identity_t<Matrix<Bfloat16, Backend>>, \
                           SpanArgument<const float, Backend>, bool);                                        \
    template void relu_gradient(sluice::BasicStreamRef<Backend>, SpanArgument<const Bfloat16, Backend>,      \
                                SpanArgument<Bfloat16, Backend>);                                            \
    template void relu_gradient(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>,         \
                                SpanArgument<float, Backend>);                                               \
    template void fill_uniform(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>, float,         \
                               const sluice::RandomKey&);                                                    \
    template void repeat(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>, std::size_t);        \
    template void descent_factors(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>,       \
                                  SpanArgument<float, Backend>);                                             \
    template void take_steps(sluice::BasicStreamRef<Backend>, SpanArgument<float, Backend>,                  \
                             SpanArgument<const StepPart, Backend>, SpanArgument<const float, Backend>);     \
    template void flip_weights(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,                \
                               MatrixArgument<Backend>);                                                     \
    template void rows_from_images(                                                                          \
        sluice::BasicStreamRef<Backend>, SpanArgument<const std::uint8_t, Backend>,                          \
        SpanArgument<const std::int32_t, Backend>, float, MatrixArgument<Backend>);                          \
    template void rows_from_images(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>,      \
                                   SpanArgument<const std::int32_t, Backend>, float,                         \
                                   MatrixArgument<Backend>);                                                 \
    template void gather_neighbours(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,           \
                                    SpanArgument<const std::int32_t, Backend>, MatrixArgument<Backend>);     \
    template void update_bias(sluice::BasicStreamRef<Backend>, ConstMatrixArgument<Backend>,                 \
                              SpanArgument<float, Backend>, SpanArgument<const float, Backend>,              \
                              SpanArgument<double, Backend>);                                                \
    template void update_bias(                                                                               \
        sluice::BasicStreamRef<Backend>, std::type_identity_t<Matrix<const Bfloat16, Backend>>,              \
        SpanArgument<float, Backend>, SpanArgument<const float, Backend>, SpanArgument<double, Backend>);    \
    template void mean(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>,                  \
                       SpanArgument<float, Backend>, SpanArgument<double, Backend>);

/// Likewise, once for each type of the maps.
#define NN_INSTANTIATE_MAPS(Backend, T)                                                                      \
    template void gather_patches<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,         \
                                    const MapShape&, std::type_identity_t<Matrix<T, Backend>>);              \
    template void gather_patches<T>(sluice::BasicStreamRef<Backend>,                                         \
                                    SpanArgument<const std::uint8_t, Backend>, const MapShape&, float,       \
                                    std::type_identity_t<Matrix<T, Backend>>);                               \
    template void sum_patches<T>(sluice::BasicStreamRef<Backend>,                                            \
                                 std::type_identity_t<Matrix<const T, Backend>>, const MapShape&,            \
                                 SpanArgument<T, Backend>);                                                  \
    template void pool_relu<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,              \
                               const MapShape&, SpanArgument<const float, Backend>,                          \
                               SpanArgument<T, Backend>);                                                    \
    template void unpool_gradient<T>(sluice::BasicStreamRef<Backend>, SpanArgument<const T, Backend>,        \
                                     const MapShape&, SpanArgument<T, Backend>);                             \
    template void scaled_copy<T, float>(sluice::BasicStreamRef<Backend>, SpanArgument<const float, Backend>, \
                                        float, SpanArgument<T, Backend>);

/// Likewise, once for each pair of types of images.
#define NN_INSTANTIATE_PAD_CHANNELS(Backend, To, From)                                                       \
    template void pad_channels<To, From>(sluice::BasicStreamRef<Backend>,                                    \
                                         std::type_identity_t<Matrix<const From, Backend>>,                  \
                                         std::type_identity_t<Matrix<To, Backend>>);
