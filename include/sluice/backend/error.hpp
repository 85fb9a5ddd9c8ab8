/// \file
/// The one exception type of sluice.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <sluice/backend/config.hpp>

namespace sluice {

/// What failed, why, and where. `what()` is one sentence that holds all of it.
///
/// An exception that is not an Error (a stage's or a source's own) is carried inside one:
/// `std::rethrow_if_nested` reaches it.
class Error : public std::runtime_error {
public:
    /// A mistake in how sluice is used, or a limit that it met: `message` says what was wrong and what was
    /// expected.
    explicit Error(const std::string& message);

    /// A backend's call that failed: `call` as it was written, the error's `name` (`cudaErrorInvalidValue`),
    /// what the backend says of it, and the place in the source.
    Error(std::string call, std::string name, const std::string& explanation, const char* file, int line);

    /// The same failure, with the stage and the batch that it happened in.
    Error in_stage(const std::string& stage, std::size_t batch) const;

    /// The same failure, with the stage alone.
    Error in_stage(const std::string& stage) const;

    /// The same failure, with the batch alone.
    Error in_batch(std::size_t batch) const;

    /// The same failure, with what is to be said before it.
    Error after(const std::string& words) const;

    /// The same failure, of work that came with the batch or earlier.
    Error at_or_before(std::size_t batch) const;

    /// The backend's call that failed, as written in the source; empty when none did.
    const std::string& call() const noexcept { return call_; }

    /// The backend's name for the error, such as `cudaErrorMemoryAllocation`; empty when there is none.
    const std::string& name() const noexcept { return name_; }

    /// The stage that failed; empty when the failure belongs to none.
    const std::string& stage() const noexcept { return stage_; }

    /// The batch, counted from 0 since the pipeline was made or reset, that failed.
    std::optional<std::size_t> batch() const noexcept { return batch_; }

private:
    SLUICE_ALWAYS_INLINE Error(const std::string& message, const Error& same) : Error(message) {
        call_ = same.call_;
        name_ = same.name_;
    }

    std::string message_;
    std::string call_;
    std::string name_;
    std::string stage_;
    std::optional<std::size_t> batch_;
};

namespace detail {

/// That `what` is none of an enumeration's values, `names`.
[[noreturn]] void throw_unnamed(const char* what, long long value, const char* names);
/// Throws `Error` unless `value`, which was given as `what`, is one of an enumeration's: these count from 0 to `last`.
template <class Named>
void require_named(const char* what, Named value, Named last, const char* names) {
    if (static_cast<long long>(value) < 0 || static_cast<long long>(value) > static_cast<long long>(last))
        throw_unnamed(what, static_cast<long long>(value), names);
}

/// Throws `Error` unless `milliseconds`, given as `what`, is 0 (none) to a year: clocks end a little beyond.
void require_timeout(const char* what, long long milliseconds);

/// Beyond any sensible number of slots, batches or threads, and less than fills a memory by their books alone.
inline constexpr int most_of_option = 1 << 20;
/// Throws `Error` unless `value`, which was given as `what`, is `least`, which stands for what `least_means` says, to `most`.
void require_within(const std::string& what, long long value, long long least, long long most,
                    const char* least_means = nullptr);

/// "1 row" or "2 rows", for a `number`, which may be in digits, and a noun whose plural ends with an s; "1 row was" or "2 rows were";
/// "there is 1 row" or "there are 2 rows".
/// @{
std::string counted(const std::string& number, const char* noun);
std::string counted_were(const std::string& number, const char* noun);
std::string there_are(const std::string& number, const char* noun);
SLUICE_ALWAYS_INLINE inline std::string counted(std::integral auto number, const char* noun) {
    return counted(std::to_string(number), noun);
}
SLUICE_ALWAYS_INLINE inline std::string counted_were(std::integral auto number, const char* noun) {
    return counted_were(std::to_string(number), noun);
}
SLUICE_ALWAYS_INLINE inline std::string there_are(std::integral auto number, const char* noun) {
    return there_are(std::to_string(number), noun);
}
/// @}

/// That the callable `what` is empty.
[[noreturn]] void throw_empty(const char* what);
/// Whether a callable is a null pointer or an empty `std::function`; a lambda, which converts to a pointer that is never null, isn't.
template <class Function>
SLUICE_ALWAYS_INLINE inline bool is_empty(const Function& function) noexcept {
    if constexpr (requires { function == nullptr; } &&
                  (std::is_pointer_v<Function> || !requires { +function; }))
        return function == nullptr;
    else
        return false;
}
/// Throws `Error` where a callable that is kept, and called later, is empty.
template <class Function>
SLUICE_ALWAYS_INLINE inline void require_callable(const char* what, const Function& function) {
    if (is_empty(function)) [[unlikely]]
        throw_empty(what);
}

/// That the text `what` is a null pointer.
[[noreturn]] void throw_no_text(const char* what);
/// Throws `Error` where a text that was given as a pointer is none.
SLUICE_ALWAYS_INLINE inline const char* require_text(const char* what, const char* text) {
    if (text == nullptr) [[unlikely]]
        throw_no_text(what);
    return text;
}

/// What the exception says that is being handled.
inline std::string words_of_handled() {
    try {
        throw;
    } catch (const std::exception& exception) {
        return exception.what();
    } catch (...) {
        return "an exception of an unknown type";
    }
}

/// Called from within a handler: throws an `Error` that says `words`, then what has been thrown, which is nested in it.
[[noreturn]] inline void throw_after(const std::string& words, const std::string& stage = {}) {
    const auto place = [&](const Error& error) { return stage.empty() ? error : error.in_stage(stage); };
    try {
        throw;
    } catch (const Error& error) {
        std::throw_with_nested(place(error.after(words)));
    } catch (...) {
        std::throw_with_nested(place(Error(words + words_of_handled())));
    }
}

} // namespace detail
} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/error.inl>
#endif
