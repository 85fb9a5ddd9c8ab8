// Included by operators_host.cpp and operators_cuda.cu, after the bodies, for the backend `LossBackend`.

namespace nn::detail {

#define NN_LOSSES(Formula, P, U, G)                                                                          \
    template void run_rows<Formula>(sluice::BasicStreamRef<LossBackend>, const RowArguments<P, U, G>&);      \
    template void run_loop<Formula>(sluice::BasicStreamRef<LossBackend>, const RowArguments<P, U, G>&);      \
    template void run_values<Formula>(sluice::BasicStreamRef<LossBackend>, const ValueArguments<P, U, G>&);  \
    template void run_masked<Formula>(sluice::BasicStreamRef<LossBackend>, const MaskArguments<P, U, G>&,    \
                                      Invalid);                                                              \
    template void run_steps<Formula>(sluice::BasicStreamRef<LossBackend>, const MaskArguments<P, U, G>&,     \
                                     const StepArguments&);
#define NN_FORMULAS(P, U, G)                                                                                 \
    NN_LOSSES(ArticleGiou, P, U, G)                                                                          \
    NN_LOSSES(TorchvisionGiouLoss, P, U, G)
#define NN_PACKING(T, U)                                                                                     \
    template void run_gather(sluice::BasicStreamRef<LossBackend>, const Box<T>*, std::size_t,                \
                             sluice::RaggedView<const Box<U>>, Box<T>*);                                     \
    template void run_scatter(sluice::BasicStreamRef<LossBackend>, const Box<T>*,                            \
                              sluice::RaggedView<const Box<U>>, Box<T>*, std::size_t, std::size_t);
#define NN_TARGETS(P, G)                                                                                     \
    NN_FORMULAS(P, std::uint8_t, G)                                                                          \
    NN_FORMULAS(P, std::int32_t, G)                                                                          \
    NN_FORMULAS(P, float, G)
#define NN_PACKINGS(T)                                                                                       \
    NN_PACKING(T, std::uint8_t)                                                                              \
    NN_PACKING(T, std::int32_t)                                                                              \
    NN_PACKING(T, float)

NN_TARGETS(float, float)
NN_TARGETS(Half, Half)
NN_TARGETS(Half, float)
NN_TARGETS(Bfloat16, Bfloat16)
NN_TARGETS(Bfloat16, float)
NN_PACKINGS(float)
NN_PACKINGS(Half)
NN_PACKINGS(Bfloat16)

#undef NN_LOSSES
#undef NN_FORMULAS
#undef NN_PACKING
#undef NN_TARGETS
#undef NN_PACKINGS

} // namespace nn::detail
