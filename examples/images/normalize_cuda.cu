// Normalising on a GPU.
#include <images/detail/normalize.cuh>
#include <nn/core/ceil_div.hpp>

namespace images {
namespace {

using sluice::Cuda;
using In = Images<const std::uint8_t, Cuda>;

template <class Out>
bool in_groups(const In& in, const Images<Out, Cuda>& out) {
    return detail::aligned(in.data(), sizeof(detail::GroupBytes<Out>)) && detail::aligned(out.data(), 16);
}

/// Where the layout stays: whole groups, and one by one what is left.
template <class Out>
void launch_same_layout(sluice::CudaStreamRef stream, const Normalize& normalize, const In& in,
                        const Images<Out, Cuda>& out, std::size_t numbers) {
    constexpr auto size = static_cast<std::size_t>(detail::group_size<Out>);
    const std::size_t groups = in_groups(in, out) ? numbers / size : 0;
    if (groups > 0) {
        const std::size_t blocks = nn::ceil_div(groups, detail::normalize_threads * detail::groups_a_thread);
        detail::normalize_kernel<<<detail::block_count(blocks), detail::normalize_threads, 0, stream.get()>>>(
            in.data(), out.data(), groups, normalize);
    }
    if (const std::size_t begin = groups * size; begin < numbers) {
        const std::size_t blocks = nn::ceil_div(numbers - begin, detail::normalize_threads);
        detail::normalize_each_kernel<<<detail::block_count(blocks), detail::normalize_threads, 0,
                                        stream.get()>>>(in.data(), out.data(), begin, numbers, 1, 1, false,
                                                        normalize);
    }
}

template <class Out>
void launch_deinterleave(sluice::CudaStreamRef stream, const Normalize& normalize, const In& in,
                         const Images<Out, Cuda>& out, std::size_t numbers) {
    const ImageShape shape = in.shape();
    const std::size_t pixels = static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
    constexpr auto size = static_cast<std::size_t>(detail::group_size<Out>);
    if (shape.channels == 3 && pixels % size == 0 && in_groups(in, out)) {
        const std::size_t groups = pixels / size;
        const std::size_t blocks = nn::ceil_div(groups, detail::normalize_threads);
        detail::deinterleave_kernel<<<detail::block_count(static_cast<std::size_t>(in.count()) * blocks),
                                      detail::normalize_threads, 0, stream.get()>>>(
            in.data(), out.data(), static_cast<unsigned>(groups), static_cast<unsigned>(blocks), normalize);
        return;
    }
    const std::size_t blocks = nn::ceil_div(numbers, detail::normalize_threads);
    detail::
        normalize_each_kernel<<<detail::block_count(blocks), detail::normalize_threads, 0, stream.get()>>>(
            in.data(), out.data(), 0, numbers, static_cast<unsigned>(shape.channels), pixels, true,
            normalize);
}

template <class Out>
void launch_pad(sluice::CudaStreamRef stream, const Normalize& normalize, const In& in,
                const Images<Out, Cuda>& out, std::size_t pixels) {
    const auto pad = [&]<unsigned stored>(std::integral_constant<unsigned, stored>) {
        const std::size_t threads =
            stored > 0 ? pixels : pixels * static_cast<std::size_t>(out.shape().channels);
        const std::size_t blocks = nn::ceil_div(threads, detail::normalize_threads);
        detail::pad_kernel<stored>
            <<<detail::block_count(blocks), detail::normalize_threads, 0, stream.get()>>>(
                in.data(), out.data(), threads, static_cast<unsigned>(in.shape().channels),
                static_cast<unsigned>(out.shape().channels), normalize);
    };
    const bool is_aligned = detail::aligned(out.data(), 16);
    if (is_aligned && out.shape().channels == 4) {
        pad(std::integral_constant<unsigned, 4>{});
    } else if (is_aligned && out.shape().channels == 8) {
        pad(std::integral_constant<unsigned, 8>{});
    } else {
        pad(std::integral_constant<unsigned, 0>{});
    }
}

} // namespace

template <sluice::Backend B, class Out>
void normalize(sluice::BasicStreamRef<B> stream, const Normalize& normalize,
               std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out) {
    detail::require_normalizable(in, out);
    const ImageShape shape = in.shape();
    const std::size_t pixels = static_cast<std::size_t>(in.count()) * static_cast<std::size_t>(shape.height) *
                               static_cast<std::size_t>(shape.width);
    const std::size_t numbers = pixels * static_cast<std::size_t>(shape.channels);
    if (out.shape().channels > shape.channels) {
        launch_pad(stream, normalize, in, out, pixels);
    } else if (in.layout() == out.layout()) {
        launch_same_layout(stream, normalize, in, out, numbers);
    } else {
        launch_deinterleave(stream, normalize, in, out, numbers);
    }
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template void normalize(sluice::CudaStreamRef, const Normalize&, In, Images<float, Cuda>);
template void normalize(sluice::CudaStreamRef, const Normalize&, In, Images<nn::Half, Cuda>);

} // namespace images
