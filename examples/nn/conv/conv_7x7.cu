#include <nn/conv/conv_7x7.hpp>

#include <algorithm>
#include <limits>

#include <nn/conv/detail/conv_7x7_forward.cuh>
#include <nn/conv/detail/conv_7x7_gradient.cuh>
#include <nn/core/ceil_div.hpp>

namespace nn {
namespace {

namespace kernels = detail::conv_7x7;
using kernels::Strips;

/// As many blocks as run at the same time: one a multiprocessor.
unsigned blocks_at_once() {
    int device = 0, count = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<unsigned>(count);
}

template <class T>
auto bits_of(sluice::DeviceSpan<T, sluice::Cuda> numbers) {
    using Bits = std::conditional_t<std::is_const_v<T>, const std::uint16_t, std::uint16_t>;
    return reinterpret_cast<Bits*>(numbers.data());
}

Strips strips_of(const char* function, const Conv2dShape& shape, std::size_t rows,
                 sluice::DeviceSpan<const Half, sluice::Cuda> in, std::size_t weights, std::size_t out,
                 std::size_t scratch) {
    if (!supports_conv_7x7(shape))
        throw sluice::Error(std::string(function) + ": no kernel takes " + to_string(shape));
    require_conv2d_sizes(shape, in.size(), weights, out);
    if (scratch < conv_7x7_scratch()) {
        throw sluice::Error(std::string(function) + ": " + std::to_string(scratch) +
                            " floats of scratch memory; expected " + std::to_string(conv_7x7_scratch()));
    }
    const std::size_t of_image = ceil_div(shape.out_height(), rows);
    const std::size_t count = shape.images * of_image;
    if (count > std::numeric_limits<int>::max() / 2)
        throw sluice::Error(std::string(function) + ": too many images, " + std::to_string(shape.images));
    return {bits_of(in), static_cast<int>(shape.out_height()), static_cast<int>(shape.out_width()),
            static_cast<int>(of_image), static_cast<int>(count)};
}

/// More than 48 KiB of shared memory have to be asked for.
template <class Kernel>
void allow_memory(Kernel* kernel, unsigned bytes) {
    SLUICE_CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

} // namespace

std::size_t conv_7x7_scratch() { return std::size_t{blocks_at_once()} * kernels::channels * kernels::patch; }

void conv_7x7_sums(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                   sluice::DeviceSpan<const Half, sluice::Cuda> in,
                   sluice::DeviceSpan<const Half, sluice::Cuda> weights,
                   sluice::DeviceSpan<Half, sluice::Cuda> out, sluice::DeviceSpan<float, sluice::Cuda> sums,
                   sluice::DeviceSpan<float, sluice::Cuda> scratch) {
    const Strips strips = strips_of("conv_7x7_sums", shape, kernels::forward_rows, in, weights.size(),
                                    out.size(), scratch.size());
    require_size("conv_7x7_sums: sums", sums.size(), 2 * kernels::channels);
    const unsigned blocks = std::min(blocks_at_once(), static_cast<unsigned>(strips.count));
    const auto bytes = static_cast<unsigned>(2 * kernels::forward_stage(strips.width));
    allow_memory(kernels::forward_kernel, bytes);
    kernels::forward_kernel<<<blocks, kernels::threads, bytes, stream.get()>>>(strips, bits_of(weights),
                                                                               bits_of(out), scratch.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    kernels::add_sums_kernel<<<1, 2 * kernels::channels, 0, stream.get()>>>(scratch.data(), blocks,
                                                                            sums.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

void conv_7x7_weight_gradient(sluice::CudaStreamRef stream, const Conv2dShape& shape,
                              sluice::DeviceSpan<const Half, sluice::Cuda> in,
                              sluice::DeviceSpan<const Half, sluice::Cuda> out_gradient,
                              sluice::DeviceSpan<Half, sluice::Cuda> weight_gradient,
                              sluice::DeviceSpan<float, sluice::Cuda> scratch) {
    const Strips strips = strips_of("conv_7x7_weight_gradient", shape, kernels::gradient_rows, in,
                                    weight_gradient.size(), out_gradient.size(), scratch.size());
    const unsigned blocks = std::min(blocks_at_once(), static_cast<unsigned>(strips.count));
    const auto bytes = static_cast<unsigned>(
        std::max(2 * 16 * kernels::gradient_stage(strips.width), kernels::gradient_exchange));
    allow_memory(kernels::weight_gradient_kernel, bytes);
    kernels::weight_gradient_kernel<<<blocks, kernels::threads, bytes, stream.get()>>>(
        strips, bits_of(out_gradient), scratch.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    kernels::add_weight_gradients_kernel<<<kernels::channels * 7, kernels::threads, 0, stream.get()>>>(
        scratch.data(), blocks, bits_of(weight_gradient));
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace nn
