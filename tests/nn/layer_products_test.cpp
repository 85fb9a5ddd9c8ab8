// The three products that a layer takes part in, with all that goes with them, of lengths for which a device has a
// kernel of its own.
#include <nn/operators/sums.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/graph.hpp>

#include "nn/steady.hpp"

namespace nn_layer_products {

using namespace nn_test;

namespace {

using StreamRef = sluice::BasicStreamRef<B>;

constexpr nn::Algorithms both_algorithms[] = {nn::Algorithms::heuristic, nn::Algorithms::measured};

/// A layer's weights [inputs, columns], whose columns are `copies` times as many outputs, and maps of `rows` rows.
struct LayerCase {
    std::size_t rows, inputs, columns, copies;
    std::vector<float> in, weights, bias, gradient;

    std::size_t outputs() const { return columns / copies; }
};

LayerCase make_case(Random& random, std::size_t rows, std::size_t inputs, std::size_t columns) {
    LayerCase c{rows, inputs, columns, columns % 4 == 0 && random.between(0, 1) == 1 ? std::size_t{4} : 1,
                {},   {},     {},      {}};
    c.in = random.numbers(rows * inputs);
    c.weights = random.numbers(inputs * columns);
    c.gradient = random.numbers(rows * columns);
    c.bias = random.numbers(c.outputs());
    c.bias.resize(columns);
    for (std::size_t i = c.outputs(); i < columns; ++i)
        c.bias[i] = c.bias[i - c.outputs()];
    return c;
}

/// Lengths below, at and above what a block takes; a long sum over few elements; a few rows of many.
std::vector<LayerCase> draw_cases(Random& random) {
    const auto four = [&](std::size_t most) { return 4 * random.between(1, most / 4); };
    std::vector<LayerCase> cases;
    cases.push_back(make_case(random, random.between(1, 8), four(400), four(300)));
    cases.push_back(make_case(random, random.between(9, 32), four(400), four(300)));
    cases.push_back(make_case(random, four(200), four(200), four(200)));
    cases.push_back(make_case(random, 64, 128, 192));
    cases.push_back(make_case(random, four(5000), four(64), four(64)));
    cases.push_back(make_case(random, four(32), four(3000), four(64)));
    cases.push_back(make_case(random, four(32), four(64), four(3000)));
    cases.push_back(
        make_case(random, random.between(1, 100), random.between(1, 100), random.between(1, 100)));
    return cases;
}

/// What a layer does with one batch, in device memory.
class LayerOnDevice {
public:
    LayerOnDevice(const Stream& stream, const LayerCase& c)
        : case_(c), in_(device(c.in)), weights_(device(c.weights)), bias_(device(c.bias)),
          gradient_(device(c.gradient)), factors_(device(std::vector<float>{-0.125f, 1.0f})),
          out_(poisoned<float>(stream, c.rows * c.columns)),
          in_gradient_(poisoned<float>(stream, c.rows * c.inputs)),
          scratch_(poisoned<double>(stream, nn::sum_scratch(c.rows * c.copies, c.outputs()))) {}

    void forward(StreamRef stream, nn::MatrixProducts<B>& products, bool relu, bool settled) {
        products.multiply(stream, in(), weights(), {out_, case_.rows, case_.columns},
                          {.bias = bias_, .relu = relu, .b_settled = settled});
    }
    void input_gradient(StreamRef stream, nn::MatrixProducts<B>& products, bool masked, bool settled) {
        nn::ProductOptions<B> options{.transpose_b = true, .b_settled = settled};
        if (masked)
            options.relu_output = in_;
        products.multiply(stream, gradient(), weights(), {in_gradient_, case_.rows, case_.inputs}, options);
    }
    void update(StreamRef stream, nn::MatrixProducts<B>& products) {
        products.multiply(
            stream, in(), gradient(), {weights_, case_.inputs, case_.columns},
            {.transpose_a = true,
             .device_factors = factors_,
             .bias_step = {.bias = bias_, .outputs = case_.outputs(), .scratch = scratch_.span()}});
    }
    void all(StreamRef stream, nn::MatrixProducts<B>& products) {
        forward(stream, products, true, false);
        input_gradient(stream, products, true, true);
        update(stream, products);
    }

    /// Everything that `all` writes.
    std::vector<std::vector<float>> results(const Stream& stream) const {
        return {host(stream, out_), host(stream, in_gradient_), host(stream, weights_), host(stream, bias_)};
    }

private:
    nn::Matrix<const float, B> in() const { return {in_, case_.rows, case_.inputs}; }
    nn::Matrix<const float, B> weights() const { return {weights_, case_.inputs, case_.columns}; }
    nn::Matrix<const float, B> gradient() const { return {gradient_, case_.rows, case_.columns}; }

    const LayerCase& case_;
    Buffer<float> in_, weights_, bias_, gradient_, factors_, out_, in_gradient_;
    Buffer<double> scratch_;
};

std::vector<double> expected_forward(const LayerCase& c, bool relu) {
    std::vector<double> out(c.rows * c.columns);
    for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t i = 0; i < c.inputs; ++i)
            for (std::size_t o = 0; o < c.columns; ++o)
                out[r * c.columns + o] += static_cast<double>(c.in[r * c.inputs + i]) *
                                          static_cast<double>(c.weights[i * c.columns + o]);
        for (std::size_t o = 0; o < c.columns; ++o) {
            double& value = out[r * c.columns + o];
            value += static_cast<double>(c.bias[o]);
            if (relu && value < 0.0)
                value = 0.0;
        }
    }
    return out;
}

std::vector<double> expected_input_gradient(const LayerCase& c, bool masked) {
    std::vector<double> out(c.rows * c.inputs);
    for (std::size_t r = 0; r < c.rows; ++r)
        for (std::size_t i = 0; i < c.inputs; ++i)
            for (std::size_t o = 0; o < c.columns && !(masked && c.in[r * c.inputs + i] <= 0.0f); ++o)
                out[r * c.inputs + i] += static_cast<double>(c.gradient[r * c.columns + o]) *
                                         static_cast<double>(c.weights[i * c.columns + o]);
    return out;
}

/// How far the weights and the bias move.
struct Moved {
    std::vector<double> weights, bias;
};

Moved expected_moves(const LayerCase& c) {
    Moved moved{std::vector<double>(c.inputs * c.columns), std::vector<double>(c.columns)};
    for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t o = 0; o < c.columns; ++o) {
            const double gradient = -0.125 * static_cast<double>(c.gradient[r * c.columns + o]);
            for (std::size_t i = 0; i < c.inputs; ++i)
                moved.weights[i * c.columns + o] += gradient * static_cast<double>(c.in[r * c.inputs + i]);
            for (std::size_t copy = o % c.outputs(); copy < c.columns; copy += c.outputs())
                moved.bias[copy] += gradient;
        }
    }
    return moved;
}

std::vector<double> difference(const std::vector<float>& after, const std::vector<float>& before) {
    std::vector<double> result(after.size());
    for (std::size_t i = 0; i < after.size(); ++i)
        result[i] = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    return result;
}

} // namespace

TEST_CASE(
    "layer products: forward, back through a ReLU, and a step with the bias, over outputs that held NaN") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        for (const nn::Precision precision : precisions) {
            nn::MatrixProducts<B> products(precision, algorithms);
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
                device.forward(stream, products, relu, settled);
                device.input_gradient(stream, products, masked, settled);
                device.update(stream, products);
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

TEST_CASE("layer products: the same bits again, from another object, and replayed from a graph") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        for (const LayerCase& c : draw_cases(random)) {
            std::vector<std::vector<float>> first;
            for (int run = 0; run < 3; ++run) {
                nn::MatrixProducts<B> products(nn::Precision::tf32, algorithms);
                const Stream stream;
                LayerOnDevice device(stream, c);
                if (run < 2) {
                    device.all(stream, products);
                } else {
                    // Its first look at these lengths is inside the capture.
                    const sluice::BasicExecutable<B> executable(
                        sluice::capture(stream, [&](StreamRef on) { device.all(on, products); }));
                    executable.launch(stream);
                    stream.synchronize();
                }
                const std::vector<std::vector<float>> results = device.results(stream);
                if (run == 0)
                    first = results;
                CHECK(results == first);
            }
        }
    }
}

TEST_CASE("layer products: lengths that are first seen in a capture of measured algorithms") {
    NN_TEST_RANDOM(random);
    // Lengths that no other test has.
    const LayerCase c = make_case(random, 36, 1004, 68);
    nn::MatrixProducts<B> products(nn::Precision::tf32, nn::Algorithms::measured);
    const Stream stream;
    LayerOnDevice captured(stream, c);
    const sluice::BasicExecutable<B> executable(
        sluice::capture(stream, [&](StreamRef on) { captured.all(on, products); }));
    executable.launch(stream);
    nn::MatrixProducts<B> others(nn::Precision::tf32, nn::Algorithms::measured);
    LayerOnDevice eager(stream, c);
    eager.all(stream, others);
    CHECK(captured.results(stream) == eager.results(stream));
}

TEST_CASE("layer products: nothing is made after the first time") {
    NN_TEST_RANDOM(random);
    for (const nn::Algorithms algorithms : both_algorithms) {
        const std::vector<LayerCase> cases = draw_cases(random);
        nn::MatrixProducts<B> products(nn::Precision::tf32, algorithms);
        const Stream stream;
        for (const LayerCase& c : cases) {
            LayerOnDevice device(stream, c);
            check_steady(stream, [&] { device.all(stream, products); });
        }
    }
}

TEST_CASE("layer products: NaN in a factor is NaN in what it is multiplied into") {
    NN_TEST_RANDOM(random);
    LayerCase c = make_case(random, 8, 64, 128);
    c.in[3 * c.inputs + 5] = NAN;
    nn::MatrixProducts<B> products(nn::Precision::tf32);
    const Stream stream;
    LayerOnDevice device(stream, c);
    device.forward(stream, products, false, false);
    const std::vector<float> out = device.results(stream)[0];
    for (std::size_t i = 0; i < out.size(); ++i)
        CHECK(std::isnan(out[i]) == (i / c.columns == 3));
}

TEST_CASE("layer products: what goes with a product and does not fit is refused in one sentence") {
    nn::MatrixProducts<B> products;
    const Stream stream;
    Buffer<float> a(6);
    Buffer<float> b(8);
    Buffer<float> out(12);
    Buffer<float> factors(2);
    CHECK(
        error_of([&] {
            products.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 3, 4),
                              {.relu_output = a});
        }) ==
        "matrix product: the gradient of a ReLU of 6 elements, in 1 parts and with beta = 0.000000; expected "
        "12 elements of float32, one part, beta = 0 known beforehand and no bias");
    CHECK(error_of([&] {
              products.multiply(stream, matrix(a, 2, 3), matrix(b, 2, 4), matrix(out, 3, 4),
                                {.transpose_a = true,
                                 .device_factors = factors,
                                 .bias_step = {.bias = b, .outputs = 3, .scratch = {}}});
          }).find("matrix product: a step for a bias of 8 elements, 3 of them different, beside 4 columns") ==
          0);
}

} // namespace nn_layer_products
