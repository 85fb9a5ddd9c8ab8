#include <nn/core/ceil_div.hpp>
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

/// The longest sums that this kernel adds up faster than cuBLASLt's together with the pass over the result that these need for
/// a ReLU's gradient.
constexpr unsigned most_steps_with_mask = 256;

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

unsigned tiles_of(const Tf32Gemm& gemm, const Tf32Config& config) {
    return ceil_div(gemm.n, columns) *
           ceil_div(gemm.m, config.shared_sum ? config.rows : warps * config.rows);
}

template <class V>
void launch(sluice::CudaStreamRef stream, const Arguments& arguments, const Tf32Config& config) {
    launch_early(stream, gemm_kernel<V>, arguments, dim3(arguments.tiles * config.cluster, config.splits),
                 threads, V::shared_bytes, config.cluster);
}

template <GemmForm form>
void launch_form(sluice::CudaStreamRef stream, const Arguments& arguments, const Tf32Config& config) {
    constexpr bool update = form == GemmForm::weight_gradient;
    if (config.shared_sum && config.rows == 64)
        return launch<Variant<form, 64, 16, 3, true>>(stream, arguments, config);
    if (config.shared_sum && config.rows == 32) {
        // Memory wants more on its way; else it is better to leave room for blocks of other streams.
        if constexpr (!update) {
            if (!beyond_cache(arguments.gemm.n, arguments.gemm.k))
                return launch<Variant<form, 32, 16, 3, true>>(stream, arguments, config);
        }
        return launch<Variant<form, 32, 16, 4, true>>(stream, arguments, config);
    }
    if (!config.shared_sum && config.rows == 32)
        return launch<Variant<form, 32, 16, 3, false>>(stream, arguments, config);
    if constexpr (!update) {
        if (config.shared_sum && config.rows == 16)
            return launch<Variant<form, 16, 32, 3, true>>(stream, arguments, config);
        if (config.shared_sum && config.rows == 8)
            return launch<Variant<form, 8, 32, 3, true>>(stream, arguments, config);
        if (!config.shared_sum && config.rows == 64)
            return launch<Variant<form, 64, 16, 3, false>>(stream, arguments, config);
    }
    throw sluice::Error("matrix product: there is no kernel for " + std::to_string(config.rows) +
                        " rows in a warp with this form");
}

} // namespace

bool tf32_available() {
    // Of all variants the one that takes the most shared memory, more than some later devices offer a block.
    using Greatest = Variant<GemmForm::forward, 16, 32, 3, true>;
    int room = 0;
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                             sluice::Cuda::current_device()));
    // Asked of the code, since that of an older architecture runs on a newer one, and does nothing.
    cudaFuncAttributes attributes = {};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, gemm_kernel<Greatest>);
    if (status != cudaSuccess)
        (void)cudaGetLastError();
    return status == cudaSuccess && attributes.ptxVersion >= 90 &&
           Greatest::shared_bytes <= static_cast<std::size_t>(room);
}

bool tf32_fits(const Tf32Gemm& gemm) {
    const bool weight_gradient = gemm.form == GemmForm::weight_gradient;
    const bool data_gradient = gemm.form == GemmForm::data_gradient;
    // What runs along the rows of a, of b and of out.
    const unsigned along_a = weight_gradient ? gemm.m : gemm.k;
    const unsigned along_b = data_gradient ? gemm.k : gemm.n;
    // The kernels count the bytes of several rows in 32 bits.
    constexpr unsigned longest = 1u << 27;
    return along_a % 4 == 0 && along_b % 4 == 0 && gemm.n % 4 == 0 && along_a < longest &&
           along_b < longest && aligned(gemm.a) && aligned(gemm.b) && aligned(gemm.out) &&
           aligned(gemm.bias) && aligned(gemm.relu_output);
}

std::vector<Tf32Config> tf32_configs(GemmForm form, unsigned m, unsigned n, unsigned k) {
    const bool update = form == GemmForm::weight_gradient;
    std::vector<Tf32Config> configs;
    const auto add = [&](const Tf32Config& config) {
        if (std::find(configs.begin(), configs.end(), config) == configs.end())
            configs.push_back(config);
    };
    // As many blocks as there are multiprocessors, or twice that, and steps for all of their warps.
    const auto add_shared = [&](unsigned rows, unsigned blocks, unsigned greatest_cluster = 8) {
        const unsigned tiles = ceil_div(n, columns) * ceil_div(m, rows);
        const unsigned steps = ceil_div(k, rows < 32 ? 32 : 16) / warps;
        Tf32Config config{.rows = rows, .shared_sum = true, .cluster = 1, .splits = 1};
        while (config.cluster < greatest_cluster && 2 * config.cluster * tiles <= blocks &&
               2 * config.cluster <= steps)
            config.cluster *= 2;
        while (config.cluster == 8 && 2 * config.splits * 8 * tiles <= blocks &&
               2 * config.splits * 8 <= steps)
            config.splits *= 2;
        add(config);
    };
    const auto add_own = [&](unsigned rows) { add({.rows = rows, .shared_sum = false}); };
    const unsigned fitting = m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64;
    if (update) {
        const bool many_tiles = std::size_t{ceil_div(n, columns)} * ceil_div(m, 64) > twice;
        // Weights beyond the cache's size are worth reading before all else, whatever the multiplications lose by it.
        const bool large = std::size_t{m} * n > (std::size_t{1} << 22);
        if (k <= 32 || (k <= 128 && large))
            add_own(32);
        if (many_tiles)
            add_shared(64, once);
        add_shared(32, once);
        add_shared(64, once);
        add_shared(64, twice);
        if (k <= 128)
            add_own(32);
        return configs;
    }
    // What is first is so by measurement in chains of products: latency is hidden best by two blocks on each
    // multiprocessor, of 64 rows if there are as many.
    const auto own_blocks = [&](unsigned rows) { return ceil_div(n, columns) * ceil_div(m, warps * rows); };
    constexpr unsigned few_steps = 128;
    constexpr unsigned almost_once = 128;
    const bool forward = form == GemmForm::forward;
    if (k <= few_steps && own_blocks(64) >= (forward ? 2 * almost_once : almost_once))
        add_own(64);
    else if (k <= few_steps && own_blocks(32) >= almost_once)
        add_own(32);
    else if (!forward && k <= most_steps_with_mask && own_blocks(64) >= 2 * almost_once)
        add_own(64);
    constexpr unsigned enough_of_64_rows = 192;
    const bool high = m > 32 && ceil_div(n, columns) * ceil_div(m, 64) >= enough_of_64_rows;
    const unsigned rows = high ? 64 : std::min(fitting, 32u);
    if (beyond_cache(n, k) || 2 * ceil_div(n, columns) * ceil_div(m, rows) <= once)
        add_shared(rows, once);
    else
        add_shared(rows, twice, k > few_steps ? 2 : 1);
    if (form == GemmForm::data_gradient && m > 512)
        add_shared(64, twice, 2);
    add_shared(fitting, once);
    add_shared(fitting, twice);
    if (m > 32) {
        add_shared(32, once);
        add_shared(32, twice);
    }
    if (k <= 256) {
        add_own(64);
        add_own(32);
    }
    return configs;
}

bool tf32_is_faster(GemmForm form, unsigned m, unsigned n, unsigned k) {
    const bool update = form == GemmForm::weight_gradient;
    // From there on the tensor cores' own asynchronous instructions, which this kernel does not use, count for more.
    const double most_work = update ? 0x1p30 : 0x1p28;
    // Few channels, or few rows: all reading and writing.
    const double weights = static_cast<double>(n) * (update ? m : k);
    const bool moves_more = weights <= 8192.0 || (update ? k : m) <= 32;
    // Of a long sum this kernel keeps too few bytes on their way.
    if (!update && k > 65536 && weights > 0x1p26)
        return false;
    return moves_more || (form == GemmForm::data_gradient && k <= most_steps_with_mask) ||
           static_cast<double>(m) * n * k <= most_work;
}

std::size_t tf32_partial_sums(const Tf32Gemm& gemm, const Tf32Config& config) {
    // The sums of the columns, then those of each split.
    const std::size_t of_columns = std::size_t{ceil_div(gemm.n, columns)} * columns;
    const std::size_t tile = (config.rows + 1) * columns;
    return of_columns + (config.splits > 1 ? config.splits * tiles_of(gemm, config) * tile : 0);
}

void multiply_tf32(sluice::CudaStreamRef stream, const Tf32Gemm& gemm, const Tf32Config& config,
                   const Tf32Workspace& workspace) {
    const unsigned tiles = tiles_of(gemm, config);
    const bool sized =
        config.cluster == 1 || config.cluster == 2 || config.cluster == 4 || config.cluster == 8;
    if (!sized || config.splits == 0 || (!config.shared_sum && (config.cluster != 1 || config.splits != 1)) ||
        (config.splits > 1 && std::size_t{tiles} * config.cluster >= Tf32Workspace::tickets_count) ||
        tf32_partial_sums(gemm, config) > workspace.partial_sums_count) [[unlikely]] {
        throw sluice::Error("matrix product: a cut into clusters of " + std::to_string(config.cluster) +
                            " blocks and " + std::to_string(config.splits) +
                            " splits is none, or has no workspace of that size");
    }
    const unsigned column_tiles = ceil_div(gemm.n, columns);
    const Arguments arguments{.gemm = gemm,
                              .column_tiles = column_tiles,
                              .tiles = tiles,
                              .partial_sums = workspace.partial_sums + std::size_t{column_tiles} * columns,
                              .column_sums = workspace.partial_sums,
                              .tickets = workspace.tickets};
    switch (gemm.form) {
    case GemmForm::forward:
        return launch_form<GemmForm::forward>(stream, arguments, config);
    case GemmForm::data_gradient:
        return launch_form<GemmForm::data_gradient>(stream, arguments, config);
    case GemmForm::weight_gradient:
        return launch_form<GemmForm::weight_gradient>(stream, arguments, config);
    }
}

} // namespace nn::detail
