/// \file
/// Batches of images on their way to the network: as the loader fills them, as they are copied, as the network takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>

#include <images/batches.hpp>
#include <images/normalize.hpp>
#include <images/resize.hpp>
#include <nn/elementwise/maps.hpp>
#include <resnet18/rungs.hpp>
#include <sluice/sluice.hpp>

namespace resnet18 {

/// A batch on the host: the slot of the source. The learning rate and the batch's share (see `images::Batches::share`) are a
/// part of it: what changes from step to step travels as data, so that a step that is captured once serves for all of them.
template <sluice::Backend B>
struct LoadedBatch {
    std::variant<images::HostBatch<float, B>, images::HostBatch<std::uint8_t, B>> images;
    sluice::PinnedBuffer<float, B> factors{2}; ///< learning rate, share

    std::size_t size() const {
        return std::visit([](const auto& batch) { return batch.size(); }, images);
    }

    /// All that a captured step reads of it on the host.
    friend auto graph_key(const LoadedBatch& batch) {
        return std::visit(
            [&](const auto& each) {
                return std::tuple<const void*, const void*, const void*, std::size_t>(
                    each.images().data(), each.labels().data(), batch.factors.data(), each.size());
            },
            batch.images);
    }
};

/// The same on the device.
template <sluice::Backend B>
struct CopiedBatch {
    std::variant<images::DeviceBatch<float, B>, images::DeviceBatch<std::uint8_t, B>> images;
    sluice::DeviceBuffer<float, B> factors{2};

    void copy_from(sluice::BasicStreamRef<B> stream, const LoadedBatch<B>& from) {
        sluice::copy(stream, factors, from.factors);
        std::visit(
            [&]<class Pixel>(const images::HostBatch<Pixel, B>& batch) {
                std::get<images::DeviceBatch<Pixel, B>>(images).copy_from(stream, batch);
            },
            from.images);
    }
};

/// What the network trains on: normalised images, [N, H, W, stored channels], and their labels.
template <class T, sluice::Backend B>
class NetworkBatch {
public:
    NetworkBatch(std::size_t capacity, std::size_t image_size)
        : images_(capacity * image_size), labels_(capacity), image_size_(image_size), size_(capacity) {}

    std::size_t size() const { return size_; }
    /// Has room for any number up to the capacity.
    void resize(std::size_t size) { size_ = size; }
    sluice::DeviceSpan<T, B> images() { return images_.first(size_ * image_size_); }
    sluice::DeviceSpan<const T, B> images() const { return images_.first(size_ * image_size_); }
    sluice::DeviceSpan<std::uint8_t, B> labels() { return labels_.first(size_); }
    sluice::DeviceSpan<const std::uint8_t, B> labels() const { return labels_.first(size_); }
    sluice::DeviceSpan<float, B> factors() { return factors_.span(); }
    sluice::DeviceSpan<const float, B> rate() const { return factors_.first(1); }
    sluice::DeviceSpan<const float, B> share() const { return factors_.last(1); }

private:
    sluice::DeviceBuffer<T, B> images_;
    sluice::DeviceBuffer<std::uint8_t, B> labels_;
    sluice::DeviceBuffer<float, B> factors_{2};
    std::size_t image_size_;
    std::size_t size_; ///< a number in the slot: graphs tell batches apart by it
};

/// A set's images in batches, as a rung takes them.
template <sluice::Backend B>
class Input {
public:
    /// `options.side` is that of the network's images. The set must outlive this.
    Input(const images::ImageSet& set, Pixels pixels, images::BatchOptions options)
        : pixels_(pixels), side_(options.side), batches_(make(set, pixels, options)) {}

    std::size_t batch() const {
        return visit([](const auto& batches) { return batches.options().batch; });
    }
    std::size_t batches_per_epoch() const {
        return visit([](const auto& batches) { return batches.batches_per_epoch(); });
    }
    std::size_t batches() const {
        return visit([](const auto& batches) { return batches.batches(); });
    }
    std::size_t batch_size(std::size_t index) const {
        return visit([&](const auto& batches) { return batches.batch_size(index); });
    }
    /// The numbers of a batch's images in the set.
    sluice::Sampler::Samples samples(std::size_t index) const {
        return visit([&](const auto& batches) { return batches.samples(index); });
    }
    Pixels pixels() const { return pixels_; }
    int side() const { return side_; }
    images::ImageShape copied_shape() const {
        return visit([](const auto& batches) { return batches.shape(); });
    }

    LoadedBatch<B> make_loaded() const {
        return visit([](const auto& batches) { return LoadedBatch<B>{.images = batches.make_slot()}; });
    }
    CopiedBatch<B> make_copied() const {
        if (pixels_ == Pixels::floats)
            return {.images = images::DeviceBatch<float, B>(batch(), copied_shape())};
        return {.images = images::DeviceBatch<std::uint8_t, B>(batch(), copied_shape())};
    }

    /// What a loading thread needs.
    struct Worker {
        typename images::Batches<float, B>::Worker floats;
        typename images::Batches<std::uint8_t, B>::Worker bytes;
    };
    float share(std::size_t index) const {
        return visit([&](const auto& batches) { return batches.share(index); });
    }
    /// Fills batch `index`, which trains with `rate`.
    void fill(Worker& worker, std::size_t index, float rate, LoadedBatch<B>& out) const {
        out.factors[0] = rate;
        out.factors[1] = share(index);
        if (pixels_ == Pixels::floats) {
            std::get<0>(batches_).fill(worker.floats, index, std::get<0>(out.images));
        } else {
            std::get<1>(batches_).fill(worker.bytes, index, std::get<1>(out.images));
        }
    }

private:
    using Batches = std::variant<images::Batches<float, B>, images::Batches<std::uint8_t, B>>;

    static Batches make(const images::ImageSet& set, Pixels pixels, images::BatchOptions options) {
        if (pixels == Pixels::floats)
            return Batches(std::in_place_index<0>, set, options);
        if (pixels == Pixels::small_bytes)
            options.side = set.shape().width;
        return Batches(std::in_place_index<1>, set, options);
    }
    template <class Ask>
    auto visit(const Ask& ask) const {
        return std::visit(ask, batches_);
    }

    Pixels pixels_;
    int side_;
    Batches batches_;
};

/// From what was copied to what the network takes: enlarges and normalises on the device what the loader did not.
template <class T, sluice::Backend B>
class Preparation {
public:
    /// For pixels of `stored_channels`.
    Preparation(const Input<B>& input, std::size_t stored_channels)
        : shape_{3, input.side(), input.side()}, stored_channels_(stored_channels),
          enlarge_(images::BilinearWeights(input.copied_shape(), input.side(), input.side())) {
        if (stored_channels_ > 3 && input.pixels() == Pixels::small_bytes)
            narrow_ = sluice::DeviceBuffer<T, B>(input.batch() * 3 * pixels());
    }

    /// Enqueues it. Allocates nothing, so it can be captured.
    void run(sluice::BasicStreamRef<B> stream, const CopiedBatch<B>& in, NetworkBatch<T, B>& out) {
        sluice::copy(stream, out.factors(), in.factors.span());
        std::visit(
            [&](const auto& batch) {
                out.resize(batch.size());
                sluice::copy(stream, out.labels(), batch.labels());
                run(stream, batch.images(), out.images());
            },
            in.images);
    }

private:
    using Stream = sluice::BasicStreamRef<B>;

    std::size_t pixels() const {
        return static_cast<std::size_t>(shape_.height) * static_cast<std::size_t>(shape_.width);
    }
    void run(Stream stream, const images::Images<const float, B>& in, sluice::DeviceSpan<T, B> out) {
        const std::size_t count = static_cast<std::size_t>(in.count()) * pixels();
        const sluice::DeviceSpan<const float, B> from(in.data(), 3 * count);
        nn::pad_channels<T, float>(stream, {from, count, 3}, {out, count, stored_channels_});
    }
    void run(Stream stream, const images::Images<const std::uint8_t, B>& in, sluice::DeviceSpan<T, B> out) {
        const std::size_t count = static_cast<std::size_t>(in.count()) * pixels();
        if (in.shape() == shape_) {
            const images::ImageShape stored{static_cast<int>(stored_channels_), shape_.height, shape_.width};
            images::normalize(stream, images::Normalize{}, in,
                              images::Images<T, B>(out, stored, images::Layout::interleaved));
            return;
        }
        const bool is_padded = stored_channels_ > 3;
        const sluice::DeviceSpan<T, B> numbers = is_padded ? narrow_.first(3 * count) : out;
        images::resize(stream, enlarge_, in,
                       images::Images<T, B>(numbers, shape_, images::Layout::interleaved));
        if (is_padded)
            nn::pad_channels<T, T>(stream, {numbers, count, 3}, {out, count, stored_channels_});
    }

    images::ImageShape shape_; ///< of the network's images
    std::size_t stored_channels_;
    images::Resize<B> enlarge_;
    sluice::DeviceBuffer<T, B>
        narrow_; ///< enlarged, of three channels; empty where that is not done, or they are all
};

} // namespace resnet18
