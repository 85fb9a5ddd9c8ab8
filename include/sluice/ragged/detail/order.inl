// Bodies of order.hpp.
#pragma once

#include <string>

namespace sluice::ragged {

namespace reshaping {

/// Keys of rows, all below `limit()`.
struct LengthKeys {
    const std::int64_t* offsets;
    const RaggedCounts* counts;
    std::int64_t longest; // that there is room for
    bool descending;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t limit() const { return longest + 1; }
    SLUICE_HOST_DEVICE std::int64_t key(std::int64_t row) const {
        const std::int64_t length = offsets[row + 1] - offsets[row];
        return descending ? longest - length : length;
    }
};

struct BucketKeys {
    const std::int64_t* offsets;
    const RaggedCounts* counts;
    std::int64_t bounds[most_bucket_bounds];
    int number;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return counts->rows; }
    SLUICE_HOST_DEVICE std::int64_t limit() const { return number + 1; }
    SLUICE_HOST_DEVICE std::int64_t key(std::int64_t row) const {
        const std::int64_t length = offsets[row + 1] - offsets[row];
        int bucket = 0;
        while (bucket < number && bounds[bucket] <= length)
            ++bucket;
        return bucket;
    }
};

} // namespace reshaping

template <AnyStream S, class V>
void order_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                     RaggedView<V> in, LengthOrder direction, RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    reshaping::require_elements("order_by_length: the order", order.size(), in.row_capacity());
    RaggedScratch<B> scratch = workspace.scratch();
    const reshaping::LengthKeys keys{in.offsets(), in.counts_pointer(), in.value_capacity(),
                                     direction == LengthOrder::longest_first};
    reshaping::Engine<B>::sort_rows(stream, order.data(), in.row_capacity(), keys, nullptr, scratch);
}

template <AnyStream S, class V>
void bucket_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                      std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> starts, RaggedView<V> in,
                      std::span<const std::int64_t> bounds, RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    reshaping::require_elements("bucket_by_length: the order", order.size(), in.row_capacity());
    if (bounds.size() > most_bucket_bounds) {
        throw Error("ragged::bucket_by_length: " + std::to_string(bounds.size()) +
                    " bounds were given, expected at most " + std::to_string(most_bucket_bounds));
    }
    const auto number = static_cast<std::int64_t>(bounds.size());
    reshaping::require_elements("bucket_by_length: the starts", starts.size(), number + 2);
    reshaping::BucketKeys keys{in.offsets(), in.counts_pointer(), {}, static_cast<int>(number)};
    for (std::size_t b = 0; b < bounds.size(); ++b) {
        if (b > 0 && bounds[b] <= bounds[b - 1]) {
            throw Error("ragged::bucket_by_length: bound " + std::to_string(bounds[b]) + " comes after " +
                        std::to_string(bounds[b - 1]) + ", expected bounds that increase");
        }
        keys.bounds[b] = bounds[b];
    }
    RaggedScratch<B> scratch = workspace.scratch();
    reshaping::Engine<B>::sort_rows(stream, order.data(), in.row_capacity(), keys, starts.data(), scratch);
}

} // namespace sluice::ragged
