// Included by operators_host.cpp and operators_cuda.cu, after the bodies, for the backend `OperatorBackend`.
#define NN_INSTANTIATE_MAPS(T)                                                                               \
    template void gather_patches<T>(sluice::BasicStreamRef<OperatorBackend>,                                 \
                                    SpanArgument<const T, OperatorBackend>, const MapShape&,                 \
                                    std::type_identity_t<Matrix<T, OperatorBackend>>);                       \
    template void gather_patches<T>(sluice::BasicStreamRef<OperatorBackend>,                                 \
                                    SpanArgument<const std::uint8_t, OperatorBackend>, const MapShape&,      \
                                    float, std::type_identity_t<Matrix<T, OperatorBackend>>);                \
    template void sum_patches<T>(sluice::BasicStreamRef<OperatorBackend>,                                    \
                                 std::type_identity_t<Matrix<const T, OperatorBackend>>, const MapShape&,    \
                                 SpanArgument<T, OperatorBackend>);                                          \
    template void pool_relu<T>(                                                                              \
        sluice::BasicStreamRef<OperatorBackend>, SpanArgument<const T, OperatorBackend>, const MapShape&,    \
        SpanArgument<const float, OperatorBackend>, SpanArgument<T, OperatorBackend>);                       \
    template void unpool_gradient<T>(sluice::BasicStreamRef<OperatorBackend>,                                \
                                     SpanArgument<const T, OperatorBackend>, const MapShape&,                \
                                     SpanArgument<T, OperatorBackend>);                                      \
    template void scaled_copy<T, float>(sluice::BasicStreamRef<OperatorBackend>,                             \
                                        SpanArgument<const float, OperatorBackend>, float,                   \
                                        SpanArgument<T, OperatorBackend>);

namespace nn {

NN_INSTANTIATE_MAPS(float)
NN_INSTANTIATE_MAPS(Bfloat16)

} // namespace nn

#undef NN_INSTANTIATE_MAPS
