// What tells a batch from others, as far as captured work is concerned.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/backend/detail/iterators.hpp> // and with them std::to_address, which is all of <memory> that this takes
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/memory/detail/allocations.hpp>

namespace sluice {
template <class Tag, class T>
struct Tagged;
} // namespace sluice

namespace sluice::detail {

/// What a tag stands before.
template <class T>
struct WithoutTag {
    using type = T;
};
template <class Tag, class T>
struct WithoutTag<Tagged<Tag, T>> {
    using type = T;
};

/// One address for each type.
template <class T>
inline constexpr char type_tag = 0;

/// Converts to anything, for counting an aggregate's members.
struct AnyMember {
    template <class T>
    operator T() const noexcept; // never called; constexpr would have it be missed
};

template <class T, std::size_t... Is>
constexpr bool takes_initialisers(std::index_sequence<Is...>) {
    return requires { T{((void)Is, AnyMember{})...}; };
}
/// Whether `T{a, a, {b, b, b}, c, c}` is right, with as many of each as the sequences are long.
template <class T, std::size_t... As, std::size_t... Bs, std::size_t... Cs>
constexpr bool takes_nested(std::index_sequence<As...>, std::index_sequence<Bs...>,
                            std::index_sequence<Cs...>) {
    return requires {
        T{((void)As, AnyMember{})..., {((void)Bs, AnyMember{})...}, ((void)Cs, AnyMember{})...};
    };
}
/// The most initialisers that an aggregate takes, up to 17.
template <class T, std::size_t Count = 17>
constexpr std::size_t initialiser_count() {
    if constexpr (Count == 0 || takes_initialisers<T>(std::make_index_sequence<Count>{}))
        return Count;
    else
        return initialiser_count<T, Count - 1>();
}
/// How many of them the member takes to which initialiser `Position` goes: an array takes one for each element. Found by what goes
/// behind it where it is given braces, which are `Empty`, or have as many in them. 0: it takes no such braces.
template <class T, std::size_t Total, std::size_t Position, std::size_t Tried, bool Empty>
constexpr std::size_t initialisers_at() {
    if constexpr (Tried == 0) {
        return 0;
    } else if constexpr (takes_nested<T>(std::make_index_sequence<Position>{},
                                         std::make_index_sequence < Empty ? 0 : Tried > {},
                                         std::make_index_sequence<Total - Position - Tried>{}) &&
                         !takes_nested<T>(std::make_index_sequence<Position>{},
                                          std::make_index_sequence < Empty ? 0 : Tried > {},
                                          std::make_index_sequence<Total - Position - Tried + 1>{})) {
        return Tried;
    } else {
        return initialisers_at<T, Total, Position, Tried - 1, Empty>();
    }
}
template <class T, std::size_t Total, std::size_t Position = 0>
constexpr std::size_t members_from() {
    if constexpr (Position >= Total) {
        return 0;
    } else {
        // Empty ones first: with some in its braces, a vector of what cannot be copied does not compile.
        constexpr std::size_t by_none = initialisers_at<T, Total, Position, Total - Position, true>();
        if constexpr (by_none != 0) {
            return 1 + members_from<T, Total, Position + by_none>();
        } else {
            constexpr std::size_t by_some = initialisers_at<T, Total, Position, Total - Position, false>();
            return 1 + members_from<T, Total, Position + (by_some == 0 ? 1 : by_some)>();
        }
    }
}
/// The members of an aggregate; more than 16 initialisers give 17.
template <class T>
constexpr std::size_t member_count() {
    constexpr std::size_t total = initialiser_count<T>();
    if constexpr (total > 16)
        return 17;
    else
        return members_from<T, total>();
}

/// Calls `visit(member...)` with the members of an aggregate of at most 16.
template <class T, class Visit>
constexpr decltype(auto) with_members(const T& value, Visit&& visit) {
    constexpr std::size_t count = member_count<T>();
#define SLUICE_MEMBERS(number, ...)                                                                          \
    else if constexpr (count == number) {                                                                    \
        const auto& [__VA_ARGS__] = value;                                                                   \
        return visit(__VA_ARGS__);                                                                           \
    }
    if constexpr (count == 0) {
        return visit();
    }
    SLUICE_MEMBERS(1, a0)
    SLUICE_MEMBERS(2, a0, a1)
    SLUICE_MEMBERS(3, a0, a1, a2)
    SLUICE_MEMBERS(4, a0, a1, a2, a3)
    SLUICE_MEMBERS(5, a0, a1, a2, a3, a4)
    SLUICE_MEMBERS(6, a0, a1, a2, a3, a4, a5)
    SLUICE_MEMBERS(7, a0, a1, a2, a3, a4, a5, a6)
    SLUICE_MEMBERS(8, a0, a1, a2, a3, a4, a5, a6, a7)
    SLUICE_MEMBERS(9, a0, a1, a2, a3, a4, a5, a6, a7, a8)
    SLUICE_MEMBERS(10, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9)
    SLUICE_MEMBERS(11, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10)
    SLUICE_MEMBERS(12, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11)
    SLUICE_MEMBERS(13, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12)
    SLUICE_MEMBERS(14, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13)
    SLUICE_MEMBERS(15, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14)
    SLUICE_MEMBERS(16, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15)
#undef SLUICE_MEMBERS
}

/// Converts to base classes of `T` alone, of which an aggregate's first initialiser is one where it has any.
template <class T>
struct AnyBase {
    template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) constexpr operator Base() const noexcept;
};

/// An aggregate whose members can be named: no base class, which structured bindings do not look into, not too many, and
/// no reference through which something may be changed, which `AnyMember` does not convert to.
template <class T>
concept PlainAggregate = std::is_aggregate_v<T> && std::is_class_v<T> &&
    (std::is_empty_v<T> || (member_count<T>() <= 16 && !requires { T{AnyBase<T>{}}; } &&
                            takes_initialisers<T>(std::make_index_sequence<initialiser_count<T>()>{})));

/// The bytes of keys, one after the other. Memory that it once had it keeps.
class KeyBytes {
public:
    const std::byte* data() const noexcept { return bytes_.data(); }
    std::size_t size() const noexcept { return size_; }
    void clear() noexcept { size_ = 0; }
    /// From now on addresses are left out: what is left is the batch's shape.
    void leave_out_addresses() noexcept { addresses_ = false; }
    bool has_addresses() const noexcept { return addresses_; }
    void append(const void* bytes, std::size_t count);
    friend bool operator==(const KeyBytes& a, const KeyBytes& b) noexcept {
        return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.data(), b.data(), a.size_) == 0);
    }

private:
    List<std::byte> bytes_;
    std::size_t size_ = 0;
    bool addresses_ = true;
};

template <class T>
void append_scalar(KeyBytes& key, const T& value) {
    key.append(&value, sizeof(value));
}

/// An address, and which of sluice's allocations it points into: another one at the same place is another batch's.
void append_address(KeyBytes& key, const volatile void* address);

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void KeyBytes::append(const void* bytes, std::size_t count) {
    if (bytes_.size() - size_ < count) [[unlikely]]
        bytes_.resize(2 * bytes_.size() + count + 64);
    if (count > 0)
        std::memcpy(bytes_.data() + size_, bytes, count);
    size_ += count;
}
SLUICE_BODY void append_address(KeyBytes& key, const volatile void* address) {
    if (!key.has_addresses())
        return;
    append_scalar(key, address);
    append_scalar(key, Allocations::instance().number_of(const_cast<const void*>(address)));
}
#endif

template <class T>
concept HasGraphKey = requires(const T& value) {
    graph_key(value);
};
/// What a function beside the batch's type has thrown is nested.
struct BatchFailure : Error {
    using Error::Error;
};
/// Within a handler, of what `function` has thrown.
[[noreturn]] inline void throw_batch_failure(const char* function) {
    std::throw_with_nested(BatchFailure(std::string("its ") + function + " threw: " + words_of_handled()));
}
/// A buffer or a span of sluice's or the standard library's: what it names is read when the work runs.
template <class T>
concept NamesMemory = requires(const T& value) {
    { value.data() } -> std::convertible_to<const void*>;
    { value.size() } -> std::convertible_to<std::size_t>;
}
&&(
    requires { typename T::backend; } || requires { typename T::element_type; });
/// Ordinary memory of its own, such as a vector's: its elements are read when the work is captured.
template <class T>
concept OwnsHostElements = requires(const T& value) {
    { std::begin(value) } -> std::contiguous_iterator;
    { std::end(value) } -> std::same_as<decltype(std::begin(value))>;
}
&&!requires { typename T::backend; }
&&!requires { typename T::element_type; }
&&!std::is_array_v<T>;

template <class T>
std::size_t element_count(const T& range) {
    return static_cast<std::size_t>(std::end(range) - std::begin(range));
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsTupleLike : std::false_type {};
template <class... Ts>
struct IsTupleLike<std::tuple<Ts...>> : std::true_type {};
template <class First, class Second>
struct IsTupleLike<std::pair<First, Second>> : std::true_type {};

template <class T>
bool append_key(KeyBytes& key, const T& value);

/// A range by its elements alone, wherever they lie.
template <class T>
bool append_elements(KeyBytes& key, const T& range) {
    append_scalar(key, element_count(range));
    bool known = true;
    for (const auto& element : range)
        known = known && append_key(key, element);
    return known;
}

/// Appends what tells `value` from others of its type. False: it cannot be told.
template <class T>
bool append_key(KeyBytes& key, const T& value) {
    if constexpr (HasGraphKey<T>) {
        const auto& own = [&]() -> decltype(auto) {
            try {
                return graph_key(value);
            } catch (...) {
                throw_batch_failure("graph_key");
            }
        }();
        if constexpr (OwnsHostElements<std::remove_cvref_t<decltype(own)>>)
            return append_elements(key, own);
        else
            return append_key(key, own);
    } else if constexpr (std::is_pointer_v<T>) {
        if constexpr (std::is_function_v<std::remove_pointer_t<T>>)
            append_scalar(key, value);
        else
            append_address(key, static_cast<const volatile void*>(value));
        return true;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_null_pointer_v<T>) {
        append_scalar(key, value);
        return true;
    } else if constexpr (std::is_array_v<T>) {
        bool known = true;
        for (const auto& element : value)
            known = append_key(key, element) && known;
        return known;
    } else if constexpr (NamesMemory<T>) {
        append_address(key, value.data());
        append_scalar(key, static_cast<std::size_t>(value.size()));
        return true;
    } else if constexpr (IsOptional<T>::value) {
        append_scalar(key, value.has_value());
        return !value || append_key(key, *value);
    } else if constexpr (IsTupleLike<T>::value) {
        return std::apply([&](const auto&... members) { return (append_key(key, members) && ... && true); },
                          value);
    } else if constexpr (OwnsHostElements<T>) {
        // Elements that lie within the value, as a std::array's, are where it is.
        if constexpr (!std::is_trivially_copyable_v<T>)
            append_address(key, std::to_address(std::begin(value)));
        // A large one costs more to compare than a graph saves.
        return element_count(value) <= 4096 && append_elements(key, value);
    } else if constexpr (std::is_empty_v<T>) {
        return true;
    } else if constexpr (PlainAggregate<T>) {
        return with_members(
            value, [&](const auto&... members) { return (append_key(key, members) && ... && true); });
    } else if constexpr (std::is_trivially_copyable_v<T> && std::is_copy_assignable_v<T>) {
        // Without references, then, whose bytes would not tell what they refer to.
        // With its padding, if it has any: then equal ones may be taken for different ones, never the other way.
        key.append(&value, sizeof(value));
        return true;
    } else {
        return false;
    }
}

} // namespace sluice::detail
