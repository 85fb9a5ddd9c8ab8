/// \file
/// The small kernels of the experiment, one definition for both backends.
#pragma once

#include <cstddef>

#include <nn/gemm/matrix.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/control_flow.hpp>

namespace graph_replay {

/// A kernel that does next to nothing: `values[i] = 0.75 * values[i] + by`. A chain of these comes out differently if
/// one is left out or comes out of turn.
template <sluice::Backend B>
void nudge(sluice::BasicStreamRef<B> stream, nn::SpanArgument<float, B> values, float by);

/// The gradient of half the squared error: `gradient = factor * (output - target)`.
template <sluice::Backend B>
void error_gradient(sluice::BasicStreamRef<B> stream, nn::SpanArgument<const float, B> output,
                    nn::SpanArgument<const float, B> target, nn::SpanArgument<float, B> gradient,
                    float factor);

/// A step of gradient descent: `weights -= rate[0] * gradient`. The rate is read on the device, when the kernel runs.
template <sluice::Backend B>
void descend(sluice::BasicStreamRef<B> stream, nn::SpanArgument<float, B> weights,
             nn::SpanArgument<const float, B> gradient, nn::SpanArgument<const float, B> rate);

/// A system of linear equations, and how far it is solved. Device addresses; small enough for a kernel's argument.
struct System {
    /// As many equations as there are threads in a block.
    static constexpr std::size_t rows = 64;

    const float*
        matrix; ///< [rows, rows], transposed, so that neighbouring threads read neighbouring elements
    const float* right;
    float* x;
    unsigned* iterations; ///< made so far
    float tolerance;      ///< solved once no equation is off by more than this
    unsigned most;        ///< iterations after which it is given up
};

/// Begins at x = 0, and says that there is something to do.
template <sluice::Backend B>
void begin_solving(sluice::BasicStreamRef<B> stream, const System& system, sluice::ConditionSetter unsolved);

/// One iteration of Jacobi's method, in one kernel: finds by how much each equation is off, and either moves `x`, or,
/// when no equation is off by more than the tolerance, sets the condition to 0. Does nothing where the condition is 0
/// already, so that any number of further iterations leaves the same bits.
template <sluice::Backend B>
void iterate(sluice::BasicStreamRef<B> stream, const System& system, sluice::ConditionSetter unsolved);

} // namespace graph_replay
