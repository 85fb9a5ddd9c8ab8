// What a failing call says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sluice/backend/error.hpp>

namespace sluice::test {

/// The `sluice::Error` that `call()` throws, if it throws one. Other exceptions pass through.
template <class F>
std::optional<Error> caught_error(F&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

/// The text of the `sluice::Error` that `call()` throws; empty when it throws none.
template <class F>
std::string text_of(F&& call) {
    const std::optional<Error> error = caught_error(call);
    return error ? std::string(error->what()) : std::string();
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// What a use of the owner `what`, such as "stream", throws once it was moved from.
inline std::string moved_from(const std::string& what) {
    return "the " + what + " was moved from or released; assign to it before it is used again";
}

} // namespace sluice::test
