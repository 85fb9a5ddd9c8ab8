/// \file
/// Capacities for ragged batches that outgrow each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/ragged/layout.hpp>

namespace sluice {

/// A short ladder of capacities: rows and values double from `smallest` on, each up to its own end in
/// `largest`. A graph is captured for one capacity; with the bucket as its key, a batch that outgrows its
/// bucket costs one more capture, and none ever when batches of that size come again.
///
/// Work for a small batch in a large bucket copies, and lays grids out for, at most twice what the batch
/// needs, where rows and values grow alike. Where the number of rows is known, `smallest.rows` =
/// `largest.rows` leaves values alone. Never changes, so any thread may ask it.
///
/// \code
/// const sluice::RaggedBuckets buckets{{.rows = 1024, .values = 1024}, {.rows = 1024, .values = 1 << 18}};
/// const sluice::RaggedCapacity bucket = buckets.bucket_for({.rows = 1024, .values = count});
/// packer.clear(bucket);
/// // ... add rows
/// graphs.run(stream, bucket, [&](sluice::StreamRef s) { packer.copy_to(s, batch_of(bucket)); … });
/// packer.mark_in_use(stream);
/// \endcode
class RaggedBuckets {
public:
    /// Throws `Error` when `smallest` is below 0, or larger than `largest`, in rows or in values.
    RaggedBuckets(RaggedCapacity smallest, RaggedCapacity largest);

    /// The smallest bucket with room for `needed`. Throws `Error`, with what is needed and what is available,
    /// when it is more than the largest one has, and for fewer than 0.
    RaggedCapacity bucket_for(RaggedCapacity needed) const { return (*this)[index_for(needed)]; }
    /// Its place in the ladder, from 0.
    std::size_t index_for(RaggedCapacity needed) const;

    /// How many buckets there are: what a cache of graphs, or an array of batches, must hold.
    std::size_t size() const noexcept { return size_; }
    /// Bucket `index`. Throws `Error` when there is none.
    RaggedCapacity operator[](std::size_t index) const;

private:
    /// `smallest` doubled `times` times, at least 1 the first time, up to `largest`.
    static constexpr std::int64_t grown(std::int64_t smallest, std::int64_t largest,
                                        std::size_t times) noexcept {
        std::int64_t size = smallest;
        for (; times > 0 && size < largest; --times)
            size = size == 0 ? 1 : (size > largest / 2 ? largest : size * 2);
        return size;
    }
    RaggedCapacity rung(std::size_t index) const noexcept {
        return {grown(smallest_.rows, largest_.rows, index), grown(smallest_.values, largest_.values, index)};
    }

    RaggedCapacity smallest_;
    RaggedCapacity largest_;
    std::size_t size_ = 1;
};

} // namespace sluice

#include <sluice/ragged/detail/buckets.inl>
