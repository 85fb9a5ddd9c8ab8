/// \file
/// Label maps and boxes that move with their images, on a device. See annotations.hpp for the contract.
#pragma once

#include <augment/annotations.hpp>
#include <nn/core/ceil_div.hpp>

namespace augment {

template <class... Ops, class L>
void apply_to_labels(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                     std::type_identity_t<ParameterSource<sluice::Cuda>> parameters,
                     sluice::DeviceSpan<const L, sluice::Cuda> labels, std::type_identity_t<L> outside,
                     std::type_identity_t<sluice::DeviceSpan<L, sluice::Cuda>> out);

template <class... Ops>
void apply_to_boxes(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                    std::type_identity_t<ParameterSource<sluice::Cuda>> parameters,
                    nn::PaddedBoxes<const float, sluice::Cuda> boxes,
                    nn::PaddedBoxes<float, sluice::Cuda> out);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

inline constexpr int annotation_threads = 256;

/// A row of blocks for each image; a block prepares the image's parameters once.
template <class C, class Work>
__global__ void __launch_bounds__(annotation_threads)
    annotations_kernel(C chain, ImageShape shape, ParameterSource<sluice::Cuda> parameters, Work work) {
    __shared__ __align__(alignof(typename C::Prepared)) char bytes[sizeof(typename C::Prepared)];
    auto& prepared = *reinterpret_cast<typename C::Prepared*>(bytes);
    const int image = static_cast<int>(blockIdx.x);
    if (threadIdx.x == 0)
        chain.prepare(parameters[image], shape, prepared);
    __syncthreads();
    for (int i = static_cast<int>(blockIdx.y * annotation_threads + threadIdx.x); i < work.count();
         i += static_cast<int>(gridDim.y) * annotation_threads)
        work(chain, prepared, image, i);
}

template <class C, class Work>
void for_each_image(sluice::CudaStreamRef stream, const C& chain, ImageShape shape,
                    const ParameterSource<sluice::Cuda>& parameters, int images, const Work& work) {
    constexpr int most_blocks = 32; // for an image
    const int blocks = nn::ceil_div(work.count(), annotation_threads);
    if (blocks == 0)
        return;
    const dim3 grid(static_cast<unsigned>(images),
                    static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks));
    annotations_kernel<<<grid, annotation_threads, 0, stream.get()>>>(chain, shape, parameters, work);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace detail

template <class... Ops, class L>
void apply_to_labels(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                     std::type_identity_t<ParameterSource<sluice::Cuda>> parameters,
                     sluice::DeviceSpan<const L, sluice::Cuda> labels, std::type_identity_t<L> outside,
                     std::type_identity_t<sluice::DeviceSpan<L, sluice::Cuda>> out) {
    detail::labels_on(stream, chain, shape, parameters, labels, outside, out);
}

template <class... Ops>
void apply_to_boxes(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                    std::type_identity_t<ParameterSource<sluice::Cuda>> parameters,
                    nn::PaddedBoxes<const float, sluice::Cuda> boxes,
                    nn::PaddedBoxes<float, sluice::Cuda> out) {
    detail::boxes_on(stream, chain, shape, parameters, boxes, out);
}

} // namespace augment
