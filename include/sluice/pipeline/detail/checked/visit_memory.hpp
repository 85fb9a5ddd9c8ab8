/// \file
/// Which memory a value names or owns, for the checker.
#pragma once

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

/// Calls `visit(range, constant)` for the device and pinned memory that a value names or owns, as far as it shows its members;
/// `OwnersOnly`: that it owns. `constant`: whether the value, which is `const`, lets nobody write there.
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
        return; // Ordinary memory of the host's.
    } else if constexpr (IsOptional<T>::value) {
        if (value)
            visit_memory<OwnersOnly>(*value, visit);
    } else if constexpr (IsTupleLike<T>::value) {
        std::apply([&](const auto&... members) { (visit_memory<OwnersOnly>(members, visit), ...); }, value);
    } else if constexpr (OwnsHostElements<T>) {
        if constexpr (std::is_class_v<std::remove_cvref_t<decltype(*std::begin(value))>>) {
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
