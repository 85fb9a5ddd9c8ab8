/// \file
/// Which memory a value names or owns, for the checker.
#pragma once

#include <iterator> // and with it std::to_address, which is all of <memory> that this takes
#include <optional>
#include <tuple>
#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/memory/detail/checked/declared_range.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>

namespace sluice::detail {

template <class T>
inline constexpr bool is_span_of_constants = requires {
    typename T::element_type;
    requires std::is_const_v<typename T::element_type>;
};

/// The bytes of a contiguous range's elements, in ordinary memory of the host's.
template <class T>
checked::Range range_of_elements(const T& range) {
    checked::Range bytes{std::to_address(std::begin(range)),
                         element_count(range) * sizeof(*std::begin(range))};
    bytes.on_host = true;
    return bytes;
}

/// Calls `visit(range, constant)` for the memory that a value names or owns, as far as it shows its members; `OwnersOnly`: for
/// the device and pinned memory that it owns. `constant`: whether the value, which is `const`, lets nobody write there.
template <bool OwnersOnly, class T, class Visit>
void visit_memory(const T& value, Visit& visit) {
    if constexpr (std::is_pointer_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                  std::is_null_pointer_v<T>) {
        return;
    } else if constexpr (std::is_array_v<T>) {
        for (const auto& element : value)
            visit_memory<OwnersOnly>(element, visit);
    } else if constexpr (requires { typename T::backend; }) {
        constexpr bool owns = !requires { typename T::element_type; };
        if constexpr ((owns || !OwnersOnly) && requires { declared_range(value, false); }) {
            if constexpr (
                has_span<const T> || requires { value.block(); } || requires { value.values(); }) {
                visit(declared_range(value, false), owns || is_span_of_constants<T>);
            }
        }
    } else if constexpr (NamesMemory<T>) {
        // Of the standard library's spans: ordinary memory of the host's.
        if constexpr (!OwnersOnly && requires { range_of_elements(value); })
            visit(range_of_elements(value), is_span_of_constants<T>);
    } else if constexpr (IsOptional<T>::value) {
        if (value)
            visit_memory<OwnersOnly>(*value, visit);
    } else if constexpr (IsTupleLike<T>::value) {
        std::apply([&](const auto&... members) { (visit_memory<OwnersOnly>(members, visit), ...); }, value);
    } else if constexpr (OwnsHostElements<T>) {
        using Element = std::remove_cvref_t<decltype(*std::begin(value))>;
        // A value that can be copied as bytes has its elements within itself: they are copied, or read in the call alone.
        if constexpr (!OwnersOnly && std::is_trivially_copyable_v<Element> &&
                      !std::is_trivially_copyable_v<T>)
            visit(range_of_elements(value), true);
        if constexpr (std::is_class_v<Element>) {
            for (const auto& element : value)
                visit_memory<OwnersOnly>(element, visit);
        }
    } else if constexpr (std::is_empty_v<T>) {
        return;
    } else if constexpr (PlainAggregate<T>) {
        with_members(value, [&](const auto&... members) { (visit_memory<OwnersOnly>(members, visit), ...); });
    }
}

} // namespace sluice::detail
