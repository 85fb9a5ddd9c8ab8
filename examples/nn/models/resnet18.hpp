/// \file
/// ResNet-18 as torchvision defines it: trained, and run with its batch normalisations folded into the convolutions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <nn/conv/conv2d.hpp>
#include <nn/conv/conv_7x7.hpp>
#include <nn/core/device.hpp>
#include <nn/elementwise/sums.hpp>
#include <nn/layers/layer.hpp>
#include <nn/losses/cross_entropy_wide.hpp>
#include <nn/models/resnet18_plan.hpp>
#include <nn/norm/batch_norm.hpp>
#include <nn/optimizer/sgd.hpp>
#include <nn/pool/pool.hpp>
#include <sluice/collective/collectives.hpp>
#include <sluice/graph/device_scalar.hpp>

namespace nn {

/// Whether an implementation of convolutions can sum its output's channels as it goes (see CudnnConv2d).
template <class Conv>
inline constexpr bool has_forward_sums = requires {
    &Conv::forward_sums;
};

/// Weights, gradients and activations, planned once. `Conv` computes the convolutions (see PatchConv2d); its `value_type`
/// `T`, float or Half, is that of images, activations and gradients. Weights are float32; with Half there is a rounded
/// copy for the convolutions. Statistics, parameters of batch normalisations, logits and losses are float32.
///
/// The first convolution of a training step has kernels of its own where these take it (see conv_7x7.hpp).
///
/// Images are [N, H, W, C], channels last, with `stored_channels` channels. The first call with a number of images may make
/// plans for it (see CudnnConv2d), which allocates and waits; after that a call neither allocates nor waits, and can be
/// captured. An object is driven by one thread and one stream at a time.
template <sluice::Backend B, class Conv = PatchConv2d<B>>
class ResNet18 {
public:
    using T = typename Conv::value_type;

    /// First weights from `options.seed`. Throws `sluice::Error` when an option is out of its bounds, or there is not enough
    /// memory.
    explicit ResNet18(const ResNet18Options& options);

    const ResNet18Options& options() const noexcept { return options_; }
    const ResNet18Plan& plan() const noexcept { return plan_; }
    Conv& convolution() noexcept { return conv_; }
    std::size_t image_size() const noexcept { return plan_.image_size(); }

    /// Makes what the forward passes of batches of `images` images need.
    void prepare(std::size_t images);

    /// One step of gradient descent with momentum on `images` and their labels (`std::int32_t` or `std::uint8_t`). Writes
    /// the mean loss from before the step to the one element of `loss`. Batch normalisations use the batch's statistics and
    /// move the running ones. The gradients, not the loss, are multiplied with `share`, one element, if it is given: for ranks
    /// whose batches differ in size. Throws `sluice::Error` when a size does not fit or the network is not trainable.
    template <class Label>
    void train_step(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                    sluice::DeviceSpan<const Label, B> labels, sluice::DeviceSpan<float, B> loss,
                    sluice::DeviceSpan<const float, B> share = {});

    /// The parts of a step: forward pass with the loss, backward pass, update. In this order, with the same images.
    template <class Label>
    void forward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                 sluice::DeviceSpan<const Label, B> labels, sluice::DeviceSpan<float, B> loss,
                 sluice::DeviceSpan<const float, B> share = {});
    void backward(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images);
    void update(sluice::BasicStreamRef<B> stream);

    /// From now on `backward` makes the gradients the average of all ranks', which all call it equally often: buckets of
    /// `bucket_bytes` as soon as they are complete, on a stream of its own, while it goes on with earlier layers. Ranks weigh the
    /// same; where their batches differ in size, each gives its part of all images, times the ranks, as the step's `share`. Batch normalisations use the
    /// rank's own batch, and running statistics stay the rank's own (see `share_statistics`). The communicator outlives the
    /// network, is of its device and serves nothing else while steps are taken.
    void average_gradients_over(const sluice::Communicator<B>& communicator,
                                std::size_t bucket_bytes = std::size_t{4} << 20);
    /// Replaces the running statistics by those of rank 0; all ranks call it.
    void share_statistics(sluice::BasicStreamRef<B> stream, const sluice::Communicator<B>& communicator);

    /// Sets the gradients to 0. No step needs it, since the backward pass writes them anew; a loop that adds gradients up
    /// would.
    void zero_gradients(sluice::BasicStreamRef<B> stream);

    /// The logits [N, classes] by the running statistics, nothing folded: torchvision's network after `eval()`. For networks
    /// made trainable; `infer` gives the same but for rounding.
    void evaluate(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
                  sluice::DeviceSpan<float, B> logits);

    /// Folds the batch normalisations with their running statistics into the weights that `infer` takes. Again after
    /// training or loading.
    void fold(sluice::BasicStreamRef<B> stream);

    /// The logits [N, classes] of images, as of the latest `fold`.
    void infer(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> images,
               sluice::DeviceSpan<float, B> logits);

    /// The learning rate of the steps that `stream` gets to after this one; see Classifier::set_learning_rate.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, float rate) { rate_.set(stream, rate); }
    /// The same from device memory, one element, read when the work runs: for a rate that comes with each batch.
    void set_learning_rate(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const float, B> rate) {
        sluice::copy(stream, rate_.span(), rate);
    }

    /// Weights and running statistics, named and laid out as in torchvision's `state_dict` (without
    /// `num_batches_tracked`). Waits for `stream`.
    std::vector<NamedTensor> weights(sluice::BasicStreamRef<B> stream) const;

    /// Gradients of the latest step by the weights' names, times `loss_scale`. Waits for `stream`.
    std::vector<NamedTensor> gradients(sluice::BasicStreamRef<B> stream) const;

    /// The velocities of the gradient descent by the weights' names, laid out as they are. Waits for `stream`.
    std::vector<NamedTensor> velocities(sluice::BasicStreamRef<B> stream) const;

    /// Takes velocities from among `tensors`, by the weights' names. Waits for `stream`. Throws `sluice::Error`, and changes
    /// nothing, when one is missing or of another shape.
    void load_velocities(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

    /// Takes weights and running statistics from among `tensors`. Velocities become 0. Waits for `stream`. Throws `sluice::Error`, and changes
    /// nothing, when one is missing or of another shape.
    void load(sluice::BasicStreamRef<B> stream, std::span<const NamedTensor> tensors);

private:
    template <class U>
    using Buffer = sluice::DeviceBuffer<U, B>;
    template <class U>
    using Span = sluice::DeviceSpan<U, B>;
    using Stream = sluice::BasicStreamRef<B>;
    // Whether there are kernels for the first convolution of a training step, and whether convolution `conv` has them.
    static constexpr bool has_own_stem = has_conv_7x7<T, B>;
    static bool has_own_kernels(std::size_t conv, const Conv2dShape& shape) {
        return has_own_stem && conv == 0 && supports_conv_7x7(shape);
    }
    static constexpr bool is_rounded = !std::is_same_v<T, float>;

    // The gradient of a map: the scratch map `first`, or that and `second` to be added.
    struct Gradient {
        std::size_t first;
        std::size_t second;
        std::size_t third; ///< holds nothing of use
        bool is_sum;
    };

    void allocate();
    std::size_t images_of(std::size_t elements, const char* what);
    Conv2dShape shape(std::size_t conv) const { return plan_.convs()[conv].shape.with_images(images_); }
    Span<const T> conv_weights(const ResNetConv& conv);
    Span<T> weight_gradient(const ResNetConv& conv) {
        return gradients_.span().subspan(conv.weight_offset, conv.shape.weight_size());
    }
    BatchNorm<B> norm(std::size_t conv);
    template <class U>
    static Span<U> part(Buffer<U>& buffer, std::size_t size) {
        return buffer.span().first(size);
    }
    Span<T> conv_out(std::size_t conv) { return part(conv_outs_[conv], shape(conv).out_size()); }
    Span<T> inner(std::size_t block) {
        return part(inners_[block], shape(plan_.blocks()[block].first).out_size());
    }
    Span<T> out(std::size_t block) {
        return part(outs_[block], shape(plan_.blocks()[block].second).out_size());
    }
    std::size_t pooled_size() const { return images_ * pooled_shape(plan_.stem_map()).size(); }
    Span<const T> block_in(std::size_t block) {
        return block == 0 ? part(pooled_, pooled_size()) : out(block - 1);
    }
    Span<T> scratch_map(std::size_t index, std::size_t size) { return part(maps_[index], size); }
    Matrix<T, B> matrix(std::size_t conv, Span<T> map) const {
        return {map, shape(conv).out_pixels(), shape(conv).out_channels};
    }
    Matrix<float, B> logits() {
        return {part(logits_, images_ * options_.classes), images_, options_.classes};
    }
    Span<float> head_bias(Buffer<float>& parameters) {
        return parameters.span().subspan(2 * plan_.channel_size(), options_.classes);
    }

    // Averages weights' gradients from `begin` on, but for those that are already, once `stream` gets here.
    void average_from(Stream stream, std::size_t begin);
    void finish_averaging(Stream stream);

    // What batch normalisations take: the batch's statistics, or the running ones.
    enum class Statistics { batch, running };

    void convolve(Stream stream, std::size_t conv, Span<const T> in, Statistics statistics);
    void forward_maps(Stream stream, Span<const T> images, Statistics statistics, Matrix<float, B> to);
    void join(Stream stream, std::size_t block);
    void head_forward(Stream stream, Span<const T> features_map, Span<const T> head_weights,
                      Matrix<float, B> to);
    Gradient head_backward(Stream stream);
    Gradient block_backward(Stream stream, std::size_t block, const Gradient& gradient);
    void stem_weight_gradient(Stream stream, Span<const T> images, Span<const T> slope);
    /// What lies between a normalisation and the gradient that comes back.
    struct Relu {
        bool of_norm = false;              ///< of the normalised map alone
        Span<const T> output = {};         ///< of a sum with a residual
        Span<const T> other_gradient = {}; ///< a second part of the gradient
    };
    void norm_backward(Stream stream, std::size_t conv, Span<T> gradient, Span<T> in_gradient,
                       const Relu& relu);
    std::size_t infer_block(Stream stream, std::size_t block, std::size_t in);
    void infer_conv(Stream stream, std::size_t conv, Span<const T> in, Span<const T> residual, bool relu,
                    Span<T> to);
    std::vector<NamedTensor> named(const std::vector<float>& weights,
                                   const std::vector<float>& parameters) const;
    void collect(std::span<const NamedTensor> tensors, std::vector<float>& weights,
                 std::vector<float>& parameters) const;

    ResNet18Options options_;
    ResNet18Plan plan_;
    Conv conv_;
    std::size_t images_ = 0;        // of the call in progress
    std::vector<bool> is_prepared_; // by number of images

    Buffer<float> weights_;    // all convolutions', then the head's
    Buffer<T> rounded_;        // a copy for the convolutions, if T is not float
    Buffer<float> parameters_; // batch normalisations' weights, then their biases, then the head's bias
    Buffer<float> velocities_;
    Buffer<float> parameter_velocities_;
    Buffer<T> gradients_;
    Buffer<float> parameter_gradients_;
    Buffer<float> statistics_; // six of each channel, see `norm`
    Buffer<T> folded_;

    std::vector<Buffer<T>> conv_outs_; // before normalisation
    std::vector<Buffer<T>> inners_;    // of each block, after its first ReLU
    std::vector<Buffer<T>> outs_;      // of each block
    Buffer<T> pooled_;
    Buffer<std::uint8_t> taps_;
    Buffer<T> maps_[4]; // gradients in training, activations in inference; the first for the stem's
    Buffer<T> features_;
    Buffer<T> raw_logits_; // of type T, then their gradient
    Buffer<float> logits_;
    Buffer<float> losses_;
    Buffer<float> sums_;
    Buffer<double> scratch_;
    Buffer<float> stem_scratch_; // where the first convolution has kernels of its own
    sluice::DeviceScalar<float, B> rate_;

    // With other ranks.
    const sluice::Communicator<B>* communicator_ = nullptr;
    std::size_t bucket_bytes_ = 0;
    std::size_t averaged_from_ = 0; // of the step in progress
    sluice::BasicStream<B> averaging_;
    sluice::BasicEvent<B> complete_;
    sluice::BasicEvent<B> averaged_;
};

} // namespace nn

#include <nn/models/detail/resnet18.inl>
#include <nn/models/detail/resnet18_backward.inl>
#include <nn/models/detail/resnet18_weights.inl>
