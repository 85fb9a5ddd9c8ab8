/// \file
/// Gradient descent with momentum, for all weights of a network in one launch.
#pragma once

#include <cstddef>

#include <nn/core/float16.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>

namespace nn {

/// PyTorch's `SGD(momentum=…)`, without dampening, weight decay or Nesterov.
struct SgdOptions {
    float momentum = 0.9f;
    /// The gradients are this many times too large: the factor that kept them within float16.
    float loss_scale = 1.0f;
};

/// `velocities = momentum * velocities + gradients / loss_scale`, then `weights -= rate * velocities`. The velocities of
/// the first step are 0. The rate, one element, is read when the work runs. Weights and velocities are float32; gradients
/// are float or Half (`G`). Throws `sluice::Error` when a size does not fit.
template <class G, sluice::Backend B>
void sgd_momentum(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> weights,
                  SpanArgument<float, B> velocities, SpanArgument<const G, B> gradients,
                  SpanArgument<const float, B> rate, const SgdOptions& options);

/// The same, of gradients of Half, with a copy of the weights rounded to it for the next step.
template <sluice::Backend B>
void sgd_momentum(sluice::BasicStreamRef<B> stream, SpanArgument<float, B> weights,
                  SpanArgument<float, B> velocities, SpanArgument<const Half, B> gradients,
                  SpanArgument<const float, B> rate, const SgdOptions& options,
                  SpanArgument<Half, B> rounded_weights);

} // namespace nn
