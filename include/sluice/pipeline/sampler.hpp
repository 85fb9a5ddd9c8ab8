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
    std::uint32_t epoch = 0;
    /// This rank, of so many that share an epoch.
    std::uint64_t shard = 0;
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
    SLUICE_HOST_DEVICE constexpr Sampler of_epoch(std::uint32_t epoch) const noexcept {
        Sampler result = *this;
        result.options_.epoch = epoch;
        return result;
    }

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

    /// The number of the sample at `place` of the epoch's order, which all shards share. `place` is below the samples.
    SLUICE_HOST_DEVICE constexpr std::uint64_t at(std::uint64_t place) const noexcept;

private:
    SLUICE_HOST_DEVICE constexpr std::uint64_t batches_of(std::uint64_t samples) const noexcept {
        return samples / options_.batch + (options_.keep_last && samples % options_.batch != 0 ? 1 : 0);
    }
    SLUICE_HOST_DEVICE constexpr std::uint64_t permuted(std::uint64_t number) const noexcept;

    SamplerOptions options_;
    std::uint32_t low_bits_ =
        0; // Of a number that goes through the network, which has a bit more above at most.
    std::uint32_t high_bits_ = 0;
};

/// The samples of one batch, in order.
class Sampler::Samples {
public:
    class Iterator {
    public:
        using value_type = std::uint64_t;
        using difference_type = std::ptrdiff_t;

        constexpr Iterator() = default;
        SLUICE_HOST_DEVICE constexpr Iterator(const Samples* samples, std::uint64_t index) noexcept
            : samples_(samples), index_(index) {}
        SLUICE_HOST_DEVICE constexpr std::uint64_t operator*() const noexcept { return (*samples_)[index_]; }
        SLUICE_HOST_DEVICE constexpr Iterator& operator++() noexcept {
            ++index_;
            return *this;
        }
        SLUICE_HOST_DEVICE constexpr Iterator operator++(int) noexcept {
            const Iterator former = *this;
            ++index_;
            return former;
        }
        friend SLUICE_HOST_DEVICE constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
            return a.index_ == b.index_;
        }

    private:
        const Samples* samples_ = nullptr;
        std::uint64_t index_ = 0;
    };

    SLUICE_HOST_DEVICE constexpr std::uint64_t size() const noexcept { return size_; }
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    /// The number of the `i`-th sample, `i` below `size()`.
    SLUICE_HOST_DEVICE constexpr std::uint64_t operator[](std::uint64_t i) const noexcept {
        const SamplerOptions& options = sampler_.options();
        return sampler_.at((first_ + i) * options.shards + options.shard);
    }
    SLUICE_HOST_DEVICE constexpr Iterator begin() const noexcept { return {this, 0}; }
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

// ---------------------------------------------------------------------------------------------------------------

constexpr Sampler::Sampler(const SamplerOptions& options) : options_(options) {
    if (options.batch == 0)
        throw Error("a sampler needs batches of at least 1 sample, got 0");
    if (options.shard >= options.shards) {
        throw Error("a sampler needs a shard below the number of shards, got shard " +
                    std::to_string(options.shard) + " of " + std::to_string(options.shards));
    }
    if (options.samples > std::uint64_t{1} << 63)
        throw Error("a sampler takes 2^63 samples at most, got " + std::to_string(options.samples));
    std::uint32_t bits = 0;
    while (bits < 64 && (std::uint64_t{1} << bits) < options.samples)
        ++bits;
    high_bits_ = bits / 2;
    low_bits_ = bits - high_bits_;
}

SLUICE_HOST_DEVICE constexpr Sampler::Samples Sampler::samples(std::uint64_t index) const noexcept {
    if (index >= batches())
        return {*this, 0, 0};
    const std::uint64_t first = index * options_.batch;
    const std::uint64_t left = size() - first;
    return {*this, first, left < options_.batch ? left : options_.batch};
}

SLUICE_HOST_DEVICE constexpr std::uint64_t Sampler::at(std::uint64_t place) const noexcept {
    if (!options_.shuffle)
        return place;
    // There are less than twice as many numbers as samples, so this ends soon; and it ends, since a permutation leads
    // back to `place` at last, which is a sample's.
    std::uint64_t number = permuted(place);
    while (number >= options_.samples)
        number = permuted(number);
    return number;
}

SLUICE_HOST_DEVICE constexpr std::uint64_t Sampler::permuted(std::uint64_t number) const noexcept {
    const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
    const std::uint64_t high_mask = (std::uint64_t{1} << high_bits_) - 1;
    std::uint64_t low = number & low_mask;
    std::uint64_t high = number >> low_bits_;
    // With 24 rounds all orders of few samples are equally frequent, as far as tests see; many samples need fewer.
    const std::uint64_t rounds = low_bits_ + high_bits_ <= 12 ? 24 : 10;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const bool even = round % 2 == 0;
        CountedRandom random(RandomKey{.seed = options_.seed,
                                       .epoch = options_.epoch,
                                       .sample = (round << 32) | (even ? low : high),
                                       .operation = 0xFFFF});
        if (even)
            high ^= random.next_u32() & high_mask;
        else
            low ^= random.next_u32() & low_mask;
    }
    return (high << low_bits_) | low;
}

} // namespace sluice
