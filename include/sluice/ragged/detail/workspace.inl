// Bodies of workspace.hpp.
#pragma once

#include <string>

#include <sluice/backend/error.hpp>

namespace sluice {

template <Backend B>
std::size_t RaggedScratch<B>::take_bytes(std::size_t wanted) {
    const std::size_t begin = next();
    if (begin > bytes_ || wanted > bytes_ - begin) {
        throw Error("a ragged workspace of " + detail::counted(bytes_, "byte") +
                    " is too small: an operation needs " + detail::counted(wanted, "byte") +
                    " more than the " + std::to_string(begin) +
                    " that it has taken; make it with a larger capacity, or more bytes a value");
    }
    used_ = begin + wanted;
    return begin;
}

template <Backend B>
std::size_t RaggedWorkspace<B>::bytes_for(RaggedCapacity capacity, std::size_t bytes_per_value) {
    constexpr std::size_t fixed = 256 * 1024; // what sorts and scans need however little there is
    constexpr std::size_t bytes_per_row = 48; // six numbers of 64 bits, of which a batch's layout has one
    const std::size_t of_values = RaggedLayout::of(capacity, bytes_per_value).bytes;
    const std::size_t of_rows =
        RaggedLayout::of({0, capacity.rows}, bytes_per_row - sizeof(std::int64_t)).bytes;
    return fixed + of_rows + of_values;
}

} // namespace sluice
