#include <nn/layers/layer_shape.hpp>

#include "nn/support.hpp"

namespace nn_layer_shape {

using nn::LayerShape;

TEST_CASE("layer shape: weights go to a matrix and back unchanged") {
    NN_TEST_RANDOM(random);
    const std::size_t inputs = random.between(1, 7);
    const std::size_t outputs = random.between(1, 7);
    for (const LayerShape& shape :
         {LayerShape::convolution(inputs, outputs, 3), LayerShape::transposed_convolution(inputs, outputs, 2),
          LayerShape::linear(inputs, outputs, 6)}) {
        const auto weight = random.numbers(shape.rows() * shape.columns());
        const auto matrix = shape.matrix_from_torch(weight);
        CHECK(shape.torch_from_matrix(matrix) == weight);
        std::size_t count = 1;
        for (const std::size_t side : shape.torch_shape())
            count *= side;
        CHECK(count == weight.size());
    }
}

TEST_CASE("layer shape: places in the matrix are the documented ones") {
    NN_TEST_RANDOM(random);
    const std::size_t ci = random.between(2, 5);
    const std::size_t co = random.between(2, 5);
    const std::size_t i = random.between(0, ci - 1);
    const std::size_t o = random.between(0, co - 1);
    SUBCASE("convolution") {
        const std::size_t tap = random.between(0, 8);
        const auto weight = random.numbers(ci * co * 9);
        const auto matrix = LayerShape::convolution(ci, co, 3).matrix_from_torch(weight);
        CHECK(matrix[(tap * ci + i) * co + o] == weight[(o * ci + i) * 9 + tap]);
    }
    SUBCASE("transposed convolution") {
        const std::size_t tap = random.between(0, 3);
        const auto weight = random.numbers(ci * co * 4);
        const auto matrix = LayerShape::transposed_convolution(ci, co, 2).matrix_from_torch(weight);
        CHECK(matrix[i * 4 * co + tap * co + o] == weight[(i * co + o) * 4 + tap]);
    }
    SUBCASE("linear after flatten") {
        const std::size_t pixel = random.between(0, 5);
        const auto weight = random.numbers(ci * co * 6);
        const auto matrix = LayerShape::linear(ci, co, 6).matrix_from_torch(weight);
        CHECK(matrix[(pixel * ci + i) * co + o] == weight[o * ci * 6 + i * 6 + pixel]);
    }
}

TEST_CASE("layer shape: fan-in is PyTorch's") {
    CHECK(LayerShape::convolution(5, 7, 3).fan_in() == 45);
    CHECK(LayerShape::transposed_convolution(5, 7, 2).fan_in() == 28);
    CHECK(LayerShape::linear(5, 7, 6).fan_in() == 30);
}

TEST_CASE("layer shape: wrong numbers are refused") {
    CHECK(nn_test::error_of([] { LayerShape::convolution(0, 3, 2); }).find("none of these may be 0") !=
          std::string::npos);
    const std::vector<float> weight(5);
    CHECK(nn_test::error_of([&] { LayerShape::convolution(1, 3, 2).matrix_from_torch(weight); }) ==
          "elements of a layer's weight: 5 were given, expected 12");
}

} // namespace nn_layer_shape
