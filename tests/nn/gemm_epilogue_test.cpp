// The three products that a layer takes part in, with all that goes with them, of lengths for which a device has a
// kernel of its own.
#include <sluice/graph/capture.hpp>
#include <sluice/graph/graph.hpp>

#include "nn/gemm_case.hpp"
#include "nn/steady.hpp"

namespace nn_gemm_epilogue {

using namespace nn_test;

namespace {

// The Host backend has one algorithm.
#if SLUICE_TEST_CUDA
constexpr nn::Algorithms both_algorithms[] = {nn::Algorithms::heuristic, nn::Algorithms::autotune};
#else
constexpr nn::Algorithms both_algorithms[] = {nn::Algorithms::autotune};
#endif

} // namespace

TEST_CASE(
    "gemm epilogue: forward, back through a ReLU, and a step with the bias, over outputs that held NaN") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        for (const nn::Precision precision : precisions) {
            nn::Gemm<B> gemm(precision, algorithms);
            const Stream stream;
            for (const LayerCase& c : draw_cases(random)) {
                CAPTURE(c.rows);
                CAPTURE(c.inputs);
                CAPTURE(c.columns);
                CAPTURE(c.copies);
                const bool relu = random.between(0, 1) == 1;
                const bool masked = random.between(0, 3) > 0;
                const bool settled = random.between(0, 1) == 1;
                LayerOnDevice device(stream, c);
                device.forward(stream, gemm, relu, settled);
                device.input_gradient(stream, gemm, masked, settled);
                device.update(stream, gemm);
                const std::vector<std::vector<float>> results = device.results(stream);
                CHECK(relative_error(results[0], expected_forward(c, relu)) <= tolerance(precision));
                CHECK(relative_error(results[1], expected_input_gradient(c, masked)) <= tolerance(precision));
                const Moved moved = expected_moves(c);
                CHECK(relative_error(difference(results[2], c.weights), moved.weights) <=
                      tolerance(precision));
                CHECK(relative_error(difference(results[3], c.bias), moved.bias) <= 1e-4);
            }
        }
    }
}

TEST_CASE("gemm epilogue: the same bits again, from another object, and replayed from a graph") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        for (const LayerCase& c : draw_cases(random)) {
            std::vector<std::vector<float>> first;
            for (int run = 0; run < 3; ++run) {
                nn::Gemm<B> gemm(nn::Precision::tf32, algorithms);
                const Stream stream;
                LayerOnDevice device(stream, c);
                if (run < 2) {
                    device.all(stream, gemm);
                } else {
                    // Its first look at these lengths is inside the capture.
                    const sluice::BasicGraphExec<B> executable(
                        sluice::capture(stream, [&](StreamRef on) { device.all(on, gemm); }));
                    executable.launch(stream);
                    stream.sync();
                }
                const std::vector<std::vector<float>> results = device.results(stream);
                if (run == 0)
                    first = results;
                CHECK(results == first);
            }
        }
    }
}

TEST_CASE("gemm epilogue: lengths that are first seen in a capture of autotuned algorithms") {
    NN_TEST_RANDOM(random);
    // Lengths that no other test has.
    const LayerCase c = make_case(random, 36, 1004, 68);
    nn::Gemm<B> gemm(nn::Precision::tf32, nn::Algorithms::autotune);
    const Stream stream;
    LayerOnDevice captured(stream, c);
    const sluice::BasicGraphExec<B> executable(
        sluice::capture(stream, [&](StreamRef on) { captured.all(on, gemm); }));
    executable.launch(stream);
    nn::Gemm<B> others(nn::Precision::tf32, nn::Algorithms::autotune);
    LayerOnDevice eager(stream, c);
    eager.all(stream, others);
    CHECK(captured.results(stream) == eager.results(stream));
}

TEST_CASE("gemm epilogue: nothing is made after the first time") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        const std::vector<LayerCase> cases = draw_cases(random);
        nn::Gemm<B> gemm(nn::Precision::tf32, algorithms);
        const Stream stream;
        for (const LayerCase& c : cases) {
            LayerOnDevice device(stream, c);
            check_steady(stream, [&] { device.all(stream, gemm); });
            const nn::WeightUpdate<B> step = device.step();
            check_steady(stream, [&] { gemm.update(stream, {&step, 1}, device.factors()); });
        }
    }
}

TEST_CASE("gemm epilogue: NaN in a factor is NaN in what it is multiplied into") {
    NN_TEST_RANDOM(random);
    LayerCase c = make_case(random, 8, 64, 128);
    c.in[3 * c.inputs + 5] = NAN;
    nn::Gemm<B> gemm(nn::Precision::tf32);
    const Stream stream;
    LayerOnDevice device(stream, c);
    device.forward(stream, gemm, false, false);
    const std::vector<float> out = device.results(stream)[0];
    for (std::size_t i = 0; i < out.size(); ++i)
        CHECK(std::isnan(out[i]) == (i / c.columns == 3));
}

TEST_CASE("gemm epilogue: what goes with a product and does not fit is refused in one sentence") {
    nn::Gemm<B> gemm;
    const Stream stream;
    Buffer<float> a(6);
    Buffer<float> b(8);
    Buffer<float> out(12);
    Buffer<float> factors(2);
    CHECK(
        error_of([&] {
            gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 3, 4), {.relu_output = a});
        }) ==
        "matrix product: the gradient of a ReLU of 6 elements, in 1 parts and with beta = 0.000000; expected "
        "12 elements of float32, one part, beta = 0 known beforehand and no bias");
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 2, 3), matrix(b, 2, 4), matrix(out, 3, 4),
                            {.transpose_a = true,
                             .device_factors = factors,
                             .bias_step = {.bias = b, .outputs = 3, .scratch = {}}});
          }).find("matrix product: a step for a bias of 8 elements, 3 of them different, beside 4 columns") ==
          0);
    const nn::WeightUpdate<B> update{matrix(a, 2, 3), matrix(b, 2, 4), matrix(out, 3, 4)};
    CHECK(error_of([&] {
              gemm.update(stream, {&update, 1}, {});
          }) == "weight update: factors: 0 were given, expected 2");
}

} // namespace nn_gemm_epilogue
