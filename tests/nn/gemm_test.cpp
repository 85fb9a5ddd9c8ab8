#include "nn/support.hpp"

namespace nn_gemm {

using namespace nn_test;

namespace {

/// op(a) op(b) in float64.
std::vector<double> naive_gemm(const nn::GemmShape& s, const std::vector<float>& a, bool ta,
                               const std::vector<float>& b, bool tb) {
    std::vector<double> out(s.m * s.n, 0.0);
    for (std::size_t i = 0; i < s.m; ++i)
        for (std::size_t j = 0; j < s.n; ++j)
            for (std::size_t l = 0; l < s.k; ++l)
                out[i * s.n + j] += static_cast<double>(a[ta ? l * s.m + i : i * s.k + l]) *
                                    static_cast<double>(b[tb ? j * s.k + l : l * s.n + j]);
    return out;
}

struct Operands {
    nn::GemmShape shape;
    bool ta, tb;
    std::vector<float> a, b, c, bias;
};

Operands draw(Random& random) {
    Operands o;
    // Lengths below and above what kernels take at once, odd ones among them.
    const auto length = [&] { return random.between(1, random.between(0, 1) == 0 ? 20 : 200); };
    o.shape = {length(), length(), length()};
    o.ta = random.between(0, 1) == 1;
    o.tb = random.between(0, 1) == 1;
    o.a = random.numbers(o.shape.m * o.shape.k);
    o.b = random.numbers(o.shape.k * o.shape.n);
    o.c = random.numbers(o.shape.m * o.shape.n);
    o.bias = random.numbers(o.shape.n);
    return o;
}

nn::Matrix<const float, B> view(const Buffer<float>& buffer, std::size_t rows, std::size_t columns,
                                bool transposed) {
    return transposed ? nn::Matrix<const float, B>{buffer, columns, rows}
                      : nn::Matrix<const float, B>{buffer, rows, columns};
}

} // namespace

TEST_CASE("gemm: any shape, transposed or not, with bias and ReLU, over an output that held NaN") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        nn::Gemm<B> gemm(precision);
        const Stream stream;
        for (int round = 0; round < 30; ++round) {
            const Operands o = draw(random);
            const auto [m, n, k] = o.shape;
            const bool biased = random.between(0, 2) > 0;
            const bool relu = biased && random.between(0, 1) == 1;
            CAPTURE(o.shape.m);
            CAPTURE(o.shape.n);
            CAPTURE(o.shape.k);
            CAPTURE(o.ta);
            CAPTURE(o.tb);
            CAPTURE(biased);
            CAPTURE(relu);
            const Buffer<float> a = device(o.a);
            const Buffer<float> b = device(o.b);
            const Buffer<float> bias = device(o.bias);
            Buffer<float> out = poisoned<float>(stream, m * n);
            nn::Epilogue<B> options{.transpose_a = o.ta, .transpose_b = o.tb, .relu = relu};
            if (biased)
                options.bias = bias;
            gemm.multiply(stream, view(a, m, k, o.ta), view(b, k, n, o.tb), matrix(out, m, n), options);

            std::vector<double> expected = naive_gemm(o.shape, o.a, o.ta, o.b, o.tb);
            for (std::size_t i = 0; biased && i < expected.size(); ++i) {
                expected[i] += static_cast<double>(o.bias[i % n]);
                if (relu && expected[i] < 0.0)
                    expected[i] = 0.0;
            }
            CHECK(relative_error(host(stream, out), expected) <= tolerance(precision));
        }
    }
}

TEST_CASE("gemm: alpha and beta, in place") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        nn::Gemm<B> gemm(precision);
        const Stream stream;
        for (int round = 0; round < 10; ++round) {
            const Operands o = draw(random);
            const auto [m, n, k] = o.shape;
            const float alpha = -0.25f;
            const float beta = round % 2 == 0 ? 1.0f : 0.5f;
            const Buffer<float> a = device(o.a);
            const Buffer<float> b = device(o.b);
            Buffer<float> out = device(o.c);
            gemm.multiply(stream, view(a, m, k, o.ta), view(b, k, n, o.tb), matrix(out, m, n),
                          {.transpose_a = o.ta, .transpose_b = o.tb, .alpha = alpha, .beta = beta});
            std::vector<double> expected = naive_gemm(o.shape, o.a, o.ta, o.b, o.tb);
            for (std::size_t i = 0; i < expected.size(); ++i) {
                expected[i] = alpha * expected[i] + beta * static_cast<double>(o.c[i]);
            }
            CAPTURE(o.shape.m);
            CAPTURE(o.shape.n);
            CAPTURE(o.shape.k);
            CHECK(relative_error(host(stream, out), expected) <= tolerance(precision));
        }
    }
}

TEST_CASE("gemm: alpha and beta from device memory, read when the product runs") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        nn::Gemm<B> gemm(precision);
        const Stream stream;
        for (int round = 0; round < 10; ++round) {
            const Operands o = draw(random);
            const auto [m, n, k] = o.shape;
            const std::vector<float> values{-0.25f, round % 2 == 0 ? 1.0f : 0.5f};
            const Buffer<float> a = device(o.a);
            const Buffer<float> b = device(o.b);
            const Buffer<float> values_buffer = device(values);
            Buffer<float> factors = poisoned<float>(stream, 2);
            Buffer<float> out = device(o.c);
            // Enqueued behind the copy that brings the numbers, and behind others that must not be read.
            copy(stream, factors, values_buffer);
            gemm.multiply(stream, view(a, m, k, o.ta), view(b, k, n, o.tb), matrix(out, m, n),
                          {.transpose_a = o.ta, .transpose_b = o.tb, .device_factors = factors});
            sluice::fill_bytes(stream, factors, 0xFF);
            std::vector<double> expected = naive_gemm(o.shape, o.a, o.ta, o.b, o.tb);
            for (std::size_t i = 0; i < expected.size(); ++i) {
                expected[i] = static_cast<double>(values[0]) * expected[i] +
                              static_cast<double>(values[1]) * static_cast<double>(o.c[i]);
            }
            CAPTURE(o.shape.m);
            CAPTURE(o.shape.n);
            CAPTURE(o.shape.k);
            CHECK(relative_error(host(stream, out), expected) <= tolerance(precision));
        }
    }
}

TEST_CASE("gemm: operands that start anywhere") {
    NN_TEST_RANDOM(random);
    nn::Gemm<B> gemm(nn::Precision::tf32);
    const Stream stream;
    for (int round = 0; round < 10; ++round) {
        const Operands o = draw(random);
        const auto [m, n, k] = o.shape;
        const std::size_t skip[3] = {random.between(0, 5), random.between(0, 5), random.between(0, 5)};
        std::vector<float> a(skip[0]);
        std::vector<float> b(skip[1]);
        a.insert(a.end(), o.a.begin(), o.a.end());
        b.insert(b.end(), o.b.begin(), o.b.end());
        Buffer<float> a_buffer = device(a);
        Buffer<float> b_buffer = device(b);
        Buffer<float> out = poisoned<float>(stream, skip[2] + m * n);
        gemm.multiply(
            stream, nn::Matrix<const float, B>{a_buffer.span().last(m * k), o.ta ? k : m, o.ta ? m : k},
            nn::Matrix<const float, B>{b_buffer.span().last(k * n), o.tb ? n : k, o.tb ? k : n},
            nn::Matrix<float, B>{out.span().last(m * n), m, n}, {.transpose_a = o.ta, .transpose_b = o.tb});
        std::vector<float> result = host(stream, out);
        for (std::size_t i = 0; i < skip[2]; ++i)
            CHECK(std::isnan(result[i]));
        result.erase(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(skip[2]));
        CHECK(relative_error(result, naive_gemm(o.shape, o.a, o.ta, o.b, o.tb)) <=
              tolerance(nn::Precision::tf32));
    }
}

TEST_CASE("gemm: the same bits again, on another stream, from another object") {
    NN_TEST_RANDOM(random);
    for (const nn::Precision precision : precisions) {
        for (int round = 0; round < 5; ++round) {
            const Operands o = draw(random);
            const auto [m, n, k] = o.shape;
            const Buffer<float> a = device(o.a);
            const Buffer<float> b = device(o.b);
            std::vector<float> first;
            for (int run = 0; run < 3; ++run) {
                nn::Gemm<B> gemm(precision);
                const Stream stream;
                Buffer<float> out = poisoned<float>(stream, m * n);
                gemm.multiply(stream, view(a, m, k, o.ta), view(b, k, n, o.tb), matrix(out, m, n),
                              {.transpose_a = o.ta, .transpose_b = o.tb});
                const std::vector<float> result = host(stream, out);
                if (run == 0)
                    first = result;
                CHECK(result == first);
            }
        }
    }
}

TEST_CASE("gemm: plain loops give the same") {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 20; ++round) {
        const Operands o = draw(random);
        const float beta = round % 3 == 0 ? 0.0f : (round % 3 == 1 ? 1.0f : -0.5f);
        std::vector<float> out = o.c;
        if (beta == 0.0f)
            out.assign(out.size(), NAN);
        nn::multiply_loops(o.shape, o.a.data(), o.ta, o.b.data(), o.tb, out.data(), 0.75f, beta);
        std::vector<double> expected = naive_gemm(o.shape, o.a, o.ta, o.b, o.tb);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] = 0.75 * expected[i] + static_cast<double>(beta) * static_cast<double>(o.c[i]);
        }
        CHECK(relative_error(out, expected) <= 1e-5);
    }
}

TEST_CASE("gemm: shapes that do not fit are refused in one sentence") {
    nn::Gemm<B> gemm;
    const Stream stream;
    Buffer<float> a(6);
    Buffer<float> b(8);
    Buffer<float> out(12);
    CHECK(
        error_of([&] { gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 4, 2), matrix(out, 3, 4)); }) ==
        "matrix product: [3, 2] times [4, 2] into [3, 4]; expected [m, k] times [k, n] into [m, n], none 0");
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 4, 3));
          }).find("matrix product:") == 0);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 3, 4), {.bias = a});
          }).find("a bias of 6 elements") != std::string::npos);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 3, 4), {.relu = true});
          }).find("ReLU") != std::string::npos);
    CHECK(error_of([&] {
              gemm.multiply(stream, matrix(a, 3, 2), matrix(b, 2, 4), matrix(out, 3, 4),
                            {.device_factors = a.span().first(1)});
          }) == "matrix product: 1 factors in device memory and a bias of 0 elements; expected alpha, beta "
                "and no bias");
    CHECK(error_of([&] { matrix(a, 4, 2); }) ==
          "a matrix of 4 rows and 2 columns cannot be made of 6 elements");
    CHECK(error_of([&] { matrix(a, 3, 2).with_columns(4); }) ==
          "a matrix of 6 elements cannot be split into rows of 4");
}

} // namespace nn_gemm
