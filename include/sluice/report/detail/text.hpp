// Titles, names and paths as a caller gives them.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// Text that was given as anything that a string can be made of. A null pointer throws `Error`: the standard library has an exception
/// of its own for it, which says nothing of reports.
class Text : public std::string {
public:
    Text() = default;
    template <class Given>
    requires std::convertible_to<Given, std::string> Text(Given&& given)
        : std::string(checked(std::forward<Given>(given))) {}

private:
    template <class Given>
    static decltype(auto) checked(Given&& given) {
        if constexpr (std::convertible_to<Given, const char*>)
            return require_text("the title, name, unit or path of a report", given);
        else
            return std::forward<Given>(given);
    }
};

} // namespace sluice::detail
