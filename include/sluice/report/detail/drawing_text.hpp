// Numbers and text as the writers of timelines put them into SVG, HTML and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/report/detail/timeline_text.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice::detail::drawing {

/// `value` with at most `decimals` decimals and no trailing zeros. printf follows the program's locale, where
/// the decimal point may be a comma. |value| x 10^decimals must be below 9e18.
inline std::string fixed(double value, int decimals = 2) {
    double scaled = value < 0 ? -value : value;
    std::int64_t one = 1;
    for (int i = 0; i < decimals; ++i)
        one *= 10;
    scaled = scaled * static_cast<double>(one) + 0.5;
    const auto units = static_cast<std::int64_t>(scaled);
    std::string text = std::to_string(units / one);
    if (units % one != 0) {
        std::string fraction = std::to_string(units % one + one);
        fraction[0] = '.';
        fraction.resize(fraction.find_last_not_of('0') + 1);
        text += fraction;
    }
    return value < 0 && units != 0 ? "-" + text : text;
}

/// A time in the unit that suits its size: "12.5 µs", "3 ms", "1.25 s".
inline std::string time_text(double microseconds) {
    const double size = microseconds < 0 ? -microseconds : microseconds;
    if (size < 1000)
        return fixed(microseconds) + " \u00b5s";
    if (size < 1e6)
        return fixed(microseconds / 1e3) + " ms";
    return fixed(microseconds / 1e6) + " s";
}

inline const char* kind_text(SpanKind kind) {
    constexpr const char* texts[] = {"compute", "copy", "source", "wait"};
    return static_cast<std::size_t>(kind) < 4 ? texts[static_cast<std::size_t>(kind)] : "other";
}

/// One character of UTF-8.
struct Character {
    std::uint32_t code;
    std::size_t bytes;
};

/// The character at `text[at]`; U+FFFD for bytes that are none.
inline Character character_at(std::string_view text, std::size_t at) {
    const timeline_text::CodePoint point = timeline_text::code_point_at(text, at);
    return {static_cast<std::uint32_t>(point.value), point.bytes};
}

/// `text` with U+FFFD in the place of what XML and UTF-8 have no room for: broken bytes, control characters.
inline std::string clean_text(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text, at);
        const bool control = (c.code < 0x20 && c.code != '\t' && c.code != '\n' && c.code != '\r') ||
                             c.code == 0x7F || c.code == 0xFFFE || c.code == 0xFFFF;
        if (control || c.code == 0xFFFD)
            out += "\xEF\xBF\xBD";
        else
            out += text.substr(at, c.bytes);
        at += c.bytes;
    }
    return out;
}

/// For XML and HTML, between tags and in attributes.
inline std::string escape_xml(std::string_view text) {
    std::string out;
    for (const char c : clean_text(text)) {
        constexpr std::string_view special = "&<>\"'";
        constexpr const char* entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
        const std::size_t which = special.find(c);
        if (which == std::string_view::npos)
            out += c;
        else
            out += entities[which];
    }
    return out;
}

/// A JSON string with its quotes that may stand in an HTML `<script>`: no `<`, `>` or `&`.
inline std::string json_string(std::string_view text) {
    constexpr const char* hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : clean_text(text)) {
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x20 || c == '<' || c == '>' || c == '&' || c == '"' || c == '\\') {
            out += "\\u00";
            out += hex[code >> 4];
            out += hex[code & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

/// About how many pixels `text` takes at 12 pixels' font size, rather too many than too few.
inline double text_width(std::string_view text) {
    double width = 0;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text, at);
        const bool broad =
            (c.code >= 'A' && c.code <= 'Z') || c.code == 'm' || c.code == 'w' || c.code == '%';
        width += c.code >= 0x1100 && c.code != 0x2026 && c.code != 0xFFFD ? 12.5 : broad ? 9 : 6.5;
        at += c.bytes;
    }
    return width;
}

/// `text`, or as much of its beginning as fits into `pixels` with an ellipsis behind it.
inline std::string shortened(const std::string& text, double pixels) {
    if (text_width(text) <= pixels)
        return text;
    double width = 7;
    std::size_t at = 0;
    while (at < text.size()) {
        const Character c = character_at(text, at);
        width += text_width(std::string_view(text).substr(at, c.bytes));
        if (width > pixels)
            break;
        at += c.bytes;
    }
    return text.substr(0, at) + "\u2026";
}

/// Lines of whole words, none wider than `room`; a word that is wider is cut.
inline std::vector<std::string> wrapped(const std::string& words, double room) {
    std::vector<std::string> lines;
    std::string row;
    const auto flush = [&] {
        lines.push_back(shortened(row, room));
        row.clear();
    };
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t stop = words.find_first_of(" \t\r\n", at);
        const std::size_t end = stop == std::string::npos ? words.size() : stop;
        const std::string word = words.substr(at, end - at);
        if (!row.empty() && text_width(row) + 7 + text_width(word) > room)
            flush();
        row += row.empty() || word.empty() ? word : " " + word;
        if (end < words.size() && words[end] == '\n')
            flush();
        at = end + 1;
    }
    flush();
    return lines;
}

} // namespace sluice::detail::drawing
