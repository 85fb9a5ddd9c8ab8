// Bodies of batches.hpp.
#pragma once

#include <algorithm>
#include <string>

namespace images {

template <class Pixel, sluice::Backend B>
HostBatch<Pixel, B>::HostBatch(std::size_t capacity, ImageShape shape, HostMemory memory)
    : capacity_(capacity), shape_(shape), numbers_(numbers_of(shape)), size_(capacity),
      images_(capacity * numbers_, memory), labels_(capacity, memory) {
    static_assert(std::is_same_v<Pixel, std::uint8_t> || std::is_same_v<Pixel, float>,
                  "images::HostBatch: pixels are std::uint8_t or float");
}

template <class Pixel, sluice::Backend B>
void HostBatch<Pixel, B>::resize(std::size_t size) {
    if (size < 1 || size > capacity_) {
        throw sluice::Error("a batch with room for " + augment::detail::counted(capacity_, "image") +
                            " is to hold " + std::to_string(size) + "; it holds at least one");
    }
    size_ = size;
}

template <class Pixel, sluice::Backend B>
void DeviceBatch<Pixel, B>::copy_from(sluice::BasicStreamRef<B> stream, const HostBatch<Pixel, B>& from) {
    if (!(from.shape() == shape_) || from.size() > labels_.size()) {
        throw sluice::Error("a batch of " + augment::detail::counted(from.size(), "image") + " of " +
                            augment::detail::text_of(from.shape()) + " is to be copied to one of up to " +
                            std::to_string(labels_.size()) + " of " + augment::detail::text_of(shape_));
    }
    size_ = from.size();
    sluice::copy(stream, images_.first(from.images().size()), from.images());
    sluice::copy(stream, labels_.first(size_), from.labels());
}

template <class Pixel, sluice::Backend B>
Batches<Pixel, B>::Batches(const ImageSet& set, const BatchOptions& options)
    : options_(options), set_(set), weights_(set.shape(), options.side, options.side),
      sampler_(sluice::SamplerOptions{.samples = set.size(),
                                      .batch = options.batch,
                                      .shuffle = options.shuffle,
                                      .seed = options.seed,
                                      .shard = options.shard,
                                      .shards = options.shards,
                                      .keep_last = options.keep_last}) {
    if (options.epochs == 0)
        throw sluice::Error("batches of no epoch were asked for; there must be at least one");
    if (sampler_.common_batches() == 0) {
        throw sluice::Error("a set of " + augment::detail::counted(set.size(), "image") +
                            " has no full batch of " + std::to_string(options.batch) +
                            ", and shorter ones are to be dropped");
    }
}

template <class Pixel, sluice::Backend B>
std::size_t Batches<Pixel, B>::batch_size(std::size_t index) const {
    return static_cast<std::size_t>(sampler_.samples(index % batches_per_epoch()).size());
}

template <class Pixel, sluice::Backend B>
float Batches<Pixel, B>::share(std::size_t index) const {
    const auto all = static_cast<double>(sampler_.samples_of_all(index % batches_per_epoch()));
    return static_cast<float>(static_cast<double>(batch_size(index) * options_.shards) / all);
}

template <class Pixel, sluice::Backend B>
sluice::Sampler::Samples Batches<Pixel, B>::samples(std::size_t index) const {
    return sampler_.of_epoch(static_cast<std::uint32_t>(index / batches_per_epoch()))
        .samples(index % batches_per_epoch());
}

template <class Pixel, sluice::Backend B>
void Batches<Pixel, B>::fill(Worker& worker, std::size_t index, Batch& out) const {
    const sluice::Sampler::Samples samples = this->samples(index);
    worker.image.resize(ImageSet::image_bytes);
    out.resize(static_cast<std::size_t>(samples.size()));
    std::size_t place = 0;
    for (const std::uint64_t sample : samples) {
        const auto number = static_cast<std::size_t>(sample);
        out.labels()[place] = set_.load(number, worker.image);
        resize_image(weights_, worker.scratch, worker.image.data(), out.image(place).data(), options_.layout,
                     options_.normalize);
        ++place;
    }
}

template <class Pixel, sluice::Backend B>
auto Batches<Pixel, B>::source(sluice::SourceOptions<B> options) const {
    options.batches = batches();
    const auto make_slot = [this](int) { return this->make_slot(); };
    const auto make_worker = [](int) { return Worker{}; };
    const auto fill = [this](Worker& worker, std::size_t index, Batch& out) {
        this->fill(worker, index, out);
    };
    return sluice::Source<Batch, Worker, std::remove_const_t<decltype(fill)>, B>(make_slot, make_worker, fill,
                                                                                 options);
}

} // namespace images
