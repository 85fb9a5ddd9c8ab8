// Bodies of sort.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <sluice/ragged/detail/long_parts.hpp>
#include <sluice/ragged/detail/row_arguments.hpp>

namespace sluice::ragged {

namespace detail {

template <std::size_t Bytes>
using UnsignedOf =
    std::conditional_t<Bytes == 1, std::uint8_t,
                       std::conditional_t<Bytes == 2, std::uint16_t,
                                          std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

/// Numbers that compare as the values are to be ordered. Trivially copyable.
template <class T>
struct SortKey {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8,
                  "sluice::ragged::sort: values must be integers, float or double");
    using Key = UnsignedOf<sizeof(T)>;

    bool descending;

    SLUICE_HOST_DEVICE Key operator()(T value) const {
        constexpr Key sign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
        Key key = 0;
        if constexpr (std::is_floating_point_v<T>) {
            const T canonical = value == T(0) ? T(0) : value;
            std::memcpy(&key, &canonical, sizeof(T));
            key = static_cast<Key>((key & sign) != 0 ? ~key : key ^ sign);
        } else if constexpr (static_cast<T>(-1) < T(0)) {
            key = static_cast<Key>(static_cast<Key>(value) ^ sign);
        } else {
            key = static_cast<Key>(value);
        }
        return descending ? static_cast<Key>(~key) : key;
    }
    /// A value that none comes after.
    SLUICE_HOST_DEVICE T last() const {
        constexpr Key sign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
        constexpr bool is_signed = static_cast<T>(-1) < T(0);
        Key bits = descending ? Key(0) : static_cast<Key>(~Key(0));
        if constexpr (std::is_floating_point_v<T>) {
            bits = descending ? static_cast<Key>(~Key(0)) : static_cast<Key>(~sign); // NaN, of either sign
        } else if constexpr (is_signed) {
            bits = static_cast<Key>(bits ^ sign);
        }
        T value;
        std::memcpy(&value, &bits, sizeof(T));
        return value;
    }
};

template <class T>
struct SortArguments {
    T* out;
    std::int64_t* positions; ///< may be null
    RaggedView<const T> rows;
    SortKey<T> key;
};

template <Backend B, class... Arguments>
void sort_rows(BasicStreamRef<B>, const Arguments&...) {
    require_kernels<B>();
}
/// Enqueues a sort. sort.cuh has it for CUDA.
template <class T>
void sort_rows(HostStreamRef stream, const SortArguments<T>& sort, RaggedWorkspace<Host>& workspace) {
    const std::int64_t values = sort.rows.value_capacity();
    if (sort.rows.row_capacity() == 0 || values == 0)
        return;
    RaggedScratch<Host> scratch = workspace.scratch();
    if (values > sort_capacity<T>) // what a device needs beside the positions
        (void)take_long_parts<T>(scratch, values, sort_capacity<T>, values);
    auto* const order = scratch.template take<std::int64_t>(values);
    stream.enqueue([sort, order] {
        const std::int64_t count = sort.rows.rows();
        for (std::int64_t r = 0; r < count; ++r) {
            const RowSpan<const T> row = sort.rows.row(r);
            const std::int64_t begin = sort.rows.offset(r);
            for (std::int64_t i = 0; i < row.size(); ++i)
                order[i] = i;
            std::sort(order, order + row.size(), [&](std::int64_t a, std::int64_t b) {
                const auto first = sort.key(row[a]);
                const auto second = sort.key(row[b]);
                return first < second || (first == second && a < b);
            });
            for (std::int64_t i = 0; i < row.size(); ++i) {
                sort.out[begin + i] = row[order[i]];
                if (sort.positions != nullptr)
                    sort.positions[begin + i] = order[i];
            }
        }
    });
}

// What each function enqueues, whatever the backend.
template <class Stream, class Out, class T, class Workspace>
void sort_into(Stream stream, const char* name, Out& out, std::int64_t* positions, RaggedView<const T> rows,
               Workspace& workspace, Order order) {
    sluice::detail::require_named("ragged::sort: the order", order, Order::descending,
                                  "ascending or descending");
    T* const values = as_result<T>(elements_for_values("sort", "the result", out, rows));
    const std::int64_t count = rows.value_capacity();
    const auto given = touched(rows.values(), count);
    require_elsewhere(name, "the result", touched(values, count), "the rows' values", given);
    if (positions != nullptr) {
        const auto placed = touched(positions, count);
        require_elsewhere(name, "the result for positions", placed, "the rows' values", given);
        require_elsewhere(name, "the result for positions", placed, "the result", touched(values, count));
    }
    tell_rows(stream, name, rows, touched(values, rows.value_capacity()),
              touched(positions, positions == nullptr ? 0 : rows.value_capacity()),
              touched_workspace(workspace));
    sort_rows(stream, SortArguments<T>{values, positions, rows, {order == Order::descending}}, workspace);
}
template <class Positions, class T>
std::int64_t* positions_for(Positions& positions, RaggedView<const T> rows) {
    return as_result<std::int64_t>(
        elements_for_values("sort_with_positions", "the result for positions", positions, rows));
}

} // namespace detail

template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void sort(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>& workspace,
          Order order) {
    detail::sort_into(detail::ref_for(stream, "sort", &workspace, out, rows), "sort", out, nullptr,
                      detail::input_view(rows), workspace, order);
}
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RaggedValues<BackendOf<S>> Positions,
          RowsOn<BackendOf<S>> Rows>
void sort_with_positions(const S& stream, Out&& out, Positions&& positions, const Rows& rows,
                         RaggedWorkspace<BackendOf<S>>& workspace, Order order) {
    const auto view = detail::input_view(rows);
    detail::sort_into(detail::ref_for(stream, "sort_with_positions", &workspace, out, positions, rows),
                      "sort_with_positions", out, detail::positions_for(positions, view), view, workspace,
                      order);
}

} // namespace sluice::ragged
