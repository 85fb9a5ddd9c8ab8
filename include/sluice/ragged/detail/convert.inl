// Bodies of convert.hpp.
#pragma once

#include <string>

#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged {

namespace detail {

struct StoreLength {
    std::int64_t* out;
    const std::int64_t* offsets;
    const RaggedCounts* counts;

    SLUICE_HOST_DEVICE void operator()(std::int64_t row) const {
        if (row < counts->rows)
            out[row] = offsets[row + 1] - offsets[row];
    }
};

/// What was asked for but does not fit the width; 0 when all does.
template <class V>
SLUICE_HOST_DEVICE std::int64_t refused_by(const RaggedView<V>& in, std::int64_t width) {
    const RaggedCounts* const counts = in.counts_pointer();
    if (counts->refused != 0)
        return counts->refused;
    return counts->longest > width ? counts->longest : 0;
}

template <class V>
struct Pad {
    using T = std::remove_const_t<V>;
    RaggedView<V> in;
    T* out;
    std::int64_t size;
    std::int64_t width;
    T fill;
    std::int64_t* refused;

    SLUICE_HOST_DEVICE void operator()(std::int64_t i) const {
        const std::int64_t misfit = refused_by(in, width);
        if (i == 0)
            *refused = misfit;
        if (i >= size)
            return;
        const std::int64_t row = quotient(i, width);
        const std::int64_t position = i - row * width;
        const T* from = &fill;
        if (misfit == 0 && row < in.rows() && position < in.length(row))
            from = in.values() + in.offset(row) + position;
        put(out + i, from);
    }
};

template <class V>
struct Mark {
    RaggedView<V> in;
    std::uint8_t* out;
    std::int64_t size;
    std::int64_t width;
    std::int64_t* refused;

    SLUICE_HOST_DEVICE void operator()(std::int64_t i) const {
        const std::int64_t misfit = refused_by(in, width);
        if (i == 0)
            *refused = misfit;
        if (i >= size)
            return;
        const std::int64_t row = quotient(i, width);
        const bool there = misfit == 0 && row < in.rows() && i - row * width < in.length(row);
        out[i] = there ? 1 : 0;
    }
};

/// Rows of one width, of which the first values count.
template <class T>
struct PaddedRows {
    const T* values;
    const std::int64_t* lengths;
    std::int64_t row_count;
    std::int64_t width;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return row_count; }
    SLUICE_HOST_DEVICE std::int64_t limit() const { return width; }
    SLUICE_HOST_DEVICE Refused refused() const { return {}; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        const std::int64_t length = lengths[row];
        return length < 0 ? width + 1 : smaller(length, larger(beyond_any, width + 1));
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        return values + row * width + position;
    }
    bool aligned(std::size_t bytes) const { return lies_at(values, bytes); }
};

/// Rows of one width, all of whose values count.
struct FullRows {
    std::int64_t row_count;
    std::int64_t width;

    SLUICE_HOST_DEVICE std::int64_t rows() const { return row_count; }
    SLUICE_HOST_DEVICE std::int64_t size() const { return row_count * width; }
    SLUICE_HOST_DEVICE std::int64_t offset(std::int64_t row) const { return row * width; }
    SLUICE_HOST_DEVICE Refused refused() const { return {}; }
};

inline void require_width(const char* what, std::int64_t width) {
    if (width < 1) {
        throw Error("ragged::" + std::string(what) + ": a width of " + std::to_string(width) +
                    " was given, expected at least 1");
    }
}

/// Throws `Error` unless `size` is that of `rows` rows of `width`.
inline void require_table(const char* what, std::size_t size, std::int64_t rows, std::int64_t width) {
    const auto columns = static_cast<std::size_t>(width);
    if (size % columns != 0 || size / columns != static_cast<std::size_t>(rows)) {
        throw Error("ragged::" + std::string(what) + ": " + sluice::detail::counted_were(size, "element") +
                    " given, expected " + sluice::detail::counted(rows, "row") + " of " +
                    std::to_string(width));
    }
}

inline void require_rows(const char* what, std::int64_t given, std::int64_t room) {
    if (given > room) {
        throw Error("ragged::" + std::string(what) + ": " + sluice::detail::counted_were(given, "row") +
                    " given, and there is room for " + std::to_string(room));
    }
}

} // namespace detail

template <AnyStream S, class V>
void row_ids(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> out,
             RaggedView<V> in) {
    using B = BackendOf<S>;
    detail::require_elements("row_ids: the result", out.size(), in.value_capacity());
    if (in.value_capacity() == 0)
        return;
    detail::tell_rows(detail::ref_of(stream), "row_ids", detail::as_const(in),
                      detail::touched(out.data(), in.value_capacity()));
    detail::Engine<B>::for_each_value(stream, detail::numbered(in), detail::StoreRow{out.data()});
}

template <AnyStream S, class V>
void lengths(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> out,
             RaggedView<V> in) {
    using B = BackendOf<S>;
    detail::require_elements("lengths: the result", out.size(), in.row_capacity());
    detail::tell_rows(detail::ref_of(stream), "lengths", detail::as_const(in),
                      detail::touched(out.data(), in.row_capacity()));
    detail::Engine<B>::for_each(stream, in.row_capacity(),
                                detail::StoreLength{out.data(), in.offsets(), in.counts_pointer()});
}

template <AnyStream S, class V>
void to_padded(const S& stream, std::type_identity_t<DeviceSpan<std::remove_const_t<V>, BackendOf<S>>> out,
               RaggedView<V> in, std::int64_t width, const std::type_identity_t<std::remove_const_t<V>>& fill,
               std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> refused) {
    using B = BackendOf<S>;
    detail::require_width("to_padded", width);
    detail::require_table("to_padded: the result", out.size(), in.row_capacity(), width);
    const auto size = static_cast<std::int64_t>(out.size());
    detail::require_same("to_padded: the place for what was refused", refused.size(), 1);
    detail::require_elsewhere("to_padded", "the result", detail::touched(out.data(), size),
                              "the rows' values", detail::touched(in.values(), in.value_capacity()));
    detail::require_place_apart("to_padded", refused.data(), "the result", detail::touched(out.data(), size));
    detail::require_place_apart("to_padded", refused.data(), "the rows' values",
                                detail::touched(in.values(), in.value_capacity()));
    // One call at least, for the sake of `refused`.
    detail::tell_rows(detail::ref_of(stream), "to_padded", detail::as_const(in),
                      detail::touched(out.data(), size), detail::touched(refused.data(), 1));
    detail::Engine<B>::for_each(stream, size > 0 ? size : 1,
                                detail::Pad<V>{in, out.data(), size, width, fill, refused.data()});
}

template <AnyStream S, class V>
void to_mask(const S& stream, std::type_identity_t<DeviceSpan<std::uint8_t, BackendOf<S>>> out,
             RaggedView<V> in, std::int64_t width,
             std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> refused) {
    using B = BackendOf<S>;
    detail::require_width("to_mask", width);
    detail::require_table("to_mask: the result", out.size(), in.row_capacity(), width);
    const auto size = static_cast<std::int64_t>(out.size());
    detail::require_same("to_mask: the place for what was refused", refused.size(), 1);
    detail::require_place_apart("to_mask", refused.data(), "the result", detail::touched(out.data(), size));
    detail::tell_rows(detail::ref_of(stream), "to_mask", detail::as_const(in),
                      detail::touched(out.data(), size), detail::touched(refused.data(), 1));
    detail::Engine<B>::for_each(stream, size > 0 ? size : 1,
                                detail::Mark<V>{in, out.data(), size, width, refused.data()});
}

template <AnyStream S, class T>
void from_padded(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                 std::type_identity_t<DeviceSpan<const T, BackendOf<S>>> padded, std::int64_t width,
                 std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> lengths,
                 RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    detail::require_width("from_padded", width);
    const auto rows = static_cast<std::int64_t>(lengths.size());
    detail::require_table("from_padded: the padded rows", padded.size(), rows, width);
    detail::require_rows("from_padded", rows, out.capacity().rows);
    detail::require_read_apart("from_padded", out.target(), "the padded rows", padded.data(), rows * width);
    detail::require_read_apart("from_padded", out.target(), "the lengths", lengths.data(), rows);
    RaggedScratch<B> scratch = workspace.scratch();
    detail::tell_made(
        detail::ref_for(stream, "from_padded", &workspace, out, RaggedCapacity{rows, rows * width}),
        "from_padded", out.target(), workspace, detail::touched(padded.data(), rows * width),
        detail::touched(lengths.data(), rows));
    detail::Engine<B>::make(stream, out.target(),
                            detail::PaddedRows<T>{padded.data(), lengths.data(), rows, width}, scratch);
}

template <AnyStream S, class T>
void from_padded_mask(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<DeviceSpan<const T, BackendOf<S>>> padded, std::int64_t width,
                      std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> mask,
                      RaggedWorkspace<BackendOf<S>>& workspace) {
    using B = BackendOf<S>;
    detail::require_width("from_padded_mask", width);
    const auto size = static_cast<std::int64_t>(padded.size());
    if (size % width != 0) {
        throw Error("ragged::from_padded_mask: " + sluice::detail::counted_were(size, "value") +
                    " given, expected a multiple of the width " + std::to_string(width));
    }
    detail::require_same("from_padded_mask: the mask", mask.size(), size);
    detail::require_rows("from_padded_mask", size / width, out.capacity().rows);
    detail::require_read_apart("from_padded_mask", out.target(), "the padded rows", padded.data(), size);
    detail::require_read_apart("from_padded_mask", out.target(), "the mask", mask.data(), size);
    RaggedScratch<B> scratch = workspace.scratch();
    detail::tell_made(
        detail::ref_for(stream, "from_padded_mask", &workspace, out, RaggedCapacity{size / width, size}),
        "from_padded_mask", out.target(), workspace, detail::touched(padded.data(), size),
        detail::touched(mask.data(), size));
    detail::Engine<B>::compact(stream, out.target(), padded.data(), detail::FullRows{size / width, width},
                               mask.data(), size, scratch);
}

} // namespace sluice::ragged
