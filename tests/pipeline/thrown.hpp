// What is inside an exception.
#pragma once

#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <sluice/backend/error.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace sluice::test {

/// Whether `text` holds all of `parts`; says which one is missing.
inline bool contains_all(const std::string& text, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
        if (!contains(text, part)) {
            MESSAGE("'" << std::string(part) << "' is missing in: " << text);
            return false;
        }
    }
    return true;
}

/// An `Error` that was caught, with what is nested in it.
class Caught {
public:
    /// Calls `work`, and keeps the `Error` that it throws.
    template <class Work>
    explicit Caught(Work&& work) {
        try {
            work();
        } catch (const Error& error) {
            error_ = error;
            whole_ = std::current_exception();
        }
    }

    /// Whether an `Error` was thrown.
    explicit operator bool() const { return error_.has_value(); }
    const Error* operator->() const { return &error_.value(); }
    /// Its text; empty without one.
    std::string text() const { return error_ ? error_->what() : std::string(); }

    /// Whether, at any depth, a `T` is nested in the error for which `holds(value)`.
    template <class T, class Holds>
    bool nests(Holds&& holds) const {
        return whole_ != nullptr && search<T>(whole_, holds, false);
    }

    /// Whether a `T` is what `std::rethrow_if_nested` throws of it.
    template <class T>
    bool nests_directly() const {
        try {
            if (whole_ != nullptr)
                std::rethrow_exception(whole_);
        } catch (const std::nested_exception& outer) {
            try {
                if (outer.nested_ptr() != nullptr)
                    outer.rethrow_nested();
            } catch (const T&) {
                return true;
            } catch (...) {
            }
        } catch (...) {
        }
        return false;
    }

private:
    template <class T, class Holds>
    static bool search(const std::exception_ptr& exception, Holds& holds, bool nested) {
        try {
            std::rethrow_exception(exception);
        } catch (const T& value) {
            if (nested && holds(value))
                return true;
            return search_inside<T>(value, holds);
        } catch (const std::exception& other) {
            return search_inside<T>(other, holds);
        } catch (...) {
            return false;
        }
    }
    template <class T, class E, class Holds>
    static bool search_inside(const E& exception, Holds& holds) {
        if constexpr (std::is_polymorphic_v<E>) {
            if (const auto* outer = dynamic_cast<const std::nested_exception*>(&exception))
                return outer->nested_ptr() != nullptr && search<T>(outer->nested_ptr(), holds, true);
        }
        return false;
    }

    std::optional<Error> error_;
    std::exception_ptr whole_;
};

} // namespace sluice::test
