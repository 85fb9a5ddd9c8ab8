#include <nn/gemm/detail/gemm_tf32.cuh>
#include <nn/gemm/detail/gemm_tf32_launch.cuh>

#include <algorithm>
#include <cstdint>
#include <string>

namespace nn::detail {
namespace {

using namespace tf32;

// Blocks, so that each multiprocessor has one, or two. It has room for two, though rarely for two of a cluster of more
// than two.
constexpr unsigned once = 132;
constexpr unsigned twice = 264;

/// Whether the weights of a product, `n` by `k`, come from memory each time, whatever else there is.
bool beyond_cache(unsigned n, unsigned k) { return std::size_t{n} * k > (std::size_t{1} << 24); }

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

unsigned tiles_of(const Tf32Product& product, const Tf32Cut& cut) {
    return divided(product.n, columns) * divided(product.m, cut.shared_sum ? cut.rows : warps * cut.rows);
}

template <class V>
void launch(sluice::CudaStreamRef stream, const Arguments& arguments, const Tf32Cut& cut) {
    launch_early(stream, product_kernel<V>, arguments, dim3(arguments.tiles * cut.cluster, cut.splits),
                 threads, V::shared_bytes, cut.cluster);
}

template <ProductForm form>
void launch_form(sluice::CudaStreamRef stream, const Arguments& arguments, const Tf32Cut& cut) {
    constexpr bool update = form == ProductForm::weight_gradient;
    if (cut.shared_sum && cut.rows == 64)
        return launch<Variant<form, 64, 16, 3, true>>(stream, arguments, cut);
    if (cut.shared_sum && cut.rows == 32) {
        // Memory wants more on its way; else it is better to leave room for blocks of other streams.
        if constexpr (!update) {
            if (!beyond_cache(arguments.product.n, arguments.product.k))
                return launch<Variant<form, 32, 16, 3, true>>(stream, arguments, cut);
        }
        return launch<Variant<form, 32, 16, 4, true>>(stream, arguments, cut);
    }
    if (!cut.shared_sum && cut.rows == 32)
        return launch<Variant<form, 32, 16, 3, false>>(stream, arguments, cut);
    if constexpr (!update) {
        if (cut.shared_sum && cut.rows == 16)
            return launch<Variant<form, 16, 32, 3, true>>(stream, arguments, cut);
        if (cut.shared_sum && cut.rows == 8)
            return launch<Variant<form, 8, 32, 3, true>>(stream, arguments, cut);
        if (!cut.shared_sum && cut.rows == 64)
            return launch<Variant<form, 64, 16, 3, false>>(stream, arguments, cut);
    }
    throw sluice::Error("matrix product: there is no kernel for " + std::to_string(cut.rows) +
                        " rows in a warp with this form");
}

} // namespace

bool tf32_available() {
    // Of all variants the one that takes the most shared memory, more than some later devices offer a block.
    using Greatest = Variant<ProductForm::forward, 16, 32, 3, true>;
    int room = 0;
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                             sluice::Cuda::current_device()));
    // Asked of the code, since that of an older architecture runs on a newer one, and does nothing.
    cudaFuncAttributes attributes = {};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, product_kernel<Greatest>);
    if (status != cudaSuccess)
        (void)cudaGetLastError();
    return status == cudaSuccess && attributes.ptxVersion >= 90 &&
           Greatest::shared_bytes <= static_cast<std::size_t>(room);
}

bool tf32_fits(const Tf32Product& product) {
    const bool weight_gradient = product.form == ProductForm::weight_gradient;
    const bool data_gradient = product.form == ProductForm::data_gradient;
    // What runs along the rows of a, of b and of out.
    const unsigned along_a = weight_gradient ? product.m : product.k;
    const unsigned along_b = data_gradient ? product.k : product.n;
    // The kernels count the bytes of several rows in 32 bits.
    constexpr unsigned longest = 1u << 27;
    return along_a % 4 == 0 && along_b % 4 == 0 && product.n % 4 == 0 && along_a < longest &&
           along_b < longest && aligned(product.a) && aligned(product.b) && aligned(product.out) &&
           aligned(product.bias) && aligned(product.relu_output);
}

std::vector<Tf32Cut> tf32_cuts(ProductForm form, unsigned m, unsigned n, unsigned k) {
    const bool update = form == ProductForm::weight_gradient;
    std::vector<Tf32Cut> cuts;
    // As many blocks as there are multiprocessors, or twice that, and steps for all of their warps.
    const auto add_shared = [&](unsigned rows, unsigned blocks, unsigned greatest_cluster = 8) {
        const unsigned tiles = divided(n, columns) * divided(m, rows);
        const unsigned steps = divided(k, rows < 32 ? 32 : 16) / warps;
        Tf32Cut cut{.rows = rows, .shared_sum = true, .cluster = 1, .splits = 1};
        while (cut.cluster < greatest_cluster && 2 * cut.cluster * tiles <= blocks &&
               2 * cut.cluster <= steps)
            cut.cluster *= 2;
        while (cut.cluster == 8 && 2 * cut.splits * 8 * tiles <= blocks && 2 * cut.splits * 8 <= steps)
            cut.splits *= 2;
        if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
            cuts.push_back(cut);
    };
    const auto add_own = [&](unsigned rows) { cuts.push_back({.rows = rows, .shared_sum = false}); };
    const unsigned fitting = m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64;
    if (update) {
        const bool many_tiles = std::size_t{divided(n, columns)} * divided(m, 64) > twice;
        // Weights beyond the cache's size are worth reading before all else, whatever the multiplications lose by it.
        const bool large = std::size_t{m} * n > (std::size_t{1} << 22);
        if (k <= 32 || (k <= 128 && large))
            add_own(32);
        if (many_tiles)
            add_shared(64, once);
        add_shared(32, once);
        add_shared(64, once);
        add_shared(64, twice);
        if (k > 32 && k <= 128 && !large)
            add_own(32);
        return cuts;
    }
    // What is first is so by measurement in chains of products: latency is hidden best by two blocks on each
    // multiprocessor, of 64 rows if there are as many.
    const auto own_blocks = [&](unsigned rows) { return divided(n, columns) * divided(m, warps * rows); };
    constexpr unsigned few_steps = 128;
    constexpr unsigned almost_once = 128;
    if (k <= few_steps) {
        const bool forward = form == ProductForm::forward;
        if (own_blocks(64) >= (forward ? 2 * almost_once : almost_once))
            add_own(64);
        else if (own_blocks(32) >= almost_once)
            add_own(32);
    }
    constexpr unsigned enough_of_64_rows = 192;
    const bool high = m > 32 && divided(n, columns) * divided(m, 64) >= enough_of_64_rows;
    const unsigned rows = high ? 64 : std::min(fitting, 32u);
    if (beyond_cache(n, k) || 2 * divided(n, columns) * divided(m, rows) <= once)
        add_shared(rows, once);
    else
        add_shared(rows, twice, k > few_steps ? 2 : 1);
    if (form == ProductForm::data_gradient && m > 512)
        add_shared(64, twice, 2);
    add_shared(fitting, once);
    add_shared(fitting, twice);
    if (m > 32) {
        add_shared(32, once);
        add_shared(32, twice);
    }
    if (k <= 256) {
        for (const unsigned own_rows : {64u, 32u}) {
            const Tf32Cut own{.rows = own_rows, .shared_sum = false};
            if (std::find(cuts.begin(), cuts.end(), own) == cuts.end())
                cuts.push_back(own);
        }
    }
    return cuts;
}

bool tf32_is_faster(ProductForm form, unsigned m, unsigned n, unsigned k) {
    const bool update = form == ProductForm::weight_gradient;
    // From there on the tensor cores' own asynchronous instructions, which this kernel does not use, count for more.
    const double most_work = update ? 0x1p30 : 0x1p28;
    // Few channels, or few rows: all reading and writing.
    const double weights = static_cast<double>(n) * (update ? m : k);
    const bool moves_more = weights <= 8192.0 || (update ? k : m) <= 32;
    return moves_more || static_cast<double>(m) * n * k <= most_work;
}

std::size_t tf32_partial_sums(const Tf32Product& product, const Tf32Cut& cut) {
    // The sums of the columns, then those of each split.
    const std::size_t of_columns = std::size_t{divided(product.n, columns)} * columns;
    const std::size_t tile = (cut.rows + 1) * columns;
    return of_columns + (cut.splits > 1 ? cut.splits * tiles_of(product, cut) * tile : 0);
}

void multiply_tf32(sluice::CudaStreamRef stream, const Tf32Product& product, const Tf32Cut& cut,
                   const Tf32Workspace& workspace) {
    const unsigned tiles = tiles_of(product, cut);
    const bool sized = cut.cluster == 1 || cut.cluster == 2 || cut.cluster == 4 || cut.cluster == 8;
    if (!sized || cut.splits == 0 || (!cut.shared_sum && (cut.cluster != 1 || cut.splits != 1)) ||
        (cut.splits > 1 && std::size_t{tiles} * cut.cluster >= Tf32Workspace::tickets_count) ||
        tf32_partial_sums(product, cut) > workspace.partial_sums_count) [[unlikely]] {
        throw sluice::Error("matrix product: a cut into clusters of " + std::to_string(cut.cluster) +
                            " blocks and " + std::to_string(cut.splits) +
                            " splits is none, or has no workspace of that size");
    }
    const unsigned column_tiles = divided(product.n, columns);
    const Arguments arguments{.product = product,
                              .column_tiles = column_tiles,
                              .tiles = tiles,
                              .partial_sums = workspace.partial_sums + std::size_t{column_tiles} * columns,
                              .column_sums = workspace.partial_sums,
                              .tickets = workspace.tickets};
    switch (product.form) {
    case ProductForm::forward:
        return launch_form<ProductForm::forward>(stream, arguments, cut);
    case ProductForm::data_gradient:
        return launch_form<ProductForm::data_gradient>(stream, arguments, cut);
    case ProductForm::weight_gradient:
        return launch_form<ProductForm::weight_gradient>(stream, arguments, cut);
    }
}

} // namespace nn::detail
