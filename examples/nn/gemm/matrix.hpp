/// \file
/// Row-major matrices in the memory of a backend's device.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <sluice/memory/span.hpp>

namespace nn {

/// A row-major matrix: `rows()` rows of `columns()` elements without gaps. Trivially copyable; owns nothing.
template <class T, sluice::Backend B>
class Matrix {
public:
    /// Views `elements` as a matrix. Throws `sluice::Error` unless they are exactly `rows * columns`.
    Matrix(sluice::DeviceSpan<T, B> elements, std::size_t rows, std::size_t columns);

    T* data() const noexcept { return elements_.data(); }
    std::size_t rows() const noexcept { return rows_; }
    std::size_t columns() const noexcept { return columns_; }
    std::size_t size() const noexcept { return elements_.size(); }
    sluice::DeviceSpan<T, B> span() const noexcept { return elements_; }

    /// The same elements in rows of another length. Merges the four rows of a 2×2 block into one, or splits a row into
    /// four. Throws `sluice::Error` when the length does not divide the number of elements.
    Matrix with_columns(std::size_t columns) const;

    /// A view of elements that may be written serves where they are only read.
    template <class U>
    requires(!std::is_const_v<U> && std::is_same_v<const U, T>) Matrix(const Matrix<U, B>& other)
        : elements_(other.span()), rows_(other.rows()), columns_(other.columns()) {}

private:
    sluice::DeviceSpan<T, B> elements_;
    std::size_t rows_;
    std::size_t columns_;
};

/// Arguments that convert, since the backend is deduced from the stream alone.
template <sluice::Backend B>
using MatrixArgument = std::type_identity_t<Matrix<float, B>>;
template <sluice::Backend B>
using ConstMatrixArgument = std::type_identity_t<Matrix<const float, B>>;
template <class T, sluice::Backend B>
using SpanArgument = std::type_identity_t<sluice::DeviceSpan<T, B>>;

/// Throws `sluice::Error` with one sentence, unless `actual` is what is `expected` of `what`.
inline void require_size(const char* what, std::size_t actual, std::size_t expected);

// ---------------------------------------------------------------------------------------------------------------

inline void require_size(const char* what, std::size_t actual, std::size_t expected) {
    if (actual != expected) [[unlikely]] {
        throw sluice::Error(std::string(what) + ": " + std::to_string(actual) + " were given, expected " +
                            std::to_string(expected));
    }
}

template <class T, sluice::Backend B>
Matrix<T, B>::Matrix(sluice::DeviceSpan<T, B> elements, std::size_t rows, std::size_t columns)
    : elements_(elements), rows_(rows), columns_(columns) {
    if (elements.size() != rows * columns) [[unlikely]] {
        throw sluice::Error("a matrix of " + std::to_string(rows) + " rows and " + std::to_string(columns) +
                            " columns cannot be made of " + std::to_string(elements.size()) + " elements");
    }
}

template <class T, sluice::Backend B>
Matrix<T, B> Matrix<T, B>::with_columns(std::size_t columns) const {
    if (columns == 0 || size() % columns != 0) [[unlikely]] {
        throw sluice::Error("a matrix of " + std::to_string(size()) +
                            " elements cannot be split into rows of " + std::to_string(columns));
    }
    return {elements_, size() / columns, columns};
}

} // namespace nn
