/// \file
/// Runs a functor for every index. On the CPU here; for_each.cuh, which nvcc gets with this file, has the GPU's.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/stream.hpp>

namespace nn::detail {

/// Enqueues `functor(i)` for i = 0 … count - 1, in any order. The functor is a small struct of pointers and numbers.
template <class Functor>
void for_each(sluice::HostStreamRef stream, std::size_t count, const Functor& functor);

/// Enqueues `functor(row, column)` for every element of a matrix, in any order.
template <class Functor>
void for_each(sluice::HostStreamRef stream, std::size_t rows, std::size_t columns, const Functor& functor);

/// Calls `functor.at<Width>(row, column, of_column, of_row)` for all elements of a matrix, `Width` columns at a time, in any order.
/// `functor.of_column<Width>(column)` loads what `at` needs of a column, and `functor.of_row<Width>(row, column)` what it needs of an
/// element: on a device several rows ahead.
template <std::size_t Width, class Functor>
void for_each_row(sluice::HostStreamRef stream, std::size_t rows, std::size_t columns,
                  const Functor& functor);

/// `a / b`; in 32 bits where that suffices, since devices and processors alike are much slower in 64.
SLUICE_HOST_DEVICE inline std::size_t quotient(std::size_t a, std::size_t b) {
    if (((a | b) >> 32) == 0)
        return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
    return a / b;
}

// ---------------------------------------------------------------------------------------------------------------

template <class Functor>
void for_each(sluice::HostStreamRef stream, std::size_t count, const Functor& functor) {
    auto work = [count, functor] {
        const Functor local = functor; // of whose members the compiler knows that no store changes them
        for (std::size_t i = 0; i < count; ++i)
            local(i);
    };
    static_assert(sizeof(work) <= sluice::host::Task::inline_bytes,
                  "the functor would be copied to the heap");
    stream.enqueue(std::move(work));
}

template <class Functor>
void for_each(sluice::HostStreamRef stream, std::size_t rows, std::size_t columns, const Functor& functor) {
    auto work = [rows, columns, functor] {
        const Functor local = functor;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column)
                local(row, column);
        }
    };
    static_assert(sizeof(work) <= sluice::host::Task::inline_bytes,
                  "the functor would be copied to the heap");
    stream.enqueue(std::move(work));
}

template <std::size_t Width, class Functor>
void for_each_row(sluice::HostStreamRef stream, std::size_t rows, std::size_t columns,
                  const Functor& functor) {
    static_assert(Width == 1);
    const auto element = [functor](std::size_t row, std::size_t column) {
        functor.template at<1>(row, column, functor.template of_column<1>(column),
                               functor.template of_row<1>(row, column));
    };
    for_each(stream, rows, columns, element);
}

} // namespace nn::detail

#if defined(__CUDACC__)
#include <nn/elementwise/for_each.cuh>
#endif
