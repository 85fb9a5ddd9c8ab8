/// \file
/// A step with a loop whose length the device decides: the control flow that graphs are said to lack.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <graph_replay/kernels.hpp>
#include <graph_replay/options.hpp>
#include <nn/core/device.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/random/philox.hpp>
#include <sluice/sluice.hpp>

namespace graph_replay {

/// Solves a small system of linear equations, iteration by iteration, until it is solved well enough.
template <sluice::Backend B>
class Solver {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    /// Looks at the condition after every `unroll` iterations.
    Solver(const Options& options, int unroll);

    std::string name() const { return "loop/unroll:" + std::to_string(unroll_); }
    void reset(StreamRef stream) { sluice::fill_bytes(stream, x_, 0); }
    void prepare(StreamRef, std::size_t) {}

    // The same lines in both cases. Launched one by one, the loop reads its condition back and waits for it, once a
    // look; in a graph it is one node, and the host knows nothing of it.
    void work(StreamRef stream) {
        begin_solving(stream, system_, unsolved_.setter(stream));
        while_nonzero(
            stream, unsolved_, [&](StreamRef body) { iterate(body, system_, unsolved_.setter(body)); },
            sluice::WhileOptions{.unroll = unroll_});
    }

    /// The solution, then the number of iterations.
    std::vector<float> results(StreamRef stream) {
        std::vector<float> results = nn::to_host(stream, x_);
        results.push_back(static_cast<float>(nn::to_host(stream, iterations_)[0]));
        return results;
    }

private:
    int unroll_;
    sluice::BasicCondition<B> unsolved_;
    sluice::DeviceBuffer<float, B> matrix_;
    sluice::DeviceBuffer<float, B> right_;
    sluice::DeviceBuffer<float, B> x_{System::rows};
    sluice::DeviceBuffer<unsigned, B> iterations_{1};
    System system_{};
};

// ---------------------------------------------------------------------------------------------------------------

template <sluice::Backend B>
Solver<B>::Solver(const Options& options, int unroll) : unroll_(unroll) {
    constexpr std::size_t rows = System::rows;
    // Positive, with a diagonal 1.05 times the rest of its row: an iteration leaves about 1 / 1.05 of the error.
    sluice::CountedRandom random({.seed = options.seed, .operation = 204});
    std::vector<float> transposed(rows * rows);
    std::vector<float> right(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        float rest = 0.0f;
        for (std::size_t column = 0; column < rows; ++column) {
            const float element = row == column ? 0.0f : random.uniform() / rows;
            transposed[column * rows + row] = element;
            rest += element;
        }
        transposed[row * rows + row] = 1.05f * rest;
        right[row] = random.uniform();
    }
    matrix_ = nn::to_device<B>(transposed);
    right_ = nn::to_device<B>(right);
    system_ = {.matrix = matrix_.data(),
               .right = right_.data(),
               .x = x_.data(),
               .iterations = iterations_.data(),
               .tolerance = 1e-4f,
               .most = 10'000};
}

} // namespace graph_replay
