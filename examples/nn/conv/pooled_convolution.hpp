/// \file
/// A 3×3 convolution, padding 1, with a 2×2 max pool and ReLU after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nn/conv/conv_backward.hpp>
#include <nn/conv/conv_fprop.hpp>
#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/layers/mixed_layer.hpp>

namespace nn {

/// Scratch memory that the convolutions of a network share.
template <class T, sluice::Backend B>
struct ConvolutionWorkspace {
    sluice::DeviceBuffer<T, B> patches;
    sluice::DeviceBuffer<T, B> convolved;
    sluice::DeviceBuffer<float, B> weight_gradients;
    sluice::DeviceBuffer<float, B> bias_gradients;
    sluice::DeviceBuffer<std::uint32_t, B> routes;
    sluice::DeviceBuffer<double, B> scratch;

    /// Elements of each.
    struct Sizes {
        std::size_t patches = 0, convolved = 0, weight_gradients = 0, bias_gradients = 0, routes = 0,
                    scratch = 0;
    };
    explicit ConvolutionWorkspace(const Sizes& sizes)
        : patches(sizes.patches), convolved(sizes.convolved), weight_gradients(sizes.weight_gradients),
          bias_gradients(sizes.bias_gradients), routes(sizes.routes), scratch(sizes.scratch) {}
};

/// Maps [N, H, W, C], or grey images of bytes, to maps [N, H / 2, W / 2, Co] of elements `T`.
///
/// Fused kernels compute it where they support the sizes (see conv_fprop.hpp and conv_backward.hpp). Otherwise the
/// neighbourhoods of a few images at a time are gathered into patches, which are multiplied with the weights. The backward
/// pass finds the greatest element of each pool again, unless `forward` was given room to store it.
template <class T, sluice::Backend B>
class PooledConvolution {
public:
    using Workspace = ConvolutionWorkspace<T, B>;

    /// From maps of the shape `in`, at most `batch` of them. `images`: from bytes, which are multiplied with `scale`.
    PooledConvolution(const MapShape& in, std::size_t outputs, std::size_t batch, bool images, float scale,
                      const sluice::RandomKey& key);

    const MapShape& in() const noexcept { return in_; }
    MapShape out() const noexcept { return {in_.height / 2, in_.width / 2, layer_.shape().outputs()}; }

    /// What it needs of a workspace.
    typename Workspace::Sizes workspace_sizes() const;

    /// The words in which a forward pass of so many images stores the pools' routes for the backward pass; 0 where it does
    /// not.
    std::size_t kept_words(std::size_t images) const {
        return fused_back_ && in_.channels != 1 ? route_words(images * out().size()) : 0;
    }

    /// From maps, `From` is `T`, or images, `From` is a byte. `kept` has `kept_words`, or none.
    template <class From>
    void forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, sluice::DeviceSpan<const From, B> maps,
                 sluice::DeviceSpan<T, B> pooled, Workspace& workspace,
                 sluice::DeviceSpan<std::uint32_t, B> kept = {}) const;

    /// The gradient of `maps`, unless `gradient` is empty, and then one step of gradient descent (see Layer::update).
    /// `maps`, `pooled` and `kept` are what the latest forward had; `pooled_gradient` is overwritten.
    template <class From>
    void backward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, sluice::DeviceSpan<const From, B> maps,
                  sluice::DeviceSpan<const T, B> pooled, sluice::DeviceSpan<T, B> pooled_gradient,
                  sluice::DeviceSpan<T, B> gradient, sluice::DeviceSpan<const float, B> factors,
                  Workspace& workspace, sluice::DeviceSpan<const std::uint32_t, B> kept = {});

    /// As Layer's.
    void save(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::vector<NamedTensor>& tensors) const {
        layer_.save(stream, name, tensors);
    }
    void load(sluice::BasicStreamRef<B> stream, const std::string& name,
              std::span<const NamedTensor> tensors);

private:
    /// Bytes of patches and convolved maps in memory at a time.
    static constexpr std::size_t chunk_bytes = std::size_t{64} << 20;
    /// Elements of weight gradients: each of a few images' own, which are added up at the end.
    static constexpr std::size_t gradient_elements = std::size_t{1} << 24;

    std::size_t patch_size() const { return 9 * in_.size(); }
    std::size_t convolved_size() const { return in_.pixels() * layer_.shape().outputs(); }
    std::size_t weights_size() const { return 9 * in_.channels * layer_.shape().outputs(); }
    MapShape convolved_shape() const { return {in_.height, in_.width, layer_.shape().outputs()}; }
    Matrix<T, B> patches(Workspace& workspace, std::size_t first, std::size_t images) const {
        return {workspace.patches.span().subspan(first * patch_size(), images * patch_size()),
                images * in_.pixels(), 9 * in_.channels};
    }
    Matrix<T, B> convolved(Workspace& workspace, std::size_t first, std::size_t images) const {
        return {workspace.convolved.span().subspan(first * convolved_size(), images * convolved_size()),
                images * in_.pixels(), layer_.shape().outputs()};
    }

    void gather(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const std::uint8_t, B> images,
                Matrix<T, B> patches) const {
        gather_patches<T>(stream, images, in_, scale_, patches);
    }
    void gather(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> maps,
                Matrix<T, B> patches) const {
        gather_patches<T>(stream, maps, in_, patches);
    }
    /// The convolution of whole images before the bias, from patches that it leaves in the workspace.
    template <class From>
    Matrix<T, B> convolve(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                          sluice::DeviceSpan<const From, B> maps, Workspace& workspace) const {
        const std::size_t images = maps.size() / in_.size();
        const Matrix<T, B> rows = patches(workspace, 0, images);
        const Matrix<T, B> result = convolved(workspace, 0, images);
        gather(stream, maps, rows);
        gemm.multiply(stream, rows, layer_.factors(), result);
        return result;
    }
    void gather_weight_gradients(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm, std::size_t images,
                                 std::size_t first_part, Workspace& workspace) const;
    void pack(sluice::BasicStreamRef<B> stream);
    template <class From>
    void backward_fused(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const From, B> maps,
                        sluice::DeviceSpan<const T, B> pooled_gradient, sluice::DeviceSpan<T, B> gradient,
                        sluice::DeviceSpan<const float, B> factors, Workspace& workspace,
                        sluice::DeviceSpan<const std::uint32_t, B> kept);

    MapShape in_;
    MixedLayer<T, B> layer_;
    float scale_;
    bool fused_; // the forward pass
    bool fused_back_;
    std::size_t part_images_;  // whose weight gradient is one product
    std::size_t chunk_images_; // whose patches are there at once; a multiple of the former
    std::size_t batch_;
    sluice::DeviceBuffer<std::uint32_t, B> packed_;  // weights for the fused forward pass
    sluice::DeviceBuffer<std::uint32_t, B> flipped_; // for the fused backward pass
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, sluice::Backend B>
PooledConvolution<T, B>::PooledConvolution(const MapShape& in, std::size_t outputs, std::size_t batch,
                                           bool images, float scale, const sluice::RandomKey& key)
    : in_(in), layer_(LayerShape::convolution(in.channels, outputs, 3), key), scale_(scale),
      fused_(has_conv_fprop<T, B> && images == (in.channels == 1) &&
             supports_conv_fprop(in.channels, outputs)),
      fused_back_(fused_ && supports_conv_backward(in.channels, outputs)), batch_(batch) {
    if constexpr (has_conv_fprop<T, B>)
        fused_back_ = fused_back_ && device_supports_conv_backward(in.channels);
    require_even_sides("convolution", in);
    const std::size_t parts = std::clamp<std::size_t>(gradient_elements / weights_size(), 1, batch);
    part_images_ = ceil_div(batch, parts);
    const std::size_t image_bytes = (patch_size() + convolved_size()) * sizeof(T);
    const std::size_t chunk = std::clamp<std::size_t>(chunk_bytes / image_bytes, 1, batch);
    chunk_images_ = std::max<std::size_t>(chunk / part_images_, 1) * part_images_;
    if constexpr (has_conv_fprop<T, B>) {
        if (fused_)
            packed_ = sluice::DeviceBuffer<std::uint32_t, B>(packed_weight_words(in.channels, outputs));
        if (fused_back_)
            flipped_ = sluice::DeviceBuffer<std::uint32_t, B>(flipped_weight_words(in.channels, outputs));
    }
    on_own_stream<B>([&](sluice::BasicStreamRef<B> stream) { pack(stream); });
}

template <class T, sluice::Backend B>
void PooledConvolution<T, B>::pack(sluice::BasicStreamRef<B> stream) {
    if constexpr (has_conv_fprop<T, B>) {
        if (fused_ && !packed_.empty())
            pack_weights(stream, layer_.weights(), packed_);
        if (fused_back_ && !flipped_.empty())
            pack_flipped_weights(stream, layer_.weights(), flipped_);
    }
}

template <class T, sluice::Backend B>
auto PooledConvolution<T, B>::workspace_sizes() const -> typename Workspace::Sizes {
    if (fused_back_) {
        const std::size_t outputs = layer_.shape().outputs();
        const std::size_t parts = gradient_parts(in_.channels, outputs);
        return {.weight_gradients = parts * weights_size(),
                .bias_gradients = parts * outputs,
                .routes = kept_words(batch_),
                .scratch = std::max(sum_scratch(parts, weights_size()), sum_scratch(parts, outputs))};
    }
    const std::size_t chunk = std::min(chunk_images_, batch_);
    const std::size_t parts = ceil_div(batch_, part_images_);
    return {.patches = chunk * patch_size(),
            .convolved = chunk * convolved_size(),
            .weight_gradients = parts * weights_size(),
            .scratch = std::max(layer_.scratch_size(batch_ * convolved_size() / 4),
                                sum_scratch(parts, weights_size()))};
}

template <class T, sluice::Backend B>
template <class From>
void PooledConvolution<T, B>::forward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                                      sluice::DeviceSpan<const From, B> maps, sluice::DeviceSpan<T, B> pooled,
                                      Workspace& workspace, sluice::DeviceSpan<std::uint32_t, B> kept) const {
    if constexpr (has_conv_fprop<T, B>) {
        if (fused_) {
            if constexpr (std::is_same_v<From, T>)
                conv_fprop(stream, maps, in_, packed_, layer_.bias(), pooled, kept);
            else
                conv_fprop(stream, maps, in_, scale_, layer_.weights(), layer_.bias(), pooled);
            return;
        }
    }
    const std::size_t count = require_maps("convolution", in_, maps.size());
    for (std::size_t first = 0; first < count; first += chunk_images_) {
        const std::size_t images = std::min(chunk_images_, count - first);
        const Matrix<T, B> result =
            convolve(stream, gemm, maps.subspan(first * in_.size(), images * in_.size()), workspace);
        pool_relu<T>(stream, result.span(), convolved_shape(), layer_.bias(),
                     pooled.subspan(first * out().size(), images * out().size()));
    }
}

template <class T, sluice::Backend B>
template <class From>
void PooledConvolution<T, B>::backward(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                                       sluice::DeviceSpan<const From, B> maps,
                                       sluice::DeviceSpan<const T, B> pooled,
                                       sluice::DeviceSpan<T, B> pooled_gradient,
                                       sluice::DeviceSpan<T, B> gradient,
                                       sluice::DeviceSpan<const float, B> factors, Workspace& workspace,
                                       sluice::DeviceSpan<const std::uint32_t, B> kept) {
    if constexpr (has_conv_fprop<T, B>) {
        if (fused_back_) {
            backward_fused(stream, maps, pooled_gradient, gradient, factors, workspace, kept);
            return;
        }
    }
    const std::size_t count = require_maps("convolution", in_, maps.size());
    const std::size_t outputs = layer_.shape().outputs();
    relu_gradient(stream, pooled, pooled_gradient);
    // All that the pools pass on comes from the bias once; and the same element is the greatest with it or without.
    layer_.update_bias(stream, Matrix<T, B>{pooled_gradient, pooled_gradient.size() / outputs, outputs},
                       factors, workspace.scratch);
    for (std::size_t first = 0; first < count; first += chunk_images_) {
        const std::size_t images = std::min(chunk_images_, count - first);
        const Matrix<T, B> result =
            convolve(stream, gemm, maps.subspan(first * in_.size(), images * in_.size()), workspace);
        unpool_gradient<T>(stream, pooled_gradient.subspan(first * out().size(), images * out().size()),
                           convolved_shape(), result.span());
        gather_weight_gradients(stream, gemm, images, first / part_images_, workspace);
        if (!gradient.empty()) {
            const Matrix<T, B> rows = patches(workspace, 0, images);
            gemm.multiply(stream, result, layer_.factors(), rows, {.transpose_b = true});
            sum_patches<T>(stream, rows, in_, gradient.subspan(first * in_.size(), images * in_.size()));
        }
    }
    const std::size_t parts = ceil_div(count, part_images_);
    layer_.update_weights(
        stream, {workspace.weight_gradients.span().first(parts * weights_size()), parts, weights_size()},
        factors, workspace.scratch);
    pack(stream);
}

template <class T, sluice::Backend B>
template <class From>
void PooledConvolution<T, B>::backward_fused(sluice::BasicStreamRef<B> stream,
                                             sluice::DeviceSpan<const From, B> maps,
                                             sluice::DeviceSpan<const T, B> pooled_gradient,
                                             sluice::DeviceSpan<T, B> gradient,
                                             sluice::DeviceSpan<const float, B> factors, Workspace& workspace,
                                             sluice::DeviceSpan<const std::uint32_t, B> kept) {
    const std::size_t outputs = layer_.shape().outputs();
    const std::size_t parts = gradient_parts(in_.channels, outputs);
    const Matrix<float, B> weight_parts{workspace.weight_gradients.span().first(parts * weights_size()),
                                        parts, weights_size()};
    const Matrix<float, B> bias_parts{workspace.bias_gradients.span().first(parts * outputs), parts, outputs};
    if constexpr (std::is_same_v<From, T>) {
        sluice::DeviceSpan<const std::uint32_t, B> routes = kept;
        if (kept.empty()) {
            const auto found = workspace.routes.span().first(route_words(pooled_gradient.size()));
            conv_fprop(stream, maps, in_, packed_, layer_.bias(), {}, found);
            routes = found;
        }
        if (!gradient.empty())
            conv_dgrad(stream, pooled_gradient, routes, in_, outputs, flipped_, gradient);
        conv_wgrad(stream, maps, in_, pooled_gradient, routes, outputs, weight_parts, bias_parts);
    } else {
        conv_wgrad(stream, maps, in_, scale_, layer_.weights(), layer_.bias(), pooled_gradient, weight_parts,
                   bias_parts);
    }
    layer_.update_bias(stream, bias_parts, factors, workspace.scratch);
    layer_.update_weights(stream, weight_parts, factors, workspace.scratch);
    pack(stream);
}

/// The gradients of the parts that the workspace holds patches of. Many short sums, and their sum, instead of one
/// that is longer than any other side of the product: it keeps a whole device busy, and loses less to rounding.
template <class T, sluice::Backend B>
void PooledConvolution<T, B>::gather_weight_gradients(sluice::BasicStreamRef<B> stream, Gemm<B>& gemm,
                                                      std::size_t images, std::size_t first_part,
                                                      Workspace& workspace) const {
    const std::size_t whole = images / part_images_;
    const std::size_t rest = images - whole * part_images_;
    const auto multiply = [&](std::size_t first, std::size_t count, std::size_t part, std::size_t parts) {
        const Matrix<float, B> out{
            workspace.weight_gradients.span().subspan(part * weights_size(), parts * weights_size()),
            parts * layer_.shape().rows(), layer_.shape().outputs()};
        gemm.multiply(stream, patches(workspace, first, count), convolved(workspace, first, count), out,
                      {.transpose_a = true, .parts = parts});
    };
    if (whole > 0)
        multiply(0, whole * part_images_, first_part, whole);
    if (rest > 0)
        multiply(whole * part_images_, rest, first_part + whole, 1);
}

template <class T, sluice::Backend B>
void PooledConvolution<T, B>::load(sluice::BasicStreamRef<B> stream, const std::string& name,
                                   std::span<const NamedTensor> tensors) {
    layer_.load(stream, name, tensors);
    pack(stream);
    stream.sync();
}

} // namespace nn
