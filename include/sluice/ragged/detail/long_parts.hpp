// The temporary memory of operations that cut long rows into parts. Both backends take it, though the Host one has
// no use for it, so that a workspace which is too small is refused by both.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

struct LongPart {
    std::int64_t row;
    std::int64_t begin; ///< of the row
    std::int64_t length;
    std::int64_t part; ///< which part of the row this is, from 0 on
};

/// The list, and for each part one `Value`; null where there is no workspace.
template <class Value>
struct LongParts {
    unsigned long long* count = nullptr;
    LongPart* parts = nullptr;
    Value* values = nullptr;
};

/// Values of a part of a row that reductions and scans share.
inline constexpr std::int64_t part_values = 16384;

/// Values that a block sorts at a time.
template <class T>
inline constexpr int sort_capacity = sizeof(T) <= 4 ? 4096 : 2048;

/// Parts that rows longer than `each` can have, in all.
constexpr std::int64_t most_long_parts(std::int64_t values, std::int64_t each) {
    return 2 * (values / each) + 1;
}

/// Memory for the parts of rows with room for `values` values. Throws `Error` when there is too little.
template <class Value, Backend B>
LongParts<Value> take_long_parts(RaggedScratch<B>& scratch, std::int64_t values, std::int64_t each,
                                 std::int64_t values_of_list) {
    LongParts<Value> list;
    list.count = scratch.template take<unsigned long long>(std::size_t{1});
    list.parts = scratch.template take<LongPart>(most_long_parts(values, each));
    list.values = scratch.template take<Value>(values_of_list);
    return list;
}

/// Throws `Error` where a device would find too little in `workspace` for the long rows of a reduction or a scan.
template <class Value, class T>
void require_long_parts(RaggedWorkspace<Host>* workspace, const RaggedView<T>& rows) {
    const std::int64_t values = rows.value_capacity();
    if (workspace == nullptr || rows.row_capacity() == 0 || values <= part_values)
        return;
    RaggedScratch<Host> scratch = workspace->scratch();
    (void)take_long_parts<Value>(scratch, values, part_values, most_long_parts(values, part_values));
}

} // namespace sluice::ragged::detail
