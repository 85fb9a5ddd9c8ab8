#include <nn/products.hpp>

#include <algorithm>
#include <limits>
#include <mutex>

#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
#include <cblas.h>
#endif

namespace nn {
namespace {

/// A product as it is handed to the stream: no longer than what a task keeps without allocating.
struct HostProduct {
    ProductShape shape;
    const float* a;
    const float* b;
    float* out;
    const float* bias;
    float alpha;
    float beta;
    bool transpose_a;
    bool transpose_b;
    bool relu;

    void operator()() const {
        multiply();
        if (bias != nullptr)
            finish();
    }

private:
    void multiply() const {
#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
        const auto length = [](std::size_t value) { return static_cast<blasint>(value); };
        cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                    transpose_b ? CblasTrans : CblasNoTrans, length(shape.m), length(shape.n),
                    length(shape.k), alpha, a, length(transpose_a ? shape.m : shape.k), b,
                    length(transpose_b ? shape.k : shape.n), beta, out, length(shape.n));
#else
        multiply_plainly(shape, a, transpose_a, b, transpose_b, out, alpha, beta);
#endif
    }

    void finish() const {
        for (std::size_t row = 0; row < shape.m; ++row) {
            float* const mine = out + row * shape.n;
            if (relu) {
                for (std::size_t i = 0; i < shape.n; ++i)
                    mine[i] = std::max(mine[i] + bias[i], 0.0f);
            } else {
                for (std::size_t i = 0; i < shape.n; ++i)
                    mine[i] += bias[i];
            }
        }
    }
};

} // namespace

MatrixProducts<sluice::Host>::MatrixProducts(Precision) {
#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
    // A host stream is a thread of its own, and a product's bits must not depend on how many threads shared it.
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
#endif
}

void MatrixProducts<sluice::Host>::multiply(sluice::HostStreamRef stream, Matrix<const float, sluice::Host> a,
                                            Matrix<const float, sluice::Host> b,
                                            Matrix<float, sluice::Host> out,
                                            const ProductOptions<sluice::Host>& options) {
    const ProductShape shape = checked_shape(a, b, out, options);
    constexpr std::size_t greatest = std::numeric_limits<int>::max();
    if (shape.m > greatest || shape.n > greatest || shape.k > greatest) {
        throw sluice::Error("matrix product: a side is longer than 2^31 - 1, the greatest that BLAS takes");
    }
    stream.enqueue(HostProduct{shape, a.data(), b.data(), out.data(), options.bias.data(), options.alpha,
                               options.beta, options.transpose_a, options.transpose_b, options.relu});
}

namespace {

// A panel of op(b) is packed on the stack, so that the innermost loop runs along rows whatever is transposed.
constexpr std::size_t panel_rows = 64;
constexpr std::size_t panel_columns = 128;
constexpr std::size_t rows_at_once = 4;

using Panel = float[panel_rows][panel_columns];

void pack(Panel& panel, const float* b, bool transposed, std::size_t stride, std::size_t row,
          std::size_t rows, std::size_t column, std::size_t columns) {
    for (std::size_t i = 0; i < panel_rows; ++i) {
        for (std::size_t j = 0; j < panel_columns; ++j) {
            const bool inside = i < rows && j < columns;
            const std::size_t place =
                transposed ? (column + j) * stride + row + i : (row + i) * stride + column + j;
            panel[i][j] = inside ? b[place] : 0.0f;
        }
    }
}

} // namespace

void multiply_plainly(const ProductShape& shape, const float* a, bool transpose_a, const float* b,
                      bool transpose_b, float* out, float alpha, float beta) {
    const auto [m, n, k] = shape;
    if (beta == 0.0f) {
        std::fill_n(out, m * n, 0.0f);
    } else if (beta != 1.0f) {
        std::for_each(out, out + m * n, [beta](float& value) { value *= beta; });
    }
    const std::size_t a_row = transpose_a ? 1 : k;
    const std::size_t a_column = transpose_a ? m : 1;
    Panel panel;
    for (std::size_t k0 = 0; k0 < k; k0 += panel_rows) {
        const std::size_t depth = std::min(panel_rows, k - k0);
        for (std::size_t n0 = 0; n0 < n; n0 += panel_columns) {
            const std::size_t width = std::min(panel_columns, n - n0);
            pack(panel, b, transpose_b, transpose_b ? k : n, k0, depth, n0, width);
            for (std::size_t m0 = 0; m0 < m; m0 += rows_at_once) {
                const std::size_t height = std::min(rows_at_once, m - m0);
                float sums[rows_at_once][panel_columns] = {};
                for (std::size_t i = 0; i < depth; ++i) {
                    for (std::size_t row = 0; row < height; ++row) {
                        const float factor = a[(m0 + row) * a_row + (k0 + i) * a_column];
                        for (std::size_t j = 0; j < panel_columns; ++j)
                            sums[row][j] += factor * panel[i][j];
                    }
                }
                for (std::size_t row = 0; row < height; ++row) {
                    float* const mine = out + (m0 + row) * n + n0;
                    for (std::size_t j = 0; j < width; ++j)
                        mine[j] += alpha * sums[row][j];
                }
            }
        }
    }
}

} // namespace nn
