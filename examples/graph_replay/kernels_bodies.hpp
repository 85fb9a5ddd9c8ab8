// Included by kernels_host.cpp and kernels_cuda.cu, after the backend's for_each.
#pragma once

#include <graph_replay/kernels.hpp>

namespace graph_replay {
namespace detail {

struct Nudge {
    float* values;
    float by;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { values[i] = 0.75f * values[i] + by; }
};

struct ErrorGradient {
    const float* output;
    const float* target;
    float* gradient;
    float factor;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const {
        gradient[i] = factor * (output[i] - target[i]);
    }
};

struct Descend {
    float* weights;
    const float* gradient;
    const float* rate;

    SLUICE_HOST_DEVICE void operator()(std::size_t i) const { weights[i] -= *rate * gradient[i]; }
};

struct BeginSolving {
    System system;
    sluice::ConditionSetter unsolved;

    SLUICE_HOST_DEVICE void operator()(std::size_t row) const {
        system.x[row] = 0.0f;
        if (row == 0) {
            *system.iterations = 0;
            unsolved.set(1);
        }
    }
};

/// By how much one equation is off.
SLUICE_HOST_DEVICE inline float residual(const System& system, std::size_t row) {
    float sum = system.right[row];
    for (std::size_t column = 0; column < System::rows; ++column)
        sum -= system.matrix[column * System::rows + row] * system.x[column];
    return sum;
}

SLUICE_HOST_DEVICE inline bool is_off(const System& system, float residual) {
    return residual > system.tolerance || residual < -system.tolerance;
}

/// Moves one unknown so that its own equation would hold.
SLUICE_HOST_DEVICE inline void move(const System& system, std::size_t row, float residual) {
    system.x[row] += residual / system.matrix[row * System::rows + row];
}

} // namespace detail

template <sluice::Backend B>
void nudge(sluice::BasicStreamRef<B> stream, nn::SpanArgument<float, B> values, float by) {
    nn::detail::for_each(stream, values.size(), detail::Nudge{values.data(), by});
}

template <sluice::Backend B>
void error_gradient(sluice::BasicStreamRef<B> stream, nn::SpanArgument<const float, B> output,
                    nn::SpanArgument<const float, B> target, nn::SpanArgument<float, B> gradient,
                    float factor) {
    nn::require_size("error_gradient: elements of the target", target.size(), output.size());
    nn::require_size("error_gradient: elements of the gradient", gradient.size(), output.size());
    nn::detail::for_each(stream, output.size(),
                         detail::ErrorGradient{output.data(), target.data(), gradient.data(), factor});
}

template <sluice::Backend B>
void descend(sluice::BasicStreamRef<B> stream, nn::SpanArgument<float, B> weights,
             nn::SpanArgument<const float, B> gradient, nn::SpanArgument<const float, B> rate) {
    nn::require_size("descend: elements of the gradient", gradient.size(), weights.size());
    nn::require_size("descend: rates", rate.size(), 1);
    nn::detail::for_each(stream, weights.size(),
                         detail::Descend{weights.data(), gradient.data(), rate.data()});
}

template <sluice::Backend B>
void begin_solving(sluice::BasicStreamRef<B> stream, const System& system, sluice::ConditionSetter unsolved) {
    nn::detail::for_each(stream, System::rows, detail::BeginSolving{system, unsolved});
}

} // namespace graph_replay
