/// \file
/// Explicit instantiations of the box losses for one backend: every formula, and every type of predictions, targets and
/// gradients.
#pragma once

#include <nn/losses/boxes/detail/fused.inl>
#include <nn/losses/boxes/detail/packing.inl>
#include <nn/losses/boxes/detail/steps.inl>
#include <nn/losses/boxes/giou_loss.hpp>

#define NN_GIOU_LOSSES(Backend, Formula, P, U, G)                                                            \
    template void run_rows<Formula>(sluice::BasicStreamRef<Backend>, const RowArguments<P, U, G>&);          \
    template void run_loop<Formula>(sluice::BasicStreamRef<Backend>, const RowArguments<P, U, G>&);          \
    template void run_values<Formula>(sluice::BasicStreamRef<Backend>, const ValueArguments<P, U, G>&);      \
    template void run_masked<Formula>(sluice::BasicStreamRef<Backend>, const MaskArguments<P, U, G>&,        \
                                      Invalid);                                                              \
    template void run_steps<Formula>(sluice::BasicStreamRef<Backend>, const MaskArguments<P, U, G>&,         \
                                     const StepArguments&);
#define NN_GIOU_FORMULAS(Backend, P, U, G)                                                                   \
    NN_GIOU_LOSSES(Backend, ArticleGiou, P, U, G)                                                            \
    NN_GIOU_LOSSES(Backend, TorchvisionGiouLoss, P, U, G)
#define NN_GIOU_PACKING(Backend, T, U)                                                                       \
    template void run_gather(sluice::BasicStreamRef<Backend>, const Box<T>*, std::size_t,                    \
                             sluice::RaggedView<const Box<U>>, Box<T>*);                                     \
    template void run_scatter(sluice::BasicStreamRef<Backend>, const Box<T>*,                                \
                              sluice::RaggedView<const Box<U>>, Box<T>*, std::size_t, std::size_t);
#define NN_GIOU_TARGETS(Backend, P, G)                                                                       \
    NN_GIOU_FORMULAS(Backend, P, std::uint8_t, G)                                                            \
    NN_GIOU_FORMULAS(Backend, P, std::int32_t, G)                                                            \
    NN_GIOU_FORMULAS(Backend, P, float, G)
#define NN_GIOU_PACKINGS(Backend, T)                                                                         \
    NN_GIOU_PACKING(Backend, T, std::uint8_t)                                                                \
    NN_GIOU_PACKING(Backend, T, std::int32_t)                                                                \
    NN_GIOU_PACKING(Backend, T, float)

/// In namespace nn::detail, once for each backend, after the definitions of `run_rows`, `run_loop` and `run_values`.
#define NN_INSTANTIATE_GIOU_LOSS(Backend)                                                                    \
    NN_GIOU_TARGETS(Backend, float, float)                                                                   \
    NN_GIOU_TARGETS(Backend, Half, Half)                                                                     \
    NN_GIOU_TARGETS(Backend, Half, float)                                                                    \
    NN_GIOU_TARGETS(Backend, Bfloat16, Bfloat16)                                                             \
    NN_GIOU_TARGETS(Backend, Bfloat16, float)                                                                \
    NN_GIOU_PACKINGS(Backend, float)                                                                         \
    NN_GIOU_PACKINGS(Backend, Half)                                                                          \
    NN_GIOU_PACKINGS(Backend, Bfloat16)
