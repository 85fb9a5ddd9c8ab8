// Which memory a value names or owns, for the checker.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/graph/detail/call_ref.hpp>
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
    const Piece piece{std::to_address(std::begin(range)), element_count(range), sizeof(*std::begin(range))};
    checked::Range bytes{piece.data, addressable_bytes(piece)};
    bytes.on_host = true;
    return bytes;
}

/// A pointer that owns an object, alone or with others.
template <class T>
concept OwningPointer = requires(const T& value) {
    { value.get() } -> std::convertible_to<const typename T::element_type*>;
    *value;
};

/// Calls `visit(range, constant)` for the memory that a value names or owns, as far as it shows its members. `constant`: whether the
/// value, which is `const`, gives no write access.
template <class T, class Visit>
void visit_memory(const T& value, Visit& visit) {
    if constexpr (std::is_pointer_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                  std::is_null_pointer_v<T>) {
        return;
    } else if constexpr (std::is_array_v<T>) {
        for (const auto& element : value)
            visit_memory(element, visit);
    } else if constexpr (requires { typename T::backend; }) {
        if constexpr (requires { declared_range(value, false); }) {
            if constexpr (
                has_span<const T> || requires { value.block(); } || requires { value.values(); }) {
                checked::Range range = declared_range(value, false);
                range.owned = !requires { typename T::element_type; };
                visit(range, range.owned || is_span_of_constants<T>);
            }
        }
    } else if constexpr (NamesMemory<T>) {
        // Of the standard library's spans: ordinary memory of the host's.
        if constexpr (requires { range_of_elements(value); })
            visit(range_of_elements(value), is_span_of_constants<T>);
    } else if constexpr (OwningPointer<T>) {
        const auto visit_shared = [&](checked::Range range, bool constant) {
            if (requires { value.use_count(); }) {
                range.owned = false;
                range.shared = true;
            }
            visit(range, constant);
        };
        if (value.get() != nullptr)
            visit_memory(*value, visit_shared);
    } else if constexpr (IsOptional<T>::value) {
        if (value)
            visit_memory(*value, visit);
    } else if constexpr (IsTupleLike<T>::value) {
        std::apply([&](const auto&... members) { (visit_memory(members, visit), ...); }, value);
    } else if constexpr (OwnsHostElements<T>) {
        using Element = std::remove_cvref_t<decltype(*std::begin(value))>;
        // A value that can be copied as bytes has its elements within itself: they are copied, or read in the call alone.
        if constexpr (std::is_trivially_copyable_v<Element> && !std::is_trivially_copyable_v<T>)
            visit(range_of_elements(value), true);
        if constexpr (std::is_class_v<Element>) {
            for (const auto& element : value)
                visit_memory(element, visit);
        }
    } else if constexpr (!std::is_same_v<T, typename WithoutTag<T>::type>) {
        visit_memory(static_cast<const typename WithoutTag<T>::type&>(value), visit);
    } else if constexpr (std::is_empty_v<T>) {
        return;
    } else if constexpr (PlainAggregate<T>) {
        with_members(value, [&](const auto&... members) { (visit_memory(members, visit), ...); });
    } else if constexpr (HasGraphKey<T>) {
        // What its work reads, the key shows; elements of the key's own have gone by now.
        const auto visit_named = [&](checked::Range range, bool constant) {
            range.owned = false;
            if (!range.on_host)
                visit(range, constant);
        };
        try {
            const auto& own = graph_key(value);
            visit_memory(own, visit_named);
        } catch (...) {
            // Who needs the key learns of it.
        }
    }
}

/// Is shown the memory that a batch or a slot names, as `visit_memory` does.
using MemoryVisitor = CallRef<void(const checked::Range&, bool)>;
/// Shows what a value owns and names, whatever its type. Null where it is not needed.
using ShowMemory = void (*)(const void* value, const MemoryVisitor& visit);

template <class T>
void show_memory(const void* value, const MemoryVisitor& visit) {
    visit_memory(*static_cast<const T*>(value), visit);
}
/// Of values of type `T` in pipelines of backend `B`.
template <class T, class B>
constexpr ShowMemory show_memory_of() noexcept {
    if constexpr (IsChecked<B>::value)
        return &show_memory<T>;
    else
        return nullptr;
}

} // namespace sluice::detail
