// What spans check.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/config.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// Throws `Error` unless a span of `size` elements has `count` from `offset` on.
constexpr void require_subspan(std::size_t offset, std::size_t count, std::size_t size) {
    if (offset > size || count > size - offset) {
        throw Error("subspan: " + detail::counted(count, "element") + " from " + std::to_string(offset) +
                    (count == 1 ? " on was" : " on were") + " asked for, of a span of " +
                    std::to_string(size));
    }
}

/// Throws `Error` unless the bytes of `count` elements of `element` bytes each can be counted.
SLUICE_HOST_DEVICE constexpr void require_countable([[maybe_unused]] std::size_t count,
                                                    [[maybe_unused]] std::size_t element) {
#if !defined(__CUDA_ARCH__)
    if (count > ~std::size_t{0} / element) {
        throw Error("bytes: a span of " + detail::counted(count, "element") + " of " +
                    detail::counted(element, "byte") + " each is larger than any memory");
    }
#endif
}

/// Where the last `count` of `size` elements begin. Throws `Error` when there are fewer.
constexpr std::size_t offset_of_last(std::size_t count, std::size_t size) {
    if (count > size) {
        throw Error("last: " + detail::counted_were(count, "element") + " asked for, of a span of " +
                    std::to_string(size));
    }
    return size - count;
}

} // namespace sluice::detail
