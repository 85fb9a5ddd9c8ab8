#include <nn/gemm/gemm.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
#include <cblas.h>
#endif

#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/elementwise.hpp>
#include <nn/elementwise/sums.hpp>

namespace nn {
namespace {

/// A product of floats, in part or whole.
void multiply_floats(const GemmShape& shape, const float* a, bool transpose_a, const float* b,
                     bool transpose_b, float* out, float alpha, float beta) {
#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
    const auto length = [](std::size_t value) { return static_cast<blasint>(value); };
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, length(shape.m), length(shape.n), length(shape.k),
                alpha, a, length(transpose_a ? shape.m : shape.k), b, length(transpose_b ? shape.k : shape.n),
                beta, out, length(shape.n));
#else
    multiply_loops(shape, a, transpose_a, b, transpose_b, out, alpha, beta);
#endif
}

/// A product of Bfloat16: sums in float32, kept until they are whole.
template <class Out>
void multiply_rounded(const GemmShape& shape, const Bfloat16* a, bool transpose_a, const Bfloat16* b,
                      bool transpose_b, Out* out, float alpha, float beta) {
    constexpr std::size_t width = 64;
    const auto [m, n, k] = shape;
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j0 = 0; j0 < n; j0 += width) {
            const std::size_t columns = std::min(width, n - j0);
            float sums[width] = {};
            for (std::size_t l = 0; l < k; ++l) {
                const float factor = static_cast<float>(a[transpose_a ? l * m + i : i * k + l]);
                const Bfloat16* const from = b + (transpose_b ? j0 * k + l : l * n + j0);
                const std::size_t stride = transpose_b ? k : 1;
                for (std::size_t j = 0; j < columns; ++j)
                    sums[j] += factor * static_cast<float>(from[j * stride]);
            }
            Out* const mine = out + i * n + j0;
            for (std::size_t j = 0; j < columns; ++j) {
                const float before = beta == 0.0f ? 0.0f : beta * static_cast<float>(mine[j]);
                mine[j] = Out(alpha * sums[j] + before);
            }
        }
    }
}

/// A product as a task of the stream: no larger than a task that does not allocate.
template <class T, class Out>
struct HostGemm {
    GemmShape shape;
    const T* a;
    const T* b;
    Out* out;
    const float* bias;
    const float* device_factors;
    float alpha;
    float beta;
    bool transpose_a;
    bool transpose_b;
    bool relu;
    std::size_t parts;

    void operator()() const {
        multiply();
        if (bias != nullptr)
            finish();
    }

private:
    void multiply() const {
        // Read here, when the product runs, and not when it was enqueued.
        const float factor = device_factors != nullptr ? device_factors[0] : alpha;
        const float before = device_factors != nullptr ? device_factors[1] : beta;
        for (std::size_t part = 0; part < parts; ++part) {
            const T* const from_a = a + part * shape.m * shape.k;
            const T* const from_b = b + part * shape.k * shape.n;
            Out* const to = out + part * shape.m * shape.n;
            if constexpr (std::is_same_v<T, float>)
                multiply_floats(shape, from_a, transpose_a, from_b, transpose_b, to, factor, before);
            else
                multiply_rounded(shape, from_a, transpose_a, from_b, transpose_b, to, factor, before);
        }
    }

    void finish() const {
        for (std::size_t row = 0; row < shape.m; ++row) {
            Out* const mine = out + row * shape.n;
            if (relu) {
                for (std::size_t i = 0; i < shape.n; ++i)
                    mine[i] = Out(std::max(static_cast<float>(mine[i]) + bias[i], 0.0f));
            } else {
                for (std::size_t i = 0; i < shape.n; ++i)
                    mine[i] = Out(static_cast<float>(mine[i]) + bias[i]);
            }
        }
    }
};

} // namespace

Gemm<sluice::Host>::Gemm(Precision, Algorithms) {
#if defined(SLUICE_EXAMPLES_HAVE_OPENBLAS)
    // A host stream is a thread of its own, and a product's bits must not depend on how many threads shared it.
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
#endif
}

namespace {

template <class T, class Out>
void multiply_any(sluice::HostStreamRef stream, const Matrix<const T, sluice::Host>& a,
                  const Matrix<const T, sluice::Host>& b, const Matrix<Out, sluice::Host>& out,
                  const Epilogue<sluice::Host>& epilogue) {
    const GemmShape shape = checked_shape(a, b, out, epilogue);
    constexpr std::size_t greatest = std::numeric_limits<int>::max();
    if (shape.m > greatest || shape.n > greatest || shape.k > greatest) {
        throw sluice::Error("matrix product: a side is longer than 2^31 - 1, the greatest that BLAS takes");
    }
    const HostGemm<T, Out> gemm{shape,
                                a.data(),
                                b.data(),
                                out.data(),
                                epilogue.bias.data(),
                                epilogue.device_factors.data(),
                                epilogue.alpha,
                                epilogue.beta,
                                epilogue.transpose_a,
                                epilogue.transpose_b,
                                epilogue.relu,
                                epilogue.parts};
    static_assert(sizeof(gemm) <= sluice::host::Task::inline_bytes);
    stream.enqueue(gemm);
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Out, float>) {
        if (!epilogue.relu_output.empty())
            relu_gradient(stream, epilogue.relu_output, out.span());
        if (const auto& step = epilogue.bias_step; !step.bias.empty())
            update_bias(stream, b.with_columns(step.outputs), step.bias, epilogue.device_factors,
                        step.scratch);
    }
}

} // namespace

void Gemm<sluice::Host>::multiply(sluice::HostStreamRef stream, Matrix<const float, sluice::Host> a,
                                  Matrix<const float, sluice::Host> b, Matrix<float, sluice::Host> out,
                                  const Epilogue<sluice::Host>& epilogue) {
    multiply_any(stream, a, b, out, epilogue);
}
void Gemm<sluice::Host>::multiply(sluice::HostStreamRef stream, Matrix<const Bfloat16, sluice::Host> a,
                                  Matrix<const Bfloat16, sluice::Host> b, Matrix<float, sluice::Host> out,
                                  const Epilogue<sluice::Host>& epilogue) {
    multiply_any(stream, a, b, out, epilogue);
}
void Gemm<sluice::Host>::multiply(sluice::HostStreamRef stream, Matrix<const Bfloat16, sluice::Host> a,
                                  Matrix<const Bfloat16, sluice::Host> b, Matrix<Bfloat16, sluice::Host> out,
                                  const Epilogue<sluice::Host>& epilogue) {
    multiply_any(stream, a, b, out, epilogue);
}

void Gemm<sluice::Host>::update(sluice::HostStreamRef stream,
                                std::span<const WeightUpdate<sluice::Host>> updates,
                                sluice::DeviceSpan<const float, sluice::Host> factors) {
    require_size("weight update: factors", factors.size(), 2);
    for (const WeightUpdate<sluice::Host>& update : updates)
        multiply(stream, update.in, update.gradient, update.weights, update.epilogue(factors));
}

namespace {

// A panel of op(b) is packed on the stack, so that the innermost loop runs along rows whatever is transposed; a
// tile of the result is as large as the vector registers of any processor hold.
constexpr std::size_t panel_rows = 128;
constexpr std::size_t panel_columns = 64;
constexpr std::size_t tile_rows = 4;
constexpr std::size_t tile_columns = 8;

using Panel = float[panel_rows][panel_columns];
using Tile = float[tile_rows][tile_columns];

/// A matrix read through strides, so that a transposed one needs no code of its own.
struct Strided {
    const float* values;
    std::size_t row_stride;
    std::size_t column_stride;

    float at(std::size_t row, std::size_t column) const {
        return values[row * row_stride + column * column_stride];
    }
};

/// Copies `rows` by `columns` elements of `from`, and zeros up to a whole number of tiles.
void pack(Panel& panel, const Strided& from, std::size_t row, std::size_t rows, std::size_t column,
          std::size_t columns) {
    const std::size_t padded = ceil_div(columns, tile_columns) * tile_columns;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < padded; ++j) {
            panel[i][j] = j < columns ? from.at(row + i, column + j) : 0.0f;
        }
    }
}

/// `tile = a[row …, k0 …] * panel[…, column …]`, of which `rows` rows are there and the others repeat the last.
void multiply_tile(Tile& tile, const Strided& a, std::size_t row, std::size_t rows, std::size_t k0,
                   std::size_t depth, const Panel& panel, std::size_t column) {
    // GCC's and Clang's vectors of four: left to themselves, they put the sums into memory.
    using Four [[gnu::vector_size(16)]] = float;
    constexpr std::size_t fours = tile_columns / 4;
    Four sums[tile_rows][fours] = {};
    const float* from[tile_rows];
    for (std::size_t r = 0; r < tile_rows; ++r)
        from[r] = &a.values[(row + std::min(r, rows - 1)) * a.row_stride];
    for (std::size_t i = 0; i < depth; ++i) {
        Four factors[fours];
        std::memcpy(factors, &panel[i][column], sizeof(factors));
        for (std::size_t r = 0; r < tile_rows; ++r) {
            const float factor = from[r][(k0 + i) * a.column_stride];
            for (std::size_t v = 0; v < fours; ++v)
                sums[r][v] += factor * factors[v];
        }
    }
    std::memcpy(tile, sums, sizeof(tile));
}

} // namespace

void multiply_loops(const GemmShape& shape, const float* a, bool transpose_a, const float* b,
                    bool transpose_b, float* out, float alpha, float beta) {
    const auto [m, n, k] = shape;
    for (std::size_t i = 0; i < m * n; ++i)
        out[i] = beta == 0.0f ? 0.0f : beta * out[i];
    const Strided from_a{a, transpose_a ? 1 : k, transpose_a ? m : 1};
    const Strided from_b{b, transpose_b ? 1 : n, transpose_b ? k : 1};
    Panel panel;
    Tile tile;
    for (std::size_t k0 = 0; k0 < k; k0 += panel_rows) {
        const std::size_t depth = std::min(panel_rows, k - k0);
        for (std::size_t n0 = 0; n0 < n; n0 += panel_columns) {
            const std::size_t width = std::min(panel_columns, n - n0);
            pack(panel, from_b, k0, depth, n0, width);
            for (std::size_t row = 0; row < m; row += tile_rows) {
                const std::size_t rows = std::min(tile_rows, m - row);
                for (std::size_t j = 0; j < width; j += tile_columns) {
                    multiply_tile(tile, from_a, row, rows, k0, depth, panel, j);
                    for (std::size_t r = 0; r < rows; ++r) {
                        float* const mine = out + (row + r) * n + n0 + j;
                        for (std::size_t c = 0; c < std::min(tile_columns, width - j); ++c) {
                            mine[c] += alpha * tile[r][c];
                        }
                    }
                }
            }
        }
    }
}

} // namespace nn
