/// \file
/// Batches of a set's images for a `Source`: shuffled by counters, an epoch's last batch shorter where the batch size does not
/// divide the set, as bytes or as normalised floats, as they are or enlarged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <images/image_set.hpp>
#include <images/resize.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/pipeline/sampler.hpp>
#include <sluice/pipeline/source.hpp>

namespace images {

/// Where a batch lies on the host.
enum class HostMemory : std::uint8_t {
    pinned,   ///< page-locked: a copy to the device runs beside the host's work
    pageable, ///< ordinary memory: the host takes part in a copy
};

/// Images and labels of a batch on the host: the slot of a source. `Pixel` is `std::uint8_t` or float. Holds up to
/// `capacity()` images; batches of different sizes are different kinds to a pipeline that captures graphs.
template <class Pixel, sluice::Backend B = sluice::DefaultBackend>
class HostBatch {
public:
    /// Throws `sluice::Error` when there is no memory.
    HostBatch(std::size_t capacity, ImageShape shape, HostMemory memory);

    std::size_t capacity() const { return capacity_; }
    ImageShape shape() const { return shape_; }
    /// Images of this batch.
    std::size_t size() const { return size_; }
    /// Throws `sluice::Error` unless `size` is 1 to `capacity()`.
    void resize(std::size_t size);

    /// `size()` images, of `shape()`.
    sluice::PinnedSpan<const Pixel, B> images() const { return {images_.data(), size_ * numbers_}; }
    sluice::PinnedSpan<Pixel, B> images() { return {images_.data(), size_ * numbers_}; }
    /// Image `index` of them.
    std::span<Pixel> image(std::size_t index) { return {images_.data() + index * numbers_, numbers_}; }
    /// `size()` labels.
    sluice::PinnedSpan<const std::uint8_t, B> labels() const { return {labels_.data(), size_}; }
    sluice::PinnedSpan<std::uint8_t, B> labels() { return {labels_.data(), size_}; }

    /// Numbers of an image.
    static std::size_t numbers_of(ImageShape shape) {
        return static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
               static_cast<std::size_t>(shape.width);
    }

    /// All that a captured step reads of it on the host: where the images and labels lie, and how many there are.
    friend auto graph_key(const HostBatch& batch) {
        return std::tuple(batch.images_.data(), batch.labels_.data(), batch.size_);
    }

private:
    /// Either kind of memory.
    template <class T>
    class Memory {
    public:
        Memory(std::size_t count, HostMemory memory)
            : pinned_(memory == HostMemory::pinned ? count : 0),
              pageable_(memory == HostMemory::pageable ? count : 0) {}
        T* data() { return pinned_.empty() ? pageable_.data() : pinned_.data(); }
        const T* data() const { return pinned_.empty() ? pageable_.data() : pinned_.data(); }

    private:
        sluice::PinnedBuffer<T, B> pinned_;
        std::vector<T> pageable_;
    };

    std::size_t capacity_;
    ImageShape shape_;
    std::size_t numbers_; ///< of an image
    std::size_t size_;
    Memory<Pixel> images_;
    Memory<std::uint8_t> labels_;
};

/// A batch on the device: the slot of a pipeline.
template <class Pixel, sluice::Backend B = sluice::DefaultBackend>
class DeviceBatch {
public:
    /// Throws `sluice::Error` when there is no memory.
    DeviceBatch(std::size_t capacity, ImageShape shape, Layout layout = Layout::interleaved)
        : images_(capacity * HostBatch<Pixel, B>::numbers_of(shape)), labels_(capacity), shape_(shape),
          layout_(layout), size_(capacity) {}

    /// Enqueues copies of the images and labels, and has as many as `from` then. A pipeline that captures graphs tells slots
    /// apart by their size. Throws `sluice::Error` for images of another shape, and for more than there is room for.
    void copy_from(sluice::BasicStreamRef<B> stream, const HostBatch<Pixel, B>& from);

    /// Images of this batch.
    std::size_t size() const { return size_; }
    Images<const Pixel, B> images() const {
        return {images_.first(size_ * HostBatch<Pixel, B>::numbers_of(shape_)), shape_, layout_};
    }
    sluice::DeviceSpan<const std::uint8_t, B> labels() const { return labels_.first(size_); }

private:
    sluice::DeviceBuffer<Pixel, B> images_;
    sluice::DeviceBuffer<std::uint8_t, B> labels_;
    ImageShape shape_;
    Layout layout_;
    std::size_t size_;
};

/// Which batches there are, and what their images become.
struct BatchOptions {
    std::size_t batch = 32; ///< images, at least 1
    std::uint32_t epochs = 1;
    std::uint64_t seed = 1; ///< what the order depends on
    bool shuffle = true;    ///< false: in the order of the set
    bool keep_last = true;  ///< an epoch's last batch where it is not full; false: it is dropped
    std::uint64_t shard =
        0; ///< this rank, of `shards`, which divide an epoch's images and have equally many batches
    std::uint64_t shards = 1;
    int side = image_side; ///< of the square images of a batch; another than the set's resizes them
    Layout layout = Layout::interleaved;
    Normalize normalize{}; ///< of floats; bytes stay as they are
    HostMemory memory = HostMemory::pinned;
};

/// The batches of some epochs over a set, by number. Depends on the options alone: the same batch has the same bits whichever
/// worker fills it. The set must outlive it.
template <class Pixel, sluice::Backend B = sluice::DefaultBackend>
class Batches {
public:
    using Batch = HostBatch<Pixel, B>;

    /// Throws `sluice::Error` for a batch of 0 images, no epochs, a side of 0 or above 2^20, and where there is no batch.
    Batches(const ImageSet& set, const BatchOptions& options);

    const BatchOptions& options() const { return options_; }
    /// Of an image of a batch.
    ImageShape shape() const { return weights_.to(); }
    std::size_t batches_per_epoch() const { return static_cast<std::size_t>(sampler_.common_batches()); }
    /// Of all epochs.
    std::size_t batches() const { return options_.epochs * batches_per_epoch(); }
    /// Images of batch `index`.
    std::size_t batch_size(std::size_t index) const;
    /// What the mean over batch `index` of this shard is multiplied with before shards are averaged, so that each image counts the
    /// same: this shard's part of all shards' images, times the shards. 1 where they all have as many.
    float share(std::size_t index) const;
    /// The numbers of these images in the set, in their order. `index` is below `batches()`.
    sluice::Sampler::Samples samples(std::size_t index) const;

    /// A slot for any of the batches.
    Batch make_slot() const { return Batch(options_.batch, shape(), options_.memory); }
    /// What a thread needs to fill batches.
    struct Worker {
        std::vector<std::uint8_t> image;
        ResizeScratch scratch;
    };
    /// Fills batch `index`, which is below `batches()`.
    void fill(Worker& worker, std::size_t index, Batch& out) const;

    /// A source of all batches, whose threads are `options.workers`. `options.batches` does not count. Refers to this.
    auto source(sluice::SourceOptions<B> options = {}) const;

private:
    BatchOptions options_;
    const ImageSet& set_;
    BilinearWeights weights_;
    sluice::Sampler sampler_;
};

} // namespace images

#include <images/detail/batches.inl>
