// Bodies of sampler.hpp.
#pragma once

namespace sluice {

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
    const std::uint64_t count = size_of(index, size());
    return {*this, count == 0 ? 0 : index * options_.batch, count};
}

SLUICE_HOST_DEVICE constexpr std::uint64_t Sampler::samples_of_all(std::uint64_t index) const noexcept {
    const std::uint64_t least = options_.samples / options_.shards;
    const std::uint64_t larger = options_.samples % options_.shards; // shards, which have one more
    return larger * size_of(index, least + 1) + (options_.shards - larger) * size_of(index, least);
}

SLUICE_HOST_DEVICE constexpr std::uint64_t Sampler::at(std::uint64_t place) const noexcept {
    if (!options_.shuffle ||
        place >= options_.samples) // a number that is no sample's might never lead to one
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
