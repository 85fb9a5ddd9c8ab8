// The products that a detector needs: of bfloat16, and several parts at once.
#include <algorithm>

#include <nn/gemm/gemm.hpp>

#include "nn/detector_case.hpp"

namespace nn_gemm_bfloat16 {

using namespace nn_test;
using nn::Bfloat16;

namespace {

/// Random products in parts, of elements `T` into elements `Out`.
template <class T, class Out>
void check_gemms(Random& random, nn::Precision precision = nn::Precision::float32) {
    nn::Gemm<B> gemm(precision);
    const Stream stream;
    for (int round = 0; round < 12; ++round) {
        const auto length = [&] { return random.between(1, random.between(0, 1) == 0 ? 9 : 100); };
        const std::size_t m = length();
        const std::size_t n = length();
        const std::size_t k = length();
        const std::size_t parts = round % 2 == 0 ? 1 : random.between(2, 5);
        const bool ta = random.between(0, 1) == 1;
        const bool tb = random.between(0, 1) == 1;
        const bool biased = parts == 1 && random.between(0, 1) == 1;
        const bool relu = biased && random.between(0, 1) == 1;
        const float beta = biased || random.between(0, 1) == 0 ? 0.0f : 0.5f;
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(parts);
        CAPTURE(ta);
        CAPTURE(tb);
        CAPTURE(biased);
        CAPTURE(beta);
        const auto a = rounded<T>(random.numbers(parts * m * k));
        const auto b = rounded<T>(random.numbers(parts * k * n));
        const auto c = rounded<Out>(random.numbers(parts * m * n));
        const auto bias = random.numbers(n);
        const Buffer<T> a_buffer = device(a);
        const Buffer<T> b_buffer = device(b);
        const Buffer<float> bias_buffer = device(bias);
        Buffer<Out> out = beta == 0.0f ? poisoned<Out>(stream, c.size()) : device(c);
        nn::Epilogue<B> options{
            .transpose_a = ta, .transpose_b = tb, .alpha = 0.75f, .beta = beta, .relu = relu, .parts = parts};
        Buffer<Bfloat16> rounded_bias;
        if (biased)
            options.bias = bias_buffer;
        if constexpr (std::is_same_v<Out, Bfloat16>) {
            if (biased && random.between(0, 1) == 1) {
                rounded_bias = device(rounded<Bfloat16>(bias));
                options.rounded_bias = rounded_bias;
            }
        }
        gemm.multiply(stream, nn::Matrix<const T, B>{a_buffer, parts * (ta ? k : m), ta ? m : k},
                      nn::Matrix<const T, B>{b_buffer, parts * (tb ? n : k), tb ? k : n},
                      nn::Matrix<Out, B>{out, parts * m, n}, options);
        naive::Doubles expected;
        for (std::size_t i = 0; i < parts * m * n; ++i) {
            const std::size_t part = i / (m * n);
            const std::size_t row = i / n % m;
            const std::size_t column = i % n;
            double sum = 0.0;
            for (std::size_t l = 0; l < k; ++l) {
                const T left = a[part * m * k + (ta ? l * m + row : row * k + l)];
                const T right = b[part * k * n + (tb ? column * k + l : l * n + column)];
                sum += static_cast<double>(static_cast<float>(left)) *
                       static_cast<double>(static_cast<float>(right));
            }
            sum = 0.75 * sum + static_cast<double>(beta) * static_cast<double>(static_cast<float>(c[i]));
            if (biased)
                sum += static_cast<double>(bias[column]);
            expected.push_back(relu ? std::max(sum, 0.0) : sum);
        }
        CHECK(relative_error(widened(host(stream, out)), expected) <=
              (precision == nn::Precision::float32 ? element_tolerance<Out>() : 1e-2));
    }
}

} // namespace

TEST_CASE("gemm bfloat16: products of parts, and of bfloat16 with sums in float32") {
    NN_TEST_RANDOM(random);
    SUBCASE("float32") { check_gemms<float, float>(random); }
    SUBCASE("float32, with factors rounded to bfloat16") {
        check_gemms<float, float>(random, nn::Precision::bfloat16);
    }
    SUBCASE("bfloat16 into float32") { check_gemms<Bfloat16, float>(random); }
    SUBCASE("bfloat16") { check_gemms<Bfloat16, Bfloat16>(random); }
}

TEST_CASE("gemm bfloat16: parts that do not fit are refused") {
    nn::Gemm<B> gemm;
    const Stream stream;
    Buffer<float> a(12);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 4), matrix(a, 4, 3), matrix(a, 4, 3), {.parts = 2});
          }).find("matrix product: 2 parts of 3, 4 and 4 rows") == 0);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 4, 3), matrix(a, 4, 3), matrix(a, 4, 3),
                            {.bias = a.span().first(3), .parts = 2});
          }).find("no bias with several parts") != std::string::npos);
}

TEST_CASE("gemm bfloat16: a rounded bias that does not fit is refused") {
    nn::Gemm<B> gemm;
    const Stream stream;
    Buffer<float> a(9);
    Buffer<Bfloat16> bias(3);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 3), matrix(a, 3, 3), matrix(a, 3, 3),
                            {.bias = a.span().first(3), .rounded_bias = bias});
          }) ==
          "matrix product: a rounded bias of 3 elements; expected a result of Bfloat16, and 3 elements, as "
          "the bias has");
}

} // namespace nn_gemm_bfloat16
