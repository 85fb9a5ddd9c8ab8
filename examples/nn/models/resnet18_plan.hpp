/// \file
/// What ResNet-18 is made of: the sizes of its convolutions, their names in torchvision, where their weights lie, and what
/// the weights are at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nn/conv/conv2d.hpp>
#include <nn/elementwise/maps.hpp>
#include <nn/layers/layer_shape.hpp>
#include <nn/norm/batch_norm.hpp>

namespace nn {

/// What a ResNet-18 is made for. The defaults are torchvision's network.
struct ResNet18Options {
    std::size_t height = 224;
    std::size_t width = 224;
    std::size_t image_channels = 3;
    /// Channels of a pixel as images store them: at least `image_channels`, the others 0. Tensor Cores take 4 or 8 faster
    /// than 3. 0 for `image_channels`.
    std::size_t stored_channels = 0;
    std::size_t base_channels = 64; ///< of the first stage; the last has eight times as many
    std::size_t classes = 1000;
    std::size_t batch = 1; ///< the most images a call takes
    bool trainable = true; ///< otherwise there is memory for inference only
    float learning_rate = 1e-3f;
    float momentum = 0.9f;
    /// Multiplies the loss's gradient and divides the weights', to keep float16 gradients from vanishing.
    float loss_scale = 1.0f;
    BatchNormOptions batch_norm = {};
    /// Lets convolutions sum what batch normalisation needs of their outputs, where the implementation can.
    bool fuse_statistics = false;
    Conv2dOptions convolution = {};
    std::uint64_t seed = 0; ///< of the first weights
};

/// A convolution and the batch normalisation after it.
struct ResNetConv {
    std::string name;      ///< for example "layer2.0.downsample.0"
    std::string norm_name; ///< for example "layer2.0.downsample.1"
    Conv2dShape shape;     ///< for one image
    std::size_t weight_offset = 0;
    std::size_t channel_offset = 0;
};

/// Two convolutions of 3×3 with a residual around them; `convs()` indices.
struct ResNetBlock {
    static constexpr std::size_t none = SIZE_MAX;

    std::size_t first = 0;
    std::size_t second = 0;
    std::size_t downsample = none; ///< of the residual; `none` where it is the block's input itself
};

/// The network's structure. All weights lie in one buffer, and so do the elements of all batch normalisations; each
/// begins at a multiple of 64 elements.
class ResNet18Plan {
public:
    /// Throws `sluice::Error` when an option is 0 or images are too small.
    explicit ResNet18Plan(const ResNet18Options& options);

    /// 20 convolutions in the order of torchvision's `state_dict`, the first of which is that of the images.
    const std::vector<ResNetConv>& convs() const noexcept { return convs_; }
    const std::vector<ResNetBlock>& blocks() const noexcept { return blocks_; }
    const ResNetConv& stem() const noexcept { return convs_.front(); }
    /// The linear layer, as a convolution of one pixel. Its bias follows the batch normalisations' biases.
    const ResNetConv& head() const noexcept { return head_; }

    MapShape stem_map() const noexcept;     ///< before the max pool
    MapShape features_map() const noexcept; ///< before the average pool
    /// Elements of all weights, and of one of the batch normalisations' members.
    std::size_t weight_size() const noexcept { return weight_size_; }
    std::size_t channel_size() const noexcept { return channel_size_; }
    /// Weights and biases of batch normalisations, then the head's bias.
    std::size_t parameter_size() const noexcept {
        return 2 * channel_size_ + padded(head_.shape.out_channels);
    }
    /// Elements of an image's largest map after the max pool, inputs and outputs of convolutions.
    std::size_t largest_map() const noexcept { return largest_map_; }
    std::size_t image_size() const noexcept { return stem().shape.in_size(); }

    /// torchvision's shape of a convolution's weight, or of the head's.
    std::vector<std::size_t> torch_shape(const ResNetConv& conv) const;
    /// A weight as torchvision lays it out, [Co, C, k, k], from ours, [Co, k, k, stored C], and the reverse.
    std::vector<float> torch_weight(const ResNetConv& conv, std::span<const float> weight) const;
    std::vector<float> own_weight(const ResNetConv& conv, std::span<const float> torch) const;

    /// The first weights: He's for convolutions, normal with a variance of 2 / (outputs · k · k), and for the head uniform
    /// within ±1 / sqrt(inputs), its bias too. Counted random numbers: the same wherever they are drawn.
    std::vector<float> first_weights(std::uint64_t seed) const;
    /// 1 and 0 for the batch normalisations, and the head's bias.
    std::vector<float> first_parameters(std::uint64_t seed) const;

private:
    static constexpr std::size_t padded(std::size_t size) { return (size + 63) / 64 * 64; }
    std::size_t add(const std::string& name, const std::string& norm_name, const Conv2dShape& shape);
    void add_block(const std::string& name, const Conv2dShape& first);
    std::size_t used_channels(const ResNetConv& conv) const {
        return &conv == &convs_.front() ? image_channels_ : conv.shape.in_channels;
    }

    std::vector<ResNetConv> convs_;
    std::vector<ResNetBlock> blocks_;
    ResNetConv head_;
    std::size_t image_channels_ = 0;
    std::size_t weight_size_ = 0;
    std::size_t channel_size_ = 0;
    std::size_t largest_map_ = 0;
};

} // namespace nn
