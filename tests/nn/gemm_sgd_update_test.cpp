// A product that takes its weights' latest step on the way, against float64.
#include <algorithm>

#include <nn/gemm/gemm_sgd_update.hpp>

#include "nn/support.hpp"

namespace nn_gemm_sgd_update {

using namespace nn_test;

namespace {

/// Fresh data: a step of `step_rows` rows, and a product of `rows`.
struct Data {
    std::size_t inputs;
    std::size_t columns;
    std::size_t step_rows;
    std::size_t rows;
    std::vector<float> weights;
    std::vector<float> step_in;
    std::vector<float> gradient;
    std::vector<float> in;
    std::vector<float> bias;
    std::vector<float> factors{-0.25f, 1.0f};

    explicit Data(Random& random)
        : inputs(random.between(1, 700)), columns(4 * random.between(1, 600)), // of up to three blocks
          step_rows(random.between(1, 16)), rows(random.between(1, 16)),
          weights(random.numbers(inputs * columns)), step_in(random.numbers(step_rows * inputs)),
          gradient(random.numbers(step_rows * columns)), in(random.numbers(rows * inputs)),
          bias(random.numbers(columns)) {}
};

/// The same in device memory.
struct Run {
    Buffer<float> weights;
    Buffer<float> step_in;
    Buffer<float> gradient;
    Buffer<float> in;
    Buffer<float> bias;
    Buffer<float> factors;
    Buffer<float> out;
    Buffer<float> scratch;

    Run(const Stream& stream, const Data& data)
        : weights(device(data.weights)), step_in(device(data.step_in)), gradient(device(data.gradient)),
          in(device(data.in)), bias(device(data.bias)), factors(device(data.factors)),
          out(poisoned<float>(stream, data.rows * data.columns)),
          scratch(poisoned<float>(stream, nn::gemm_sgd_update_scratch(data.inputs, data.columns))) {}

    nn::PendingStep<B> step(const Data& data) {
        return {matrix(step_in, data.step_rows, data.inputs), matrix(gradient, data.step_rows, data.columns),
                factors};
    }
    void multiply(const Stream& stream, const Data& data) {
        nn::gemm_sgd_update(stream.ref(), step(data), matrix(weights, data.inputs, data.columns),
                            matrix(in, data.rows, data.inputs), bias, matrix(out, data.rows, data.columns),
                            scratch);
    }
};

} // namespace

TEST_CASE("gemm_sgd_update: step and product against float64, in any shape") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    for (int round = 0; round < 8; ++round) {
        const Data data(random);
        CAPTURE(data.inputs);
        CAPTURE(data.columns);
        CAPTURE(data.step_rows);
        CAPTURE(data.rows);
        std::vector<double> weights(data.weights.begin(), data.weights.end());
        for (std::size_t row = 0; row < data.step_rows; ++row)
            for (std::size_t i = 0; i < data.inputs; ++i)
                for (std::size_t j = 0; j < data.columns; ++j)
                    weights[i * data.columns + j] -=
                        0.25 * static_cast<double>(data.step_in[row * data.inputs + i]) *
                        static_cast<double>(data.gradient[row * data.columns + j]);
        std::vector<double> out(data.rows * data.columns);
        for (std::size_t row = 0; row < data.rows; ++row) {
            for (std::size_t j = 0; j < data.columns; ++j)
                out[row * data.columns + j] = static_cast<double>(data.bias[j]);
            for (std::size_t i = 0; i < data.inputs; ++i)
                for (std::size_t j = 0; j < data.columns; ++j)
                    out[row * data.columns + j] +=
                        static_cast<double>(data.in[row * data.inputs + i]) * weights[i * data.columns + j];
        }
        for (double& value : out)
            value = std::max(value, 0.0);
        Run run(stream, data);
        run.multiply(stream, data);
        CHECK(relative_error(host(stream, run.weights), weights) <= 1e-5);
        CHECK(relative_error(host(stream, run.out), out) <= 1e-5);
        Run again(stream, data);
        again.multiply(stream, data);
        CHECK(host(stream, again.weights) == host(stream, run.weights));
        CHECK(host(stream, again.out) == host(stream, run.out));
        Run stepped(stream, data);
        nn::sgd_update(stream.ref(), stepped.step(data), matrix(stepped.weights, data.inputs, data.columns));
        CHECK(host(stream, stepped.weights) == host(stream, run.weights));
    }
}

TEST_CASE("gemm_sgd_update: inputs of 0 make no step") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const Data data(random);
    Run run(stream, data);
    sluice::fill_bytes(stream, run.step_in, 0);
    run.multiply(stream, data);
    CHECK(host(stream, run.weights) == data.weights);
}

TEST_CASE("gemm_sgd_update: what does not fit is refused in one sentence") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    Buffer<float> weights(24);
    Buffer<float> in(17 * 4);
    Buffer<float> gradient(17 * 6);
    Buffer<float> factors(2);
    CHECK(
        error_of([&] {
            nn::sgd_update(stream.ref(), {matrix(in, 17, 4), matrix(gradient, 17, 6), factors},
                           matrix(weights, 4, 6));
        }) ==
        "sgd_update: 17 rows and weights of 4 rows and 6 columns; expected at most 16 rows, and sides up to "
        "2^22, the columns a multiple of 4");
    CHECK(
        error_of([&] {
            nn::sgd_update(stream.ref(),
                           {{in.span().subspan(0, 2), 1, 2}, {gradient.span().subspan(1, 8), 1, 8}, factors},
                           {weights.span().subspan(0, 16), 2, 8});
        }) == "sgd_update: the weights or the gradient begin at an address that is no multiple of 16 bytes");
}

} // namespace nn_gemm_sgd_update
