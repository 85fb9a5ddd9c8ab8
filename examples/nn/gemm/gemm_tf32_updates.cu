#include <nn/core/ceil_div.hpp>
#include <nn/gemm/detail/gemm_tf32_launch.cuh>
#include <nn/gemm/detail/gemm_tf32_updates.cuh>

#include <algorithm>
#include <string>

namespace nn::detail {
namespace {

using namespace tf32;

constexpr unsigned most_splits = 256;
/// Stages of a sum that a block adds up, before it is split: fewer would cost more than they gain.
constexpr std::size_t least_stages = 64;
/// Blocks that work at once, two on each of 132 multiprocessors. Sums are split until there are as many.
constexpr std::size_t at_once = 264;
/// Where a four has that many splits, threads share them: few tiles of many splits would be few blocks that take long.
constexpr unsigned many_splits = 64;
constexpr unsigned most_summers = 8;

/// Floats for the sums of a product's columns, for each split.
std::size_t column_sums_of(const Tf32Gemm& gemm) {
    return std::size_t{ceil_div(gemm.n, WideUpdate::block_columns)} * WideUpdate::block_columns;
}

/// Cuts up a part's product into sums of `most_stages` stages, and takes workspace from `used` on, of which the last `reserved`
/// floats are for others. Returns the floats taken so far.
std::size_t cut_up(Updates::Part& part, unsigned most_stages, const Tf32Workspace& workspace,
                   std::size_t used, std::size_t reserved) {
    const Tf32Gemm& gemm = part.gemm;
    part.splits = std::min(ceil_div(ceil_div(gemm.k, WideUpdate::depth), most_stages), most_splits);
    const std::size_t row = column_sums_of(gemm);
    const std::size_t tiles = std::size_t{part.tiles} * WideUpdate::tile_fours * 4;
    const auto end = [&] { return used + part.splits * (row + (part.splits > 1 ? tiles : 0)); };
    while (part.splits > 1 && end() + reserved > workspace.partial_sums_count)
        part.splits /= 2;
    if (end() + reserved > workspace.partial_sums_count) [[unlikely]]
        throw sluice::Error("updates: the workspace has no room for the sums of all columns");
    part.summers = part.splits >= many_splits ? most_summers : 1;
    part.column_sums = workspace.partial_sums + used;
    part.partial_sums = part.column_sums + part.splits * row;
    return end();
}

} // namespace

void update_tf32(sluice::CudaStreamRef stream, std::span<const Tf32Gemm> gemms,
                 const Tf32Workspace& workspace) {
    if (gemms.empty() || gemms.size() > tf32_most_updates) [[unlikely]] {
        throw sluice::Error("updates: " + std::to_string(gemms.size()) + " at once; expected 1 to " +
                            std::to_string(tf32_most_updates));
    }
    Updates updates{};
    unsigned blocks = 0;
    unsigned finishing = 0;
    std::size_t used = 0;
    std::size_t reserved = 0;
    std::size_t stages = 0;
    for (std::size_t i = 0; i < gemms.size(); ++i) {
        Updates::Part& part = updates.parts[i];
        part.gemm = gemms[i];
        part.column_tiles = ceil_div(part.gemm.n, WideUpdate::block_columns);
        part.tiles = part.column_tiles * ceil_div(part.gemm.m, WideUpdate::block_rows);
        reserved += column_sums_of(part.gemm);
        stages += std::size_t{part.tiles} * ceil_div(part.gemm.k, WideUpdate::depth);
    }
    const auto most_stages = static_cast<unsigned>(std::max(stages / at_once, least_stages));
    for (std::size_t i = 0; i < gemms.size(); ++i) {
        Updates::Part& part = updates.parts[i];
        reserved -= column_sums_of(part.gemm);
        used = cut_up(part, most_stages, workspace, used, reserved);
        blocks += part.tiles * part.splits;
        if (part.splits > 1)
            finishing += part.tiles * tile_finish_blocks(part.summers);
        if (part.gemm.step_bias != nullptr)
            finishing += ceil_div(part.gemm.step_outputs, finish_threads / 32);
        part.block_end = blocks;
        part.finish_end = finishing;
    }
    launch_early(stream, updates_kernel, updates, dim3(blocks), threads, WideUpdate::shared_bytes);
    if (finishing > 0)
        launch_early(stream, finish_updates_kernel, updates, dim3(finishing), finish_threads, 0);
}

} // namespace nn::detail
