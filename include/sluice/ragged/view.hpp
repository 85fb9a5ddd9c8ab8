/// \file
/// Rows of uneven length as kernels see them: views that own nothing.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <sluice/backend/config.hpp>

namespace sluice {

/// What an operation's result had too much of.
enum class RaggedExcess : std::int64_t {
    none,      ///< Nothing.
    values,    ///< Values of all rows together.
    rows,      ///< Rows.
    row_length ///< Values of the longest row.
};

/// How much a ragged batch holds. Lives in device memory, so that one captured graph serves any batch that
/// fits.
struct RaggedCounts {
    std::int64_t rows = 0;    ///< Rows.
    std::int64_t values = 0;  ///< Values of all rows together.
    std::int64_t longest = 0; ///< Values of the longest row.
    /// Not 0: an operation's result did not fit, and this is how much it would have needed of what `excess` says: the number
    /// itself below `countable`, and a smaller one from there on. The batch has no rows then.
    std::int64_t refused = 0;
    RaggedExcess excess = RaggedExcess::none; ///< What there was too much of.

    /// More than any memory holds.
    static constexpr std::int64_t countable = std::int64_t{1} << 39;

    /// Whether all of it is equal.
    friend SLUICE_HOST_DEVICE constexpr bool operator==(const RaggedCounts& a,
                                                        const RaggedCounts& b) noexcept {
        return a.rows == b.rows && a.values == b.values && a.longest == b.longest && a.refused == b.refused &&
               a.excess == b.excess;
    }
};

/// The values of one row. Trivially copyable; owns nothing; for kernels and Host tasks alike.
template <class T>
class RowSpan {
public:
    using element_type = T;                 ///< Of the values; const where they may only be read.
    using value_type = std::remove_cv_t<T>; ///< The same, never const.

    /// No values.
    constexpr RowSpan() noexcept = default;
    /// `size` values from `data` on.
    SLUICE_HOST_DEVICE constexpr RowSpan(T* data, std::int64_t size) noexcept : data_(data), size_(size) {}
    /// A row of const values, from one of values that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr RowSpan(RowSpan<U> other) noexcept
        : RowSpan(other.data(), other.size()) {}

    /// Where the values are.
    SLUICE_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
    /// Values.
    SLUICE_HOST_DEVICE constexpr std::int64_t size() const noexcept { return size_; }
    /// Whether there are no values.
    SLUICE_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    /// Value `index`, which is not checked.
    SLUICE_HOST_DEVICE constexpr T& operator[](std::int64_t index) const noexcept { return data_[index]; }
    /// The values as a contiguous range.
    /// @{
    SLUICE_HOST_DEVICE constexpr T* begin() const noexcept { return data_; }
    SLUICE_HOST_DEVICE constexpr T* end() const noexcept { return data_ + size_; }
    /// @}

private:
    T* data_ = nullptr;
    std::int64_t size_ = 0;
};

/// Rows of uneven length: values one after the other, and for each row the place where it begins. Trivially
/// copyable, a kernel's argument; owns nothing, so the memory must outlive the work.
///
/// Row r holds the values `offset(r)` up to, and without, `offset(r + 1)`; `offset(0)` is 0 and
/// `offset(rows())` is `size()`. Nothing is checked: `RaggedPacker` and `RaggedBatch::require_valid_and_wait`
/// do that.
///
/// A grid is laid out for the capacities, which the host knows; the counts are read where it runs:
///
/// \code
/// __global__ void sums(sluice::RaggedView<const float> rows, float* out) {
///     const std::int64_t r = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
///     if (r >= rows.rows()) return;
///     float sum = 0;
///     for (float value : rows.row(r)) sum += value;
///     out[r] = sum;
/// }
/// \endcode
template <class T>
class RaggedView {
public:
    using element_type = T;                 ///< Of the values; const where they may only be read.
    using value_type = std::remove_cv_t<T>; ///< The same, never const.

    /// No rows, and no memory: nothing may be asked of it but its capacities.
    constexpr RaggedView() noexcept = default;
    /// `offsets` has `row_capacity` + 1 elements, `values` `value_capacity`.
    SLUICE_HOST_DEVICE constexpr RaggedView(T* values, const std::int64_t* offsets,
                                            const RaggedCounts* counts, std::int64_t row_capacity,
                                            std::int64_t value_capacity) noexcept
        : values_(values), offsets_(offsets), counts_(counts), row_capacity_(row_capacity),
          value_capacity_(value_capacity) {}
    /// Does not compile: the values come first.
    template <class Offset, class U>
    requires(!std::is_convertible_v<Offset*, T*> || !std::is_convertible_v<U*, const std::int64_t*>)
        RaggedView(Offset*, U*, const RaggedCounts*, std::int64_t, std::int64_t) {
        static_assert(sizeof(U) == 0,
                      "sluice::RaggedView: the values come first, then the offsets, which are std::int64_t");
    }
    /// A view of const values, from one of values that may change.
    template <class U>
    requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) SLUICE_HOST_DEVICE
        constexpr RaggedView(RaggedView<U> other) noexcept
        : RaggedView(other.values(), other.offsets(), other.counts_pointer(), other.row_capacity(),
                     other.value_capacity()) {}

    /// \name Known on the host too
    /// @{

    /// Where the values are, `value_capacity()` of them; a device address.
    SLUICE_HOST_DEVICE constexpr T* values() const noexcept { return values_; }
    /// Where the offsets are, `row_capacity()` + 1 of them; a device address.
    SLUICE_HOST_DEVICE constexpr const std::int64_t* offsets() const noexcept { return offsets_; }
    /// Where the counts are; a device address.
    SLUICE_HOST_DEVICE constexpr const RaggedCounts* counts_pointer() const noexcept { return counts_; }
    /// Rows that there is room for.
    SLUICE_HOST_DEVICE constexpr std::int64_t row_capacity() const noexcept { return row_capacity_; }
    /// Values that there is room for.
    SLUICE_HOST_DEVICE constexpr std::int64_t value_capacity() const noexcept { return value_capacity_; }

    /// Other values over the same rows, at least `value_capacity()` of them: labels over the rows of boxes.
    template <class U>
    SLUICE_HOST_DEVICE constexpr RaggedView<U> over(U* values) const noexcept {
        return {values, offsets_, counts_, row_capacity_, value_capacity_};
    }

    /// @}
    /// \name Read from device memory: for kernels, and for tasks of Host streams
    /// @{

    /// Rows.
    SLUICE_HOST_DEVICE constexpr std::int64_t rows() const noexcept { return counts_->rows; }
    /// The values of all rows together.
    SLUICE_HOST_DEVICE constexpr std::int64_t size() const noexcept { return counts_->values; }
    /// The length of the longest row.
    SLUICE_HOST_DEVICE constexpr std::int64_t longest() const noexcept { return counts_->longest; }
    /// Where row `row` begins, of `rows()` + 1 places: the last one is the end.
    SLUICE_HOST_DEVICE constexpr std::int64_t offset(std::int64_t row) const noexcept {
        return offsets_[row];
    }
    /// Values of row `row`.
    SLUICE_HOST_DEVICE constexpr std::int64_t length(std::int64_t row) const noexcept {
        return offsets_[row + 1] - offsets_[row];
    }
    /// The values of row `row`.
    SLUICE_HOST_DEVICE constexpr RowSpan<T> row(std::int64_t row) const noexcept {
        const std::int64_t begin = offsets_[row];
        return {values_ + begin, offsets_[row + 1] - begin};
    }
    /// Value `index` of all, whichever row it is in.
    SLUICE_HOST_DEVICE constexpr T& operator[](std::int64_t index) const noexcept { return values_[index]; }
    /// The row that value `index`, from 0 to `size()` - 1, is in. Looks at log2(rows) offsets.
    SLUICE_HOST_DEVICE constexpr std::int64_t row_of(std::int64_t index) const noexcept {
        // The last row that begins at or before the value; empty rows before it begin there as well.
        std::int64_t first = 0;
        std::int64_t last = rows();
        while (last - first > 1) {
            const std::int64_t middle = first + (last - first) / 2;
            if (offsets_[middle] <= index) {
                first = middle;
            } else {
                last = middle;
            }
        }
        return first;
    }

    /// @}

private:
    T* values_ = nullptr;
    const std::int64_t* offsets_ = nullptr;
    const RaggedCounts* counts_ = nullptr;
    std::int64_t row_capacity_ = 0;
    std::int64_t value_capacity_ = 0;
};

/// What an operation that makes a batch of its own shape writes to. The operation must leave it valid:
/// offsets from 0 on that do not decrease, counts that agree with them. Where the result does not fit,
/// `refuse` leaves no rows.
template <class T>
struct RaggedTarget {
    T* values = nullptr;             ///< `value_capacity` values.
    std::int64_t* offsets = nullptr; ///< `row_capacity` + 1 offsets.
    RaggedCounts* counts = nullptr;  ///< How much there is.
    std::int64_t row_capacity = 0;   ///< Rows that there is room for.
    std::int64_t value_capacity = 0; ///< Values that there is room for.

    /// Whether there is room for `rows` rows with `size` values in all. There are no fewer than 0.
    SLUICE_HOST_DEVICE constexpr bool fits(std::int64_t rows, std::int64_t size) const noexcept {
        return rows >= 0 && size >= 0 && rows <= row_capacity && size <= value_capacity;
    }
    /// Leaves no rows, and says how many values, or how much else, would have been needed. One thread calls it.
    SLUICE_HOST_DEVICE constexpr void refuse(std::int64_t needed,
                                             RaggedExcess excess = RaggedExcess::values) const noexcept {
        *counts = RaggedCounts{0, 0, 0, needed, excess};
        offsets[0] = 0;
    }
    /// The rows that were made, for reading.
    SLUICE_HOST_DEVICE constexpr RaggedView<T> view() const noexcept {
        return {values, offsets, counts, row_capacity, value_capacity};
    }
};

/// What captured work reads of a view on the host: its three addresses, and the rows and values that it has room for.
template <class T>
auto graph_key(const RaggedView<T>& view) noexcept {
    return std::tuple(static_cast<const void*>(view.values()), static_cast<const void*>(view.offsets()),
                      static_cast<const void*>(view.counts_pointer()), view.row_capacity(),
                      view.value_capacity());
}

} // namespace sluice
