// What is deduced where a stage or a slot maker can only be moved and is given by its name, and for an option that there is not:
// so a sentence comes first.
#pragma once

#include <concepts>
#include <type_traits>

namespace sluice::detail {

/// Stands for `{.slot = 3}`. Other options in braces, `{}` among them, do not convert to it.
struct NoSuchOption {
    struct Number {
        template <std::integral T>
        Number(T) {}
    } slot;
};
/// What is said of it.
#define SLUICE_NO_SUCH_OPTION                                                                                \
    "sluice::PipelineOptions: there is no option 'slot'; expected slots, as in {.slots = 3}"
/// Stands for what was given by its name, and can only be moved.
template <class Given>
struct OnlyMoves {
    OnlyMoves(const Given&) {}
};
template <class Given>
inline constexpr bool is_only_moved = false;
template <class Given>
inline constexpr bool is_only_moved<OnlyMoves<Given>> = true;
/// Whether it would have to be copied, and cannot be.
template <class Given>
concept GivenByName = std::is_lvalue_reference_v<Given> && std::is_object_v<std::remove_reference_t<Given>> &&
    !std::is_copy_constructible_v<std::remove_cvref_t<Given>>;

} // namespace sluice::detail
