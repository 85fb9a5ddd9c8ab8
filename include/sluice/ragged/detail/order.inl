// Bodies of order.hpp.
#pragma once

#include <algorithm>
#include <string>

#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged {

namespace detail {

/// How a backend sorts rows; this one for backends whose streams take host tasks.
template <Backend B>
struct RowSorter : HostTasks<B> {
    using Ref = typename HostTasks<B>::Ref;

    /// Sorts the rows by `keys.key(row)`, equal ones in their order: `order` holds `keys.rows()` numbers of
    /// rows, then -1 up to `most`. `starts`, where it is not null, holds for each key from 0 to
    /// `keys.limit()` - 1 the place where its rows begin, and then their end.
    template <class Keys>
    static void sort(Ref stream, std::int64_t* order, std::int64_t most, const Keys& keys,
                     std::int64_t* starts, RaggedScratch<B>& scratch) {
        (void)OrderMemory::take(scratch, most);
        (void)OrderMemory::take(scratch, most); // A device's sort copies them once more.
        auto task = [order, most, keys, starts] {
            const std::int64_t rows = smaller(keys.rows(), most);
            for (std::int64_t i = 0; i < most; ++i)
                order[i] = i < rows ? i : -1;
            // With the row's number as the second key, so that no stable sort, which allocates, is needed.
            std::sort(order, order + rows, [&keys](std::int64_t a, std::int64_t b) {
                const std::int64_t key_a = keys.key(a), key_b = keys.key(b);
                return key_a != key_b ? key_a < key_b : a < b;
            });
            if (starts == nullptr)
                return;
            for (std::int64_t key = 0, next = 0; key <= keys.limit(); ++key) {
                while (next < rows && keys.key(order[next]) < key)
                    ++next;
                starts[key] = next;
            }
        };
        static_assert(fits_a_task<decltype(task)>);
        stream.enqueue(std::move(task));
    }
};

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

} // namespace detail

template <AnyStream S, class V>
void order_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                     RaggedView<V> in, LengthOrder direction, RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    sluice::detail::require_named("ragged::order_by_length: the order", direction, LengthOrder::longest_first,
                                  "shortest_first or longest_first");
    detail::require_elements("order_by_length: the order", order.size(), in.row_capacity());
    RaggedScratch<B> scratch = workspace.scratch();
    const detail::LengthKeys keys{in.offsets(), in.counts_pointer(), in.value_capacity(),
                                  direction == LengthOrder::longest_first};
    detail::tell_rows(detail::ref_for(stream, "order_by_length", &workspace, in), "order_by_length",
                      detail::as_const(in), detail::touched(order.data(), in.row_capacity()),
                      detail::touched_workspace(workspace));
    detail::RowSorter<B>::sort(stream, order.data(), in.row_capacity(), keys, nullptr, scratch);
}

template <AnyStream S, class V>
void bucket_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                      std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> starts, RaggedView<V> in,
                      std::span<const std::int64_t> bounds, RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    detail::require_elements("bucket_by_length: the order", order.size(), in.row_capacity());
    if (bounds.size() > most_bucket_bounds) {
        throw Error("ragged::bucket_by_length: " + sluice::detail::counted_were(bounds.size(), "bound") +
                    " given, expected at most " + std::to_string(most_bucket_bounds));
    }
    const auto number = static_cast<std::int64_t>(bounds.size());
    detail::require_elements("bucket_by_length: the starts", starts.size(), number + 2);
    detail::BucketKeys keys{in.offsets(), in.counts_pointer(), {}, static_cast<int>(number)};
    for (std::size_t b = 0; b < bounds.size(); ++b) {
        if (b > 0 && bounds[b] <= bounds[b - 1]) {
            throw Error("ragged::bucket_by_length: bound " + std::to_string(bounds[b]) + " comes after " +
                        std::to_string(bounds[b - 1]) + ", expected bounds that increase");
        }
        keys.bounds[b] = bounds[b];
    }
    detail::require_elsewhere("bucket_by_length", "the order",
                              detail::touched(order.data(), in.row_capacity()), "the starts",
                              detail::touched(starts.data(), number + 2));
    RaggedScratch<B> scratch = workspace.scratch();
    detail::tell_rows(detail::ref_for(stream, "bucket_by_length", &workspace, in), "bucket_by_length",
                      detail::as_const(in), detail::touched(order.data(), in.row_capacity()),
                      detail::touched(starts.data(), number + 2), detail::touched_workspace(workspace));
    detail::RowSorter<B>::sort(stream, order.data(), in.row_capacity(), keys, starts.data(), scratch);
}

} // namespace sluice::ragged
