// Row operations on the CPU, by sluice's Host backend on the calling thread.
#include <sluice/ragged/rows.hpp>

#include "rows_ops.hpp"

namespace sluice_torch {
namespace {

constexpr std::int64_t rows_a_thread = 256;

template <class T>
sluice::DeviceSpan<T, sluice::Host> span_of(T* data, std::int64_t size) {
    return {data, static_cast<std::size_t>(size)};
}

/// A stream on which work is done at once, and the counts that it reads.
template <class T>
struct Inline {
    sluice::BasicStream<sluice::Host> stream = sluice::BasicStream<sluice::Host>::make_inline();
    sluice::RaggedCounts counts;
    sluice::RaggedView<const T> view;

    explicit Inline(const RowsIn<T>& rows)
        : counts{rows.rows, rows.offsets[rows.rows], rows.offsets[rows.rows], 0}, view(rows.view(&counts)) {}
    Inline(const Inline&) = delete;
    Inline& operator=(const Inline&) = delete;
};

/// What is in no row becomes 0.
template <class T>
void clear_rest(const RowsIn<T>& rows, T* out) {
    for (std::int64_t i = rows.offsets[rows.rows]; i < rows.size; ++i)
        out[i] = T(0);
}

struct Cpu {
    static constexpr bool on_cpu = true;

    template <class T>
    static void sum(const Tensor&, const RowsIn<T>& rows, T* out) {
        Inline<T> on(rows);
        sluice::ragged::sum(on.stream, span_of(out, rows.rows), on.view);
        on.stream.sync();
    }
    template <class T>
    static void max(const Tensor&, const RowsIn<T>& rows, T* out, std::int64_t* positions) {
        Inline<T> on(rows);
        (sluice::ragged::max)(on.stream, span_of(out, rows.rows), on.view);
        sluice::ragged::argmax(on.stream, span_of(positions, rows.rows), on.view);
        on.stream.sync();
    }
    template <class T>
    static void softmax(const Tensor&, const RowsIn<T>& rows, T* out) {
        Inline<T> on(rows);
        sluice::ragged::softmax(on.stream, span_of(out, rows.size), on.view);
        on.stream.sync();
        clear_rest(rows, out);
    }
    template <class T>
    static void sort(const Tensor&, const RowsIn<T>& rows, T* out, std::int64_t* positions, bool descending) {
        Inline<T> on(rows);
        sluice::RaggedWorkspace<sluice::Host> workspace(sluice::RaggedCapacity{rows.rows, rows.size});
        if (rows.size > 0) {
            sluice::ragged::sort_with_positions(
                on.stream, span_of(out, rows.size), span_of(positions, rows.size), on.view, workspace,
                descending ? sluice::ragged::Order::descending : sluice::ragged::Order::ascending);
        }
        on.stream.sync();
        clear_rest(rows, out);
        clear_rest(RowsIn<std::int64_t>{nullptr, rows.offsets, rows.rows, rows.size}, positions);
    }
    template <class Body, class T>
    static void map(const Tensor&, const RowsIn<T>& rows, const Body& body) {
        const auto some = [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row)
                map_row(body, rows, row, 0, 1);
        };
        torch::stable::parallel_for(0, rows.rows, rows_a_thread, some);
        map_row(body, rows, rows.rows, 0, 1);
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CPU, library) { register_rows<Cpu>(library); }

} // namespace sluice_torch
