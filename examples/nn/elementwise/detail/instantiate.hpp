// Included by operators_host.cpp and operators_cuda.cu, after the bodies, for the backend `OperatorBackend`.

namespace nn {

template void add_bias(sluice::BasicStreamRef<OperatorBackend>, MatrixArgument<OperatorBackend>,
                       SpanArgument<const float, OperatorBackend>, bool);
template void add_bias(sluice::BasicStreamRef<OperatorBackend>,
                       std::type_identity_t<Matrix<Bfloat16, OperatorBackend>>,
                       SpanArgument<const float, OperatorBackend>, bool);
template void relu_gradient(sluice::BasicStreamRef<OperatorBackend>,
                            SpanArgument<const Bfloat16, OperatorBackend>,
                            SpanArgument<Bfloat16, OperatorBackend>);
template void relu_gradient(sluice::BasicStreamRef<OperatorBackend>,
                            SpanArgument<const float, OperatorBackend>, SpanArgument<float, OperatorBackend>);
template void fill_uniform(sluice::BasicStreamRef<OperatorBackend>, SpanArgument<float, OperatorBackend>,
                           float, const sluice::RandomKey&);
template void repeat(sluice::BasicStreamRef<OperatorBackend>, SpanArgument<float, OperatorBackend>,
                     std::size_t);
template void descent_factors(sluice::BasicStreamRef<OperatorBackend>,
                              SpanArgument<const float, OperatorBackend>,
                              SpanArgument<float, OperatorBackend>);
template void flip_weights(sluice::BasicStreamRef<OperatorBackend>, ConstMatrixArgument<OperatorBackend>,
                           MatrixArgument<OperatorBackend>);

template void rows_from_images(sluice::BasicStreamRef<OperatorBackend>,
                               SpanArgument<const std::uint8_t, OperatorBackend>,
                               SpanArgument<const std::int32_t, OperatorBackend>, float,
                               MatrixArgument<OperatorBackend>);
template void rows_from_images(sluice::BasicStreamRef<OperatorBackend>,
                               SpanArgument<const float, OperatorBackend>,
                               SpanArgument<const std::int32_t, OperatorBackend>, float,
                               MatrixArgument<OperatorBackend>);
template void gather_neighbours(sluice::BasicStreamRef<OperatorBackend>, ConstMatrixArgument<OperatorBackend>,
                                SpanArgument<const std::int32_t, OperatorBackend>,
                                MatrixArgument<OperatorBackend>);

template void softmax_cross_entropy(sluice::BasicStreamRef<OperatorBackend>,
                                    ConstMatrixArgument<OperatorBackend>,
                                    SpanArgument<const std::uint8_t, OperatorBackend>,
                                    SpanArgument<const std::int32_t, OperatorBackend>,
                                    MatrixArgument<OperatorBackend>, SpanArgument<float, OperatorBackend>);
template void predict_classes(sluice::BasicStreamRef<OperatorBackend>, ConstMatrixArgument<OperatorBackend>,
                              SpanArgument<const std::int32_t, OperatorBackend>,
                              SpanArgument<std::uint8_t, OperatorBackend>);

template void update_bias(sluice::BasicStreamRef<OperatorBackend>, ConstMatrixArgument<OperatorBackend>,
                          SpanArgument<float, OperatorBackend>, SpanArgument<const float, OperatorBackend>,
                          SpanArgument<double, OperatorBackend>);
template void update_bias(sluice::BasicStreamRef<OperatorBackend>,
                          std::type_identity_t<Matrix<const Bfloat16, OperatorBackend>>,
                          SpanArgument<float, OperatorBackend>, SpanArgument<const float, OperatorBackend>,
                          SpanArgument<double, OperatorBackend>);
template void mean(sluice::BasicStreamRef<OperatorBackend>, SpanArgument<const float, OperatorBackend>,
                   SpanArgument<float, OperatorBackend>, SpanArgument<double, OperatorBackend>);

} // namespace nn
