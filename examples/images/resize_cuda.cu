// Resizing on a GPU.
#include <images/detail/resize.cuh>
#include <nn/core/ceil_div.hpp>

namespace images {
namespace {

using sluice::Cuda;
using In = Images<const std::uint8_t, Cuda>;

detail::AxisView view_of(const AxisWeights& axis, const std::int32_t* words) {
    const detail::AxisTable table(axis);
    const std::int32_t* first = words + table.first;
    return {axis.in,
            axis.out,
            axis.taps,
            0,
            first,
            first + axis.out,
            first + 2 * axis.out,
            table.pairs ? reinterpret_cast<const int2*>(words) : nullptr};
}

template <class Out, Layout layout>
void launch(sluice::CudaStreamRef stream, const Resize<Cuda>& resize, const In& in,
            const Images<Out, Cuda>& out, const Normalize& normalize) {
    const BilinearWeights& weights = resize.weights();
    const std::int32_t* words = resize.tables().data();
    const detail::AxisView down = view_of(weights.down(), words);
    const detail::AxisView across =
        view_of(weights.across(), words + detail::AxisTable(weights.down()).words);
    const detail::ResizeTarget<Out> target{out.data(), normalize};
    const auto images = static_cast<std::size_t>(in.count());
    const int row = layout == Layout::interleaved ? detail::channels * across.out : across.out;
    if (down.pairs != nullptr && across.pairs != nullptr && row % detail::group_size<Out> == 0 &&
        detail::aligned(out.data(), 16)) {
        const int groups = detail::channels * across.out / detail::group_size<Out>;
        const auto threads = static_cast<std::size_t>(groups) *
                             static_cast<std::size_t>(nn::ceil_div(down.out, detail::enlarge_rows));
        const std::size_t blocks = nn::ceil_div(threads, detail::enlarge_threads);
        detail::enlarge_kernel<Out, layout>
            <<<detail::block_count(images * blocks), detail::enlarge_threads, 0, stream.get()>>>(
                in.data(), target, down, across, groups, static_cast<unsigned>(blocks));
    } else {
        constexpr unsigned threads = 256;
        const std::size_t numbers =
            static_cast<std::size_t>(detail::channels * down.out) * static_cast<std::size_t>(across.out);
        const std::size_t blocks = nn::ceil_div(numbers, threads);
        detail::resize_kernel<Out, layout>
            <<<detail::block_count(images * blocks), threads, 0, stream.get()>>>(
                in.data(), target, down, across, static_cast<unsigned>(blocks));
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace

template <sluice::Backend B, class Out>
void resize(sluice::BasicStreamRef<B> stream, const Resize<B>& resize,
            std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out,
            const Normalize& normalize) {
    detail::require_resizable(resize.weights(), in, out);
    if (out.layout() == Layout::interleaved) {
        launch<Out, Layout::interleaved>(stream, resize, in, out, normalize);
    } else {
        launch<Out, Layout::planar>(stream, resize, in, out, normalize);
    }
}

template void resize(sluice::CudaStreamRef, const Resize<Cuda>&, In, Images<std::uint8_t, Cuda>,
                     const Normalize&);
template void resize(sluice::CudaStreamRef, const Resize<Cuda>&, In, Images<float, Cuda>, const Normalize&);
template void resize(sluice::CudaStreamRef, const Resize<Cuda>&, In, Images<nn::Half, Cuda>,
                     const Normalize&);

} // namespace images
