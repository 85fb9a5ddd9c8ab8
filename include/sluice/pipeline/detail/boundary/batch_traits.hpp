// What the type of a batch or a slot says of it.
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include <sluice/memory/buffer.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>

namespace sluice::detail {

template <class T>
struct IsStdArray : std::false_type {};
template <class T, std::size_t Size>
struct IsStdArray<std::array<T, Size>> : std::true_type {};
template <class T>
struct IsStdSpan : std::false_type {};
template <class T, std::size_t Extent>
struct IsStdSpan<std::span<T, Extent>> : std::true_type {};

/// Whether `append_key` gives the same for two values with the same bytes, as long as no memory is allocated or freed:
/// whether it looks at nothing that lies elsewhere.
template <class T>
constexpr bool told_by_bytes() {
    if constexpr (HasGraphKey<T>) {
        return false;
    } else if constexpr (std::is_pointer_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                         std::is_null_pointer_v<T>) {
        return true;
    } else if constexpr (std::is_array_v<T>) {
        return told_by_bytes<std::remove_all_extents_t<T>>();
    } else if constexpr (NamesMemory<T>) {
        return requires { typename T::backend; }
        || IsStdSpan<T>::value;
    } else if constexpr (IsOptional<T>::value || IsTupleLike<T>::value || OwnsHostElements<T>) {
        return false;
    } else if constexpr (std::is_empty_v<T>) {
        return true;
    } else if constexpr (PlainAggregate<T>) {
        using Told = decltype(with_members(std::declval<const T&>(), [](const auto&... members) {
            constexpr bool told = (told_by_bytes<std::remove_cvref_t<decltype(members)>>() && ...);
            // A reference is why a value cannot be assigned whose members can. Its bytes do not tell what it refers to.
            constexpr bool assignable =
                (std::is_move_assignable_v<std::remove_cvref_t<decltype(members)>> && ...);
            return std::bool_constant < told && (std::is_move_assignable_v<T> || !assignable) > {};
        }));
        return Told::value;
    } else {
        // Either its bytes are its key, or it has none.
        return true;
    }
}

/// Whether a callable may set something in a slot of type `T` on the host when it is called. The buffers and spans of sluice are
/// there for what it enqueues; a vector of them may be made longer.
template <class T>
constexpr bool has_host_part() {
    if constexpr (!std::is_same_v<T, typename WithoutTag<T>::type>) {
        return has_host_part<typename WithoutTag<T>::type>();
    } else if constexpr (std::is_array_v<T>) {
        return has_host_part<std::remove_all_extents_t<T>>();
    } else if constexpr (IsStdArray<T>::value) {
        return has_host_part<typename T::value_type>();
    } else if constexpr (std::is_empty_v<T>) {
        return false;
    } else if constexpr (NamesMemory<T> && requires { typename T::backend; }) {
        return false;
    } else if constexpr (PlainAggregate<T>) {
        using Has = decltype(with_members(std::declval<const T&>(), [](const auto&... members) {
            return std::bool_constant<(has_host_part<std::remove_cvref_t<decltype(members)>>() || ...)>{};
        }));
        return Has::value;
    } else {
        return true;
    }
}

/// Whether a batch refers to, or owns, host memory, which may change while work still reads it. Numbers do not, nor device
/// memory; of a plain pointer it is unknown. Whether it is `const` says nothing: others may name the same memory.
template <class T>
constexpr bool names_host_memory() {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> ||
                  std::is_null_pointer_v<T>) {
        return false;
    } else if constexpr (std::is_array_v<T>) {
        return names_host_memory<std::remove_all_extents_t<T>>();
    } else if constexpr (IsStdArray<T>::value) {
        return names_host_memory<typename T::value_type>();
    } else if constexpr (requires {
                             typename T::backend;
                             typename T::element_type;
                         }) {
        // One of sluice's spans: of device memory, in stream order, or of pinned memory.
        return std::is_same_v<T, PinnedSpan<typename T::element_type, typename T::backend>>;
    } else if constexpr (requires {
                             typename T::backend;
                             typename T::value_type;
                         }) {
        return !std::is_same_v<T, DeviceBuffer<typename T::value_type, typename T::backend>>;
    } else if constexpr (NamesMemory<T>) {
        return true;
    } else if constexpr (PlainAggregate<T>) {
        bool names = false;
        if constexpr (member_count<T>() > 0) {
            using Names = decltype(with_members(std::declval<const T&>(), [](const auto&... members) {
                return std::bool_constant<(names_host_memory<std::remove_cvref_t<decltype(members)>>() ||
                                           ...)>{};
            }));
            names = Names::value;
        }
        return names;
    } else {
        // A class of its own: one that cannot be copied as bytes owns what it refers to.
        return !std::is_trivially_copyable_v<T>;
    }
}

} // namespace sluice::detail
