/// \file
/// Weights that are divided among ranks: cut from whole tensors, and put together again.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <nn/layers/layer_shape.hpp>
#include <sluice/backend/error.hpp>

namespace nn {

/// Part `rank` of `ranks` of a tensor, cut along `axis`. Throws `sluice::Error` unless that side can be divided so.
inline NamedTensor cut_shard(const NamedTensor& whole, std::size_t axis, std::size_t rank, std::size_t ranks);

/// The tensor whose parts these are, rank 0's first; has their name. Parts of equal shapes, at least one.
inline NamedTensor join_shards(std::span<const NamedTensor> parts, std::size_t axis);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

/// Elements of a tensor from one index of `axis` to the next.
inline std::size_t stride_of(const NamedTensor& tensor, std::size_t axis) {
    std::size_t stride = 1;
    for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i)
        stride *= tensor.shape[i];
    return stride;
}

} // namespace detail

inline NamedTensor cut_shard(const NamedTensor& whole, std::size_t axis, std::size_t rank,
                             std::size_t ranks) {
    const std::size_t side = whole.shape.at(axis);
    if (ranks == 0 || side % ranks != 0) {
        throw sluice::Error("weights: " + whole.name + " has a side of " + std::to_string(side) +
                            ", expected a multiple of the " + std::to_string(ranks) + " ranks");
    }
    const std::size_t row = side * detail::stride_of(whole, axis);
    const std::size_t part = row / ranks;
    NamedTensor shard{whole.name, whole.shape, {}};
    shard.shape[axis] = side / ranks;
    shard.values.reserve(whole.values.size() / ranks);
    for (auto begin = whole.values.begin(); begin != whole.values.end();
         begin += static_cast<std::ptrdiff_t>(row)) {
        const auto from = begin + static_cast<std::ptrdiff_t>(part * rank);
        shard.values.insert(shard.values.end(), from, from + static_cast<std::ptrdiff_t>(part));
    }
    return shard;
}

inline NamedTensor join_shards(std::span<const NamedTensor> parts, std::size_t axis) {
    NamedTensor whole{parts[0].name, parts[0].shape, {}};
    whole.shape.at(axis) *= parts.size();
    whole.values.reserve(parts[0].values.size() * parts.size());
    const std::size_t part = parts[0].shape[axis] * detail::stride_of(parts[0], axis);
    for (std::size_t begin = 0; begin < parts[0].values.size(); begin += part) {
        for (const NamedTensor& one : parts) {
            const auto from = one.values.begin() + static_cast<std::ptrdiff_t>(begin);
            whole.values.insert(whole.values.end(), from, from + static_cast<std::ptrdiff_t>(part));
        }
    }
    return whole;
}

} // namespace nn
