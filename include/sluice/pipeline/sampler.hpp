/// \file
/// Which samples are in which batch: shuffled, divided among ranks, without memory or state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sluice/backend/config.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/random/philox.hpp>

namespace sluice {

/// How samples are drawn.
struct SamplerOptions {
    /// Samples of the whole data set, numbered from 0.
    std::uint64_t samples = 0;
    /// Samples a batch, at least 1.
    std::uint64_t batch = 1;
    /// False: in the order of their numbers.
    bool shuffle = true;
    /// What the order depends on. The same seed and epoch give the same order, everywhere.
    std::uint64_t seed = 0;
    /// Each epoch has an order of its own.
    std::uint32_t epoch = 0;
    /// This rank, from 0, below `shards`.
    std::uint64_t shard = 0;
    /// Ranks that share an epoch.
    std::uint64_t shards = 1;
    /// What becomes of a last batch that is not full: true: it is kept, shorter; false: it is dropped.
    bool keep_last = true;
};

/// Says which samples make up batch 0, 1, 2 … of an epoch.
///
/// Each epoch has an order of its own: a permutation of all samples, of which any place is computed without the others. So
/// no memory is needed however large the data set is, and any worker, rank or kernel can ask for any batch. Shard r of n
/// takes places r, r + n, r + 2n, … of that order: all shards together have each sample exactly once. Where the samples
/// are not divisible by n, the first (samples mod n) shards have one sample more than the others, and so possibly one
/// batch more; `common_batches` is what all of them have.
///
/// A plain value: trivially copyable, the same on the host and in a kernel, and all of it but the constructor is for both.
///
/// The permutation is a Feistel network on as few bits as the samples' numbers need, with `CountedRandom` (operation
/// 65535) as its round function; numbers beyond the samples are sent through again until they are not (J. Black,
/// P. Rogaway: "Ciphers with arbitrary finite domains", CT-RSA 2002).
///
/// \code
/// sluice::Sampler sampler{{.samples = files.size(), .batch = 32, .seed = 1}};
/// sluice::Source source{make_batch,
///                       [&](std::size_t index, Batch& out) {
///                           out.clear();
///                           for (const std::uint64_t sample : sampler.samples(index)) load(files[sample], out);
///                       },
///                       {.workers = 4, .batches = sampler.batches()}};
/// for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
///     source.rewind(); // no worker runs from here until the first batch is asked for
///     sampler = sampler.of_epoch(epoch);
///     for (const auto& batch : source) pipeline.submit(batch);
/// }
/// pipeline.finish();
/// \endcode
///
/// Or, so that workers go on into the next epoch without a gap, with `epochs * sampler.batches()` batches in the source:
/// `sampler.of_epoch(index / sampler.batches()).samples(index % sampler.batches())`.
class Sampler {
public:
    class Samples;

    /// Throws `Error` for a batch of 0 samples, and a shard that is not among the shards.
    constexpr explicit Sampler(const SamplerOptions& options);

    /// The same samples in the order of another epoch.
    [[nodiscard(
        "this sampler stays as it is; use the one that is given")]] SLUICE_HOST_DEVICE constexpr Sampler
    of_epoch(std::uint32_t epoch) const noexcept {
        Sampler result = *this;
        result.options_.epoch = epoch;
        return result;
    }

    /// As given, with the epoch of `of_epoch`.
    SLUICE_HOST_DEVICE constexpr const SamplerOptions& options() const noexcept { return options_; }

    /// Samples of this shard.
    SLUICE_HOST_DEVICE constexpr std::uint64_t size() const noexcept {
        return options_.samples / options_.shards +
               (options_.shard < options_.samples % options_.shards ? 1 : 0);
    }
    /// Batches of this shard.
    SLUICE_HOST_DEVICE constexpr std::uint64_t batches() const noexcept { return batches_of(size()); }
    /// Batches that every shard has.
    SLUICE_HOST_DEVICE constexpr std::uint64_t common_batches() const noexcept {
        return batches_of(options_.samples / options_.shards);
    }

    /// The samples of batch `index`; none where there is no such batch.
    SLUICE_HOST_DEVICE constexpr Samples samples(std::uint64_t index) const noexcept;

    /// How many samples batch `index` of all shards together has: what the samples of one of them are a part of. Shards' batches
    /// may differ in size, so that means over them are no average with equal weights.
    SLUICE_HOST_DEVICE constexpr std::uint64_t samples_of_all(std::uint64_t index) const noexcept;

    /// The number of the sample at `place` of the epoch's order, which all shards share; `place` itself where it is not below
    /// the samples.
    SLUICE_HOST_DEVICE constexpr std::uint64_t at(std::uint64_t place) const noexcept;

private:
    SLUICE_HOST_DEVICE constexpr std::uint64_t batches_of(std::uint64_t samples) const noexcept {
        return samples / options_.batch + (options_.keep_last && samples % options_.batch != 0 ? 1 : 0);
    }
    // Of batch `index` of a shard of `samples` samples.
    SLUICE_HOST_DEVICE constexpr std::uint64_t size_of(std::uint64_t index,
                                                       std::uint64_t samples) const noexcept {
        if (index >= batches_of(samples))
            return 0;
        const std::uint64_t left = samples - index * options_.batch;
        return left < options_.batch ? left : options_.batch;
    }
    SLUICE_HOST_DEVICE constexpr std::uint64_t permuted(std::uint64_t number) const noexcept;

    SamplerOptions options_;
    // Of a number that goes through the network, which has a bit more above at most.
    std::uint32_t low_bits_ = 0;
    std::uint32_t high_bits_ = 0;
};

/// The samples of one batch, in order.
class Sampler::Samples {
public:
    /// A forward iterator over the samples' numbers. Refers to its `Samples`, which must outlive it.
    class Iterator {
    public:
        /// A sample's number.
        using value_type = std::uint64_t;
        /// Signed, as the standard has it.
        using difference_type = std::ptrdiff_t;

        /// At no sample; may only be assigned to.
        constexpr Iterator() = default;
        /// At sample `index` of `samples`.
        SLUICE_HOST_DEVICE constexpr Iterator(const Samples* samples, std::uint64_t index) noexcept
            : samples_(samples), index_(index) {}
        /// The sample's number.
        SLUICE_HOST_DEVICE constexpr std::uint64_t operator*() const noexcept { return (*samples_)[index_]; }
        /// To the next sample.
        SLUICE_HOST_DEVICE constexpr Iterator& operator++() noexcept {
            ++index_;
            return *this;
        }
        /// To the next sample; returns where it was.
        SLUICE_HOST_DEVICE constexpr Iterator operator++(int) noexcept {
            const Iterator former = *this;
            ++index_;
            return former;
        }
        /// Whether both are at the same place of one batch.
        friend SLUICE_HOST_DEVICE constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
            return a.index_ == b.index_;
        }

    private:
        const Samples* samples_ = nullptr;
        std::uint64_t index_ = 0;
    };

    /// Samples.
    SLUICE_HOST_DEVICE constexpr std::uint64_t size() const noexcept { return size_; }
    /// Whether there is no such batch.
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    /// The number of the `i`-th sample, `i` below `size()`.
    SLUICE_HOST_DEVICE constexpr std::uint64_t operator[](std::uint64_t i) const noexcept {
        const SamplerOptions& options = sampler_.options();
        return sampler_.at((first_ + i) * options.shards + options.shard);
    }
    /// The first sample.
    SLUICE_HOST_DEVICE constexpr Iterator begin() const noexcept { return {this, 0}; }
    /// Behind the last sample.
    SLUICE_HOST_DEVICE constexpr Iterator end() const noexcept { return {this, size_}; }

private:
    friend class Sampler;
    SLUICE_HOST_DEVICE constexpr Samples(const Sampler& sampler, std::uint64_t first,
                                         std::uint64_t size) noexcept
        : sampler_(sampler), first_(first), size_(size) {}

    Sampler sampler_;
    std::uint64_t first_; // Of the shard's samples.
    std::uint64_t size_;
};

} // namespace sluice

#include <sluice/pipeline/detail/sampler.inl>
