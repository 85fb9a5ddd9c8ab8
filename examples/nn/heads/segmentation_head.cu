#include <nn/heads/segmentation_head.hpp>

#include <algorithm>
#include <limits>

#include <nn/core/ceil_div.hpp>
#include <nn/heads/detail/segmentation_head_kernels.cuh>

namespace nn {
namespace {

using detail::HeadPlan;

/// The part of a plan that forward and backward have in common, if everything fits.
HeadPlan checked_plan(const char* what, const SegmentationHeadShape& shape,
                      const SegmentationHeadWeights<const float, sluice::Cuda>& weights,
                      const Matrix<const float, sluice::Cuda>& in, std::size_t labels, std::size_t blocks) {
    const std::size_t classes = weights.last.columns();
    // Text is made where something is wrong only: steps allocate nothing.
    const auto name = [what](const char* rest) { return std::string(what) + ": " + rest; };
    if (!supports_segmentation_head(in.columns(), weights.up.columns() / 4, classes) ||
        weights.up.rows() != 32 || weights.last.rows() != 9 * 16) [[unlikely]] {
        throw sluice::Error(name("no kernel takes maps of ") + std::to_string(in.columns()) +
                            " channels, weights of " + std::to_string(weights.up.rows()) + " rows and " +
                            std::to_string(weights.up.columns()) + " columns and of " +
                            std::to_string(weights.last.rows()) + " rows and " + std::to_string(classes) +
                            " columns");
    }
    const std::size_t side = std::size_t{1} << std::min<std::size_t>(shape.levels, 17);
    if (shape.levels < 1 || shape.levels > 16 || shape.height % side != 0 || shape.width % side != 0 ||
        shape.height == 0 || shape.width == 0 || shape.height > 1u << 16 || shape.width > 1u << 16)
        [[unlikely]] {
        throw sluice::Error(name("images of ") + std::to_string(shape.height) + " x " +
                            std::to_string(shape.width) + " pixels in an order of " +
                            std::to_string(shape.levels) +
                            " levels; expected sides up to 2^16 that the order halves, at least once");
    }
    const std::size_t pixels = shape.images * shape.height * shape.width;
    const auto require = [&](const char* rest, std::size_t actual, std::size_t expected) {
        if (actual != expected) [[unlikely]]
            require_size(name(rest).c_str(), actual, expected);
    };
    require("elements of the bias of the transposed convolution", weights.up_bias.size(), 64);
    require("elements of the last bias", weights.last_bias.size(), classes);
    require("rows of the map", in.rows(), pixels / 4);
    require("labels or predictions", labels, pixels);
    if (reinterpret_cast<std::uintptr_t>(in.data()) % 16 != 0) [[unlikely]]
        throw sluice::Error(name("the map begins at an address that is no multiple of 16 bytes"));

    const std::size_t tiles_x = ceil_div(shape.width, detail::head_core_x);
    const std::size_t tiles = tiles_x * ceil_div(shape.height, detail::head_core_y);
    if (blocks == 0 || shape.images == 0 ||
        tiles * shape.images > static_cast<std::size_t>(std::numeric_limits<int>::max())) [[unlikely]] {
        throw sluice::Error(name("") + std::to_string(tiles * shape.images) + " tiles for " +
                            std::to_string(blocks) + " blocks; expected 1 to 2^31 - 1 and at least 1");
    }
    HeadPlan plan{};
    plan.in = in.data();
    plan.up = weights.up.data();
    plan.up_bias = weights.up_bias.data();
    plan.last = weights.last.data();
    plan.last_bias = weights.last_bias.data();
    plan.height = static_cast<int>(shape.height);
    plan.width = static_cast<int>(shape.width);
    plan.classes = static_cast<int>(classes);
    plan.tile_levels = static_cast<int>(shape.levels) - 1;
    plan.tiles_x = static_cast<unsigned>(tiles_x);
    plan.tiles_of_image = static_cast<unsigned>(tiles);
    plan.tiles = static_cast<unsigned>(tiles * shape.images);
    const auto inverse = [](std::size_t divisor) {
        constexpr std::size_t whole = std::numeric_limits<unsigned>::max();
        return static_cast<unsigned>(std::min(whole, (whole + 1) / divisor));
    };
    plan.tiles_x_inverse = inverse(tiles_x);
    plan.tiles_of_image_inverse = inverse(tiles);
    return plan;
}

unsigned blocks_of(const HeadPlan& plan, std::size_t blocks) {
    return static_cast<unsigned>(std::min<std::size_t>(blocks, plan.tiles));
}

template <int Sums>
void launch(sluice::CudaStreamRef stream, const HeadPlan& plan, std::size_t blocks) {
    constexpr int bytes = static_cast<int>(sizeof(detail::HeadMemory));
    // More than 48 KiB have to be asked for. It is no work of the stream's, and takes no time worth saving.
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(detail::segmentation_head_kernel<Sums>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    detail::segmentation_head_kernel<Sums>
        <<<blocks_of(plan, blocks), dim3(detail::head_threads, 2), bytes, stream.get()>>>(plan);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace

bool segmentation_head_fits() {
    int device = 0;
    int bytes = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<std::size_t>(bytes) >= sizeof(detail::HeadMemory);
}

std::size_t segmentation_head_blocks() {
    int device = 0;
    int count = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<std::size_t>(count);
}

std::size_t segmentation_head_scratch(std::size_t blocks) { return blocks * detail::head_sums_stride; }

void segmentation_head_gradients(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                                 const SegmentationHeadWeights<const float, sluice::Cuda>& weights,
                                 Matrix<const float, sluice::Cuda> in,
                                 sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> labels,
                                 sluice::DeviceSpan<float, sluice::Cuda> in_gradient,
                                 sluice::DeviceSpan<float, sluice::Cuda> partial_sums, std::size_t blocks) {
    HeadPlan plan = checked_plan("segmentation_head_gradients", shape, weights, in, labels.size(), blocks);
    if (!in_gradient.empty())
        require_size("segmentation_head_gradients: elements of the gradient", in_gradient.size(), in.size());
    if (reinterpret_cast<std::uintptr_t>(in_gradient.data()) % 8 != 0) [[unlikely]]
        throw sluice::Error(
            "segmentation_head_gradients: the gradient begins at an address that is no multiple of 8 bytes");
    require_size("segmentation_head_gradients: elements of the sums", partial_sums.size(),
                 segmentation_head_scratch(blocks));
    plan.labels = labels.data();
    plan.in_gradient = in_gradient.data();
    plan.sums = partial_sums.data();
    plan.scale = 1.0f / (detail::head_slope_scale * static_cast<float>(labels.size()));
    if (plan.classes <= 12)
        launch<3>(stream, plan, blocks);
    else
        launch<4>(stream, plan, blocks);
}

void segmentation_head_update(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                              const SegmentationHeadWeights<float, sluice::Cuda>& weights,
                              sluice::DeviceSpan<const float, sluice::Cuda> partial_sums, std::size_t blocks,
                              sluice::DeviceSpan<const float, sluice::Cuda> factors,
                              sluice::DeviceSpan<float, sluice::Cuda> loss) {
    const std::size_t pixels = shape.images * shape.height * shape.width;
    const std::size_t rows = pixels / 4;
    // Only the number of blocks is of interest: `in` itself is not read.
    const HeadPlan plan = checked_plan(
        "segmentation_head_update", shape, {weights.up, weights.up_bias, weights.last, weights.last_bias},
        {sluice::DeviceSpan<const float, sluice::Cuda>(nullptr, rows * 32), rows, 32}, pixels, blocks);
    require_size("segmentation_head_update: elements of the sums", partial_sums.size(),
                 segmentation_head_scratch(blocks));
    require_size("segmentation_head_update: factors", factors.size(), 2);
    require_size("segmentation_head_update: elements of the loss", loss.size(), 1);
    detail::segmentation_head_update_kernel<<<(detail::head_sums + 31) / 32, detail::head_update_threads, 0,
                                              stream.get()>>>(
        partial_sums.data(), blocks_of(plan, blocks), plan.classes, factors.data(), weights.up.data(),
        weights.up_bias.data(), weights.last.data(), weights.last_bias.data(), loss.data(),
        1.0 / static_cast<double>(pixels));
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void segmentation_head_predict(sluice::CudaStreamRef stream, const SegmentationHeadShape& shape,
                               const SegmentationHeadWeights<const float, sluice::Cuda>& weights,
                               Matrix<const float, sluice::Cuda> in,
                               sluice::DeviceSpan<std::uint8_t, sluice::Cuda> predictions,
                               std::size_t blocks) {
    HeadPlan plan = checked_plan("segmentation_head_predict", shape, weights, in, predictions.size(), blocks);
    plan.predictions = predictions.data();
    launch<0>(stream, plan, blocks);
}

} // namespace nn
