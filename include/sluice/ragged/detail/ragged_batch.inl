// Bodies of ragged_batch.hpp.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace sluice {

namespace detail {

/// What `held`, which was refused, would have needed.
inline std::string ragged_need(const RaggedCounts& held) {
    const std::string number =
        (held.refused >= RaggedCounts::countable ? "at least " : "") + std::to_string(held.refused);
    switch (held.excess) {
    case RaggedExcess::rows:
        return counted_were(number, "row") + " needed";
    case RaggedExcess::row_length:
        return "a row of " + counted(number, "value") + " was longer than rows may be";
    default:
        return counted_were(number, "value") + " needed";
    }
}

/// A number that a user gave as a length, an offset or the number of a row. One that 64 bits with a sign do not hold comes
/// out as the largest that they do, which is too large everywhere.
template <class Integer>
constexpr std::int64_t ragged_number(Integer given) noexcept {
    constexpr auto most = (std::numeric_limits<std::int64_t>::max)();
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) >= sizeof(most)) {
        if (given > static_cast<Integer>(most))
            return most;
    }
    return static_cast<std::int64_t>(given);
}

/// The sum of two numbers that are 0 or more. One that 64 bits with a sign do not hold comes out as the largest that they do.
constexpr std::int64_t ragged_sum(std::int64_t a, std::int64_t b) noexcept {
    constexpr auto most = (std::numeric_limits<std::int64_t>::max)();
    return b > most - a ? most : a + b;
}

/// Throws `Error` unless `offsets` are those of rows that hold `values` values in all. Returns the longest
/// row's length. `who` begins the sentence.
template <class Offset>
std::int64_t require_offsets(const char* who, std::span<const Offset> offsets, std::int64_t values) {
    const std::string what = std::string(who) + ": ";
    if (offsets.empty())
        throw Error(what + "there are no offsets; expected one for each row, and the end");
    if (offsets[0] != 0)
        throw Error(what + "the offsets start at " + std::to_string(offsets[0]) + "; expected 0");
    std::int64_t longest = 0;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        const std::int64_t begin = ragged_number(offsets[row]);
        const std::int64_t end = ragged_number(offsets[row + 1]);
        if (end < begin) {
            throw Error(what + "the offsets decrease from " + std::to_string(offsets[row]) + " to " +
                        std::to_string(offsets[row + 1]) + " at row " + std::to_string(row) +
                        "; expected each to be at least the one before");
        }
        if (end - begin > longest)
            longest = end - begin;
    }
    if (ragged_number(offsets.back()) != values) {
        throw Error(what + "the offsets end at " + std::to_string(offsets.back()) + " and " +
                    detail::there_are(values, "value") + "; expected the same");
    }
    return longest;
}

} // namespace detail

template <class T, Backend B>
RaggedCounts RaggedBatch<T, B>::counts_and_wait(BasicStreamRef<B> stream) const {
    detail::require_same_device(stream, "RaggedBatch::counts_and_wait", "the batch", device());
    if (detail::records(stream)) {
        throw Error("RaggedBatch::counts_and_wait: the batch holds nothing yet while the stream is being "
                    "captured; ask after a launch");
    }
    RaggedCounts result;
    copy_and_wait(stream, std::span<RaggedCounts>(&result, 1), counts());
    return result;
}

template <class T, Backend B>
void RaggedBatch<T, B>::require_valid_and_wait(BasicStreamRef<B> stream) const {
    (void)offsets_and_wait(stream);
}

template <class T, Backend B>
std::vector<std::int64_t> RaggedBatch<T, B>::offsets_and_wait(BasicStreamRef<B> stream) const {
    const RaggedCounts held = counts_and_wait(stream);
    const std::string room = detail::ragged_amount(capacity_);
    if (held.refused != 0) {
        throw Error("a ragged batch with room for " + room +
                    " holds no result: " + detail::ragged_need(held));
    }
    if (held.rows < 0 || held.rows > capacity_.rows || held.values < 0 || held.values > capacity_.values) {
        throw Error("a ragged batch with room for " + room + " says that it holds " +
                    detail::ragged_amount({held.rows, held.values}));
    }
    std::vector<std::int64_t> result(static_cast<std::size_t>(held.rows) + 1);
    copy_and_wait(stream, result, offsets().first(result.size()));
    const std::int64_t longest = detail::require_offsets(
        "a ragged batch", std::span<const std::int64_t>(result.data(), result.size()), held.values);
    if (longest != held.longest) {
        throw Error("a ragged batch says that its longest row holds " +
                    detail::counted(held.longest, "value") + ", and it holds " + std::to_string(longest));
    }
    return result;
}

template <class U, Backend B>
std::size_t RaggedColumn<U, B>::checked(std::int64_t values) {
    if (values < 0) {
        throw Error("a ragged column cannot have room for " + detail::counted(values, "value") +
                    "; expected 0 or more");
    }
    return static_cast<std::size_t>(values);
}

template <class U, Backend B>
void RaggedColumn<U, B>::require_room(std::int64_t needed) const {
    if (needed > capacity()) {
        throw Error("a ragged column has room for " + detail::counted(capacity(), "value") +
                    " and the batch whose rows it shares for " + std::to_string(needed) +
                    "; expected as many at least");
    }
}

} // namespace sluice
