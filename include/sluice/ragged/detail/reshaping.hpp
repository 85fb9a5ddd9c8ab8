// What the operations that make rows out of other rows are built from, and how the Host backend carries it
// out. reshape.cuh does the same on CUDA devices.
//
// An operation is a *plan*: a small trivially copyable struct with
//
// - `rows()`, how many rows there will be, and `length(row)` of each,
// - `source(row, position)`, the address of the value that comes there,
// - `limit()`, the length that no row may exceed, and `refused()`, what an operand could not hold: the
//   operand has no rows then, and the result must not look as if that were all,
// - `aligned(bytes)`, whether all its sources lie at multiples of so many bytes; the host asks.
//
// All but the last read device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/detail/row_arguments.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged::detail {

/// What one pass over some rows finds.
struct Running {
    std::int64_t sum;
    std::int64_t longest;
};

inline constexpr int scan_threads = 1024; // of the one block
inline constexpr int scan_items = 4;      // a thread's, at a time
/// Up to so many places one block is quicker than three launches.
inline constexpr std::int64_t one_block_places = 4 * scan_threads * scan_items;

inline constexpr int tile_threads = 256;
inline constexpr int tile_items = 8;
inline constexpr std::int64_t tile_places = tile_threads * tile_items;

/// For the three launches of a scan over `places` places; none where one block does it.
struct ScanMemory {
    std::int64_t number = 0; // of tiles
    Running* tiles = nullptr;
    std::int64_t* before_tile = nullptr;

    template <Backend B>
    static ScanMemory take(RaggedScratch<B>& scratch, std::int64_t places) {
        ScanMemory memory;
        if (places <= one_block_places)
            return memory;
        memory.number = (places + tile_places - 1) / tile_places;
        memory.tiles = scratch.template take<Running>(memory.number);
        memory.before_tile = scratch.template take<std::int64_t>(memory.number);
        return memory;
    }
};

/// Values whose places are found together when some are kept.
inline constexpr std::int64_t kept_together = 32;

/// The sums before each group of `kept_together` values, and their end.
struct KeptMemory {
    std::int64_t number; // of groups
    std::int64_t* starts;

    template <Backend B>
    static KeptMemory take(RaggedScratch<B>& scratch, std::int64_t value_capacity) {
        const std::int64_t number = (value_capacity + kept_together - 1) / kept_together;
        return {number, scratch.template take<std::int64_t>(number + 1)};
    }
};

/// Keys and numbers of rows, before and after they are sorted.
struct OrderMemory {
    std::uint64_t* unsorted;
    std::uint64_t* sorted;
    std::int64_t* rows;

    template <Backend B>
    static OrderMemory take(RaggedScratch<B>& scratch, std::int64_t most) {
        OrderMemory memory;
        memory.unsorted = scratch.template take<std::uint64_t>(most);
        memory.sorted = scratch.template take<std::uint64_t>(most);
        memory.rows = scratch.template take<std::int64_t>(most);
        return memory;
    }
};

/// The length that no row exceeds.
inline constexpr std::int64_t unlimited = (std::numeric_limits<std::int64_t>::max)();
/// More than any memory holds, and so little that sums over all rows do not overflow.
inline constexpr std::int64_t beyond_any = RaggedCounts::countable;

/// What does not fit, and how much of it would have been needed: 0 where all fits.
struct Refused {
    std::int64_t needed = 0;
    RaggedExcess excess = RaggedExcess::none;

    SLUICE_HOST_DEVICE static Refused by(const RaggedCounts& operand) {
        return {operand.refused, operand.excess};
    }
};

/// Copies one value, also of a type that cannot be assigned to.
template <class T>
SLUICE_HOST_DEVICE inline void put(T* to, const T* from) {
    if constexpr (std::is_copy_assignable_v<T>) {
        *to = *from;
    } else {
        std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(T));
    }
}

template <class T>
bool lies_at(const T* pointer, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

/// Whether a result fits, and what its counts are. `values` and `longest` are those of the rows that there is
/// room for. One thread calls it. Returns whether there is a result.
template <class T, class Plan>
struct Settle {
    RaggedTarget<T> out;
    Plan plan;

    SLUICE_HOST_DEVICE bool operator()(std::int64_t values, std::int64_t longest) const {
        const std::int64_t rows = plan.rows();
        Refused refused = plan.refused();
        if (refused.needed == 0 && rows > out.row_capacity)
            refused = {rows, RaggedExcess::rows};
        if (refused.needed == 0 && longest > plan.limit())
            refused = {longest, RaggedExcess::row_length};
        if (refused.needed == 0 && values > out.value_capacity)
            refused = {values, RaggedExcess::values};
        if (refused.needed != 0) {
            out.refuse(refused.needed, refused.excess);
            return false;
        }
        *out.counts = RaggedCounts{rows, values, longest, 0};
        return true;
    }
    SLUICE_HOST_DEVICE bool kept() const { return out.counts->refused == 0; }
};

/// Places that no result depends on: there is nothing to refuse.
struct SettleNothing {
    SLUICE_HOST_DEVICE bool operator()(std::int64_t, std::int64_t) const { return true; }
    SLUICE_HOST_DEVICE bool kept() const { return true; }
};

/// Rows whose values are numbered: what `for_each_value` goes over. At most `value_capacity` of them.
struct NumberedRows {
    const std::int64_t* offsets; // `*rows` + 1
    const std::int64_t* rows;
    std::int64_t value_capacity;

    SLUICE_HOST_DEVICE std::int64_t size() const { return smaller(offsets[*rows], value_capacity); }
};

template <class T>
NumberedRows numbered(const RaggedView<T>& view) {
    return {view.offsets(), &view.counts_pointer()->rows, view.value_capacity()};
}

/// Writes down which row each value is in.
struct StoreRow {
    std::int64_t* out;

    SLUICE_HOST_DEVICE void operator()(std::int64_t row, std::int64_t i) const { out[i] = row; }
};

/// A task with more than one operation's few pointers would be copied to the heap.
template <class F>
inline constexpr bool fits_a_task = sizeof(F) <= host::Task::inline_bytes;

/// A backend whose streams take host tasks, and so need no kernels.
template <Backend B>
struct HostTasks {
    static_assert(std::is_same_v<typename B::NativeStream, host::Queue*>,
                  "sluice: operations on ragged batches need <sluice/ragged/reshape.cuh>, and a CUDA "
                  "compiler, for CUDA streams");
    using Ref = BasicStreamRef<B>;
};

/// How a backend carries operations out; this one for backends whose streams take host tasks.
template <Backend B>
struct Engine : HostTasks<B> {
    using Ref = typename HostTasks<B>::Ref;

    /// `call(i)` for i = 0 … count - 1, in any order.
    template <class F>
    static void for_each(Ref stream, std::int64_t count, const F& call) {
        // On the heap only if `call` holds a very large value.
        stream.enqueue([count, call] {
            for (std::int64_t i = 0; i < count; ++i)
                call(i);
        });
    }

    /// `call(row, i)` for every value, in any order.
    template <class F>
    static void for_each_value(Ref stream, const NumberedRows& rows, const F& call) {
        stream.enqueue([rows, call] {
            const std::int64_t size = rows.size();
            for (std::int64_t row = 0, i = 0; i < size; ++row) {
                for (; i < smaller(rows.offsets[row + 1], size); ++i)
                    call(row, i);
            }
        });
    }

    /// `starts[r]` = the sum of the lengths before r, for r = 0 … most; rows beyond `lengths.rows()` have length 0.
    template <class Lengths>
    static void sum_before(Ref stream, std::int64_t* starts, std::int64_t most, const Lengths& lengths,
                           RaggedScratch<B>& scratch) {
        (void)ScanMemory::take(scratch, most + 1);
        stream.enqueue([starts, most, lengths] { (void)scan(starts, most, lengths, SettleNothing{}); });
    }

    /// The rows that `plan` describes.
    template <class T, class Plan>
    static void make(Ref stream, const RaggedTarget<T>& out, const Plan& plan, RaggedScratch<B>& scratch) {
        (void)ScanMemory::take(scratch, out.row_capacity + 1);
        auto task = [out, plan] {
            if (!scan(out.offsets, out.row_capacity, plan, Settle<T, Plan>{out, plan}))
                return;
            const std::int64_t rows = out.counts->rows;
            for (std::int64_t row = 0; row < rows; ++row) {
                const std::int64_t begin = out.offsets[row];
                const std::int64_t length = out.offsets[row + 1] - begin;
                for (std::int64_t i = 0; i < length; ++i)
                    put(out.values + begin + i, plan.source(row, i));
            }
        };
        static_assert(fits_a_task<decltype(task)>);
        stream.enqueue(std::move(task));
    }

    /// The values of `shape`'s rows of which `keep` is not 0. `shape` has `rows()`, `size()`, `offset(row)`, `refused()`.
    template <class T, class Shape>
    static void compact(Ref stream, const RaggedTarget<T>& out, const T* values, const Shape& shape,
                        const std::uint8_t* keep, std::int64_t value_capacity, RaggedScratch<B>& scratch) {
        (void)ScanMemory::take(scratch, KeptMemory::take(scratch, value_capacity).number + 1);
        (void)ScanMemory::take(scratch, out.row_capacity + 1);
        auto task = [out, values, shape, keep] {
            const KeptLengths<Shape> plan{shape, keep};
            if (!scan(out.offsets, out.row_capacity, plan, Settle<T, KeptLengths<Shape>>{out, plan}))
                return;
            const std::int64_t size = shape.size();
            for (std::int64_t i = 0, next = 0; i < size; ++i) {
                if (keep[i] != 0)
                    put(out.values + next++, values + i);
            }
        };
        static_assert(fits_a_task<decltype(task)>);
        stream.enqueue(std::move(task));
    }

private:
    template <class Shape>
    struct KeptLengths {
        Shape shape;
        const std::uint8_t* keep;

        std::int64_t rows() const { return shape.rows(); }
        std::int64_t limit() const { return unlimited; }
        Refused refused() const { return shape.refused(); }
        std::int64_t length(std::int64_t row) const {
            std::int64_t kept = 0;
            for (std::int64_t i = shape.offset(row); i < shape.offset(row + 1); ++i)
                kept += keep[i] != 0 ? 1 : 0;
            return kept;
        }
    };

    template <class Lengths, class Done>
    static bool scan(std::int64_t* starts, std::int64_t most, const Lengths& lengths, const Done& done) {
        const std::int64_t rows = smaller(lengths.rows(), most);
        std::int64_t sum = 0;
        std::int64_t longest = 0;
        for (std::int64_t row = 0; row <= most; ++row) {
            const std::int64_t length = row < rows ? lengths.length(row) : 0;
            starts[row] = sum;
            sum += length;
            longest = larger(longest, length);
        }
        return done(sum, longest);
    }
};

/// Tells a checked backend that an operation writes `out` and uses `workspace`, and what else it touches.
template <class T, Backend B, class... Ts>
void tell_made(BasicStreamRef<B> stream, const char* what, const RaggedTarget<T>& out,
               RaggedWorkspace<B>& workspace, Touched<Ts>... others) {
    tell_touched(stream, what, touched(out.values, out.value_capacity),
                 touched(out.offsets, out.row_capacity + 1), touched(out.counts, 1),
                 touched_workspace(workspace), others...);
}

/// Throws `Error` unless the result's values and offsets lie apart from `elements`, which `whose` names: they are read while others
/// have been written.
template <class T, class U>
void require_read_apart(const char* what, const RaggedTarget<T>& out, const char* whose, U* elements,
                        std::int64_t count) {
    require_elsewhere(what, "the result", touched(out.values, out.value_capacity), whose,
                      touched(elements, count));
    require_elsewhere(what, "the result", touched(out.offsets, out.row_capacity + 1), whose,
                      touched(elements, count));
}

/// Throws `Error` unless the result lies apart from the operand: rows are written while others are still read.
template <class T, class U>
void require_apart(const char* what, const RaggedTarget<T>& out, const RaggedView<U>& in) {
    if (out.counts == in.counts_pointer()) {
        throw Error("ragged::" + std::string(what) +
                    ": the result and an operand are the same batch; expected another batch for the result");
    }
    require_read_apart(what, out, "an operand's values", in.values(), in.value_capacity());
    require_read_apart(what, out, "an operand's offsets", in.offsets(), in.row_capacity() + 1);
}

/// Throws `Error` unless there are as many elements as needed.
inline void require_elements(const char* what, std::size_t given, std::int64_t needed) {
    if (given < static_cast<std::size_t>(needed)) {
        throw Error("ragged::" + std::string(what) + ": " + sluice::detail::counted_were(given, "element") +
                    " given, expected at least " + std::to_string(needed));
    }
}
inline void require_same(const char* what, std::size_t given, std::int64_t expected) {
    if (given != static_cast<std::size_t>(expected)) {
        throw Error("ragged::" + std::string(what) + ": " + sluice::detail::counted_were(given, "element") +
                    " given, expected " + std::to_string(expected));
    }
}

} // namespace sluice::ragged::detail
