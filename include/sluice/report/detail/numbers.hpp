// Numbers as text. Unlike printf's, it is the same in every locale.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>

namespace sluice::detail::numbers {

/// The shortest text that reads back as `value`; "nan", "inf" and "-inf" for what is not finite.
inline std::string shortest(double value) {
    char digits[32]; // a double's shortest form takes 24
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// `value` in `format` with `decimals` decimals, 9 at most.
inline std::string formatted(double value, std::chars_format format, int decimals) {
    char digits[32]; // takes what `fixed` gives below 1e20
    return {digits, std::to_chars(digits, digits + sizeof digits, value, format, decimals).ptr};
}

/// `value` as 1.235e+09.
inline std::string scientific(double value, int decimals) {
    return formatted(value, std::chars_format::scientific, decimals);
}

/// `value` with `decimals` decimals, 9 at most; as 1.2e+20 where it is that large, and "nan" whatever its sign.
inline std::string fixed(double value, int decimals) {
    if (value >= 1e20 || value <= -1e20)
        return scientific(value, 1);
    return value == value ? formatted(value, std::chars_format::fixed, decimals) : "nan";
}

/// `fixed` without zeros at the end.
inline std::string trimmed(double value, int decimals = 2) {
    std::string text = fixed(value, decimals);
    if (decimals > 0 && text.find_first_of("ein") == std::string::npos) {
        text.resize(text.find_last_not_of('0') + 1);
        text.resize(text.back() == '.' ? text.size() - 1 : text.size());
    }
    return text == "-0" ? "0" : text;
}

/// From here on numbers are written as 1.2e+07 and the like.
inline constexpr double large = 999999.5;

/// A share of 0.25 as "25.0", or "25" where there are to be no decimals.
inline std::string percent(double share, int decimals = 1) {
    return share < large && share > -large ? fixed(100 * share, decimals) : scientific(100 * share, 1);
}

/// How many decimals make `size` a number of four digits.
inline int decimals_of(double size) { return size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0; }

/// Four digits, as 0.123, 12.34 or 1234, or up to six of a whole number; 1.2e+07 and the like from a million on.
inline std::string four_digits(double value) {
    const double size = value < 0 ? -value : value;
    return size >= large ? scientific(value, 1) : fixed(value, decimals_of(size));
}

/// Four digits without zeros at the end: "0.5", "12.25", "123456", "1.235e+09".
inline std::string number_text(double value) {
    const double size = value < 0 ? -value : value;
    return size >= large ? scientific(value, 3) : trimmed(value, decimals_of(size));
}

inline std::string count(std::size_t value) {
    return value < 10000000 ? std::to_string(value) : four_digits(static_cast<double>(value));
}

/// A unit of time, and how many microseconds it has.
struct TimeUnit {
    const char* name;
    double microseconds;
};

/// The unit in which `time`, in microseconds, has four digits before the point at most, up to seconds.
inline TimeUnit unit_for(double time) {
    if (time < 9999.5)
        return {"us", 1};
    return time < 9999.5e3 ? TimeUnit{"ms", 1e3} : TimeUnit{"s", 1e6};
}

} // namespace sluice::detail::numbers
