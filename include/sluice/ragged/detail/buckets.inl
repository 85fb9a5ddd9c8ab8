// Bodies of buckets.hpp.
#pragma once

#include <string>

#include <sluice/backend/error.hpp>

namespace sluice {

inline RaggedBuckets::RaggedBuckets(RaggedCapacity smallest, RaggedCapacity largest)
    : smallest_(smallest), largest_(largest) {
    if (smallest.rows < 0 || smallest.values < 0 || smallest.rows > largest.rows ||
        smallest.values > largest.values) {
        throw Error("buckets from " + detail::ragged_amount(smallest) + " to " +
                    detail::ragged_amount(largest) + "; expected 0 or more of each, and no fewer at the end");
    }
    while (!(rung(size_ - 1) == largest_))
        ++size_;
}

inline std::size_t RaggedBuckets::index_for(RaggedCapacity needed) const {
    if (needed.rows < 0 || needed.values < 0) {
        throw Error("no bucket is for " + detail::ragged_amount(needed) + "; expected 0 or more of each");
    }
    for (std::size_t index = 0; index < size_; ++index) {
        const RaggedCapacity room = rung(index);
        if (needed.rows <= room.rows && needed.values <= room.values)
            return index;
    }
    throw Error("no bucket is large enough: " + detail::ragged_amount(needed) + " are needed, and room for " +
                detail::ragged_amount(largest_) + " is available in the largest");
}

inline RaggedCapacity RaggedBuckets::operator[](std::size_t index) const {
    if (index >= size_) {
        throw Error("bucket " + std::to_string(index) + " was asked for, of " + std::to_string(size_));
    }
    return rung(index);
}

} // namespace sluice
