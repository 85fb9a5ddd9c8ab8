// Bodies of error.hpp.
#pragma once

#include <string>
#include <utility>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/error.hpp>

namespace sluice {

SLUICE_BODY Error::Error(const std::string& message) : std::runtime_error(message), message_(message) {}

SLUICE_BODY Error::Error(std::string call, std::string name, const std::string& explanation, const char* file,
                         int line)
    : Error(call + " failed: " + name + (explanation.empty() ? "" : " (" + explanation + ")") + " at " +
            file + ":" + std::to_string(line)) {
    call_ = std::move(call);
    name_ = std::move(name);
}

SLUICE_BODY Error Error::in_stage(const std::string& stage, std::size_t batch) const {
    Error placed{"stage '" + stage + "', batch " + std::to_string(batch) + ": " + message_, *this};
    placed.stage_ = stage;
    placed.batch_ = batch;
    return placed;
}

SLUICE_BODY Error Error::in_stage(const std::string& stage) const {
    Error placed{"stage '" + stage + "': " + message_, *this};
    placed.stage_ = stage;
    return placed;
}

SLUICE_BODY Error Error::in_batch(std::size_t batch) const {
    Error placed{"batch " + std::to_string(batch) + ": " + message_, *this};
    placed.batch_ = batch;
    return placed;
}

SLUICE_BODY Error Error::after(const std::string& words) const {
    Error told{words + message_, *this};
    told.stage_ = stage_;
    told.batch_ = batch_;
    return told;
}

SLUICE_BODY Error Error::at_or_before(std::size_t batch) const {
    return {"batch " + std::to_string(batch) +
                " or earlier (PipelineOptions::launch_blocking tells which, and the stage): " + message_,
            *this};
}

SLUICE_BODY void detail::throw_moved_from(const char* what) {
    throw Error(std::string("the ") + what +
                " was moved from or released; assign to it before it is used again");
}

// As few of the string's functions as will do: a compiler makes each where the headers are used alone.
namespace detail {
inline bool is_one(const std::string& number) { return number.size() == 1 && number[0] == '1'; }
} // namespace detail

SLUICE_BODY std::string detail::counted(const std::string& number, const char* noun) {
    std::string text = number + " " + noun;
    if (is_one(number))
        return text;
    const char last = text[text.size() - 1];
    if (last == 'y')
        text.resize(text.size() - 1);
    return text + (last == 'y' ? "ies" : last == 'h' ? "es" : "s");
}

SLUICE_BODY std::string detail::counted_were(const std::string& number, const char* noun) {
    return counted(number, noun) + (is_one(number) ? " was" : " were");
}

SLUICE_BODY std::string detail::there_are(const std::string& number, const char* noun) {
    return (is_one(number) ? "there is " : "there are ") + counted(number, noun);
}

SLUICE_BODY void detail::throw_unnamed(const char* what, long long value, const char* names) {
    throw Error(std::string(what) + " is " + std::to_string(value) + ", which has no name; expected " +
                names);
}

SLUICE_BODY void detail::throw_empty(const char* what) {
    throw Error(std::string(what) + " is empty, or was moved from; expected a function to call");
}

SLUICE_BODY void detail::throw_no_text(const char* what) {
    throw Error(std::string(what) + " is a null pointer; expected a string");
}

SLUICE_BODY void detail::require_within(const std::string& what, long long value, long long least,
                                        long long most, const char* least_means) {
    if (value < least || value > most)
        throw Error(what + " is " + std::to_string(value) + "; expected " + std::to_string(least) +
                    (least_means != nullptr ? std::string(" (") + least_means + ")" : "") + " to " +
                    std::to_string(most));
}

SLUICE_BODY void detail::require_timeout(const char* what, long long milliseconds) {
    constexpr long long most = 365LL * 24 * 3600 * 1000;
    if (milliseconds < 0 || milliseconds > most) {
        throw Error(std::string(what) + " is " + std::to_string(milliseconds) + " ms; expected 0 (none) to " +
                    std::to_string(most) + ", a year");
    }
}

} // namespace sluice
