// Times and text as the writers of timelines put them into SVG and HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_text.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice::detail::drawing {

using numbers::trimmed;

/// A time in the unit that suits its size: "12.5 µs", "3 ms", "1.25 s".
inline std::string time_text(double microseconds) {
    const double size = microseconds < 0 ? -microseconds : microseconds;
    if (size < 1000)
        return trimmed(microseconds) + " \u00b5s";
    if (size < 1e6)
        return trimmed(microseconds / 1e3) + " ms";
    return trimmed(microseconds / 1e6) + " s";
}

inline const char* kind_text(SpanKind kind) {
    constexpr const char* texts[] = {"compute", "copy", "source", "wait"};
    return static_cast<std::size_t>(kind) < 4 ? texts[static_cast<std::size_t>(kind)] : "other";
}

/// `text` with U+FFFD in the place of what XML and UTF-8 have no room for: broken bytes, control characters.
inline std::string clean_text(std::string_view text) {
    return timeline_text::replaced(text, [](char32_t value) {
        return (value < 0x20 && value != '\t' && value != '\n' && value != '\r') || value == 0x7F ||
               value == 0xFFFE || value == 0xFFFF;
    });
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

/// About how many pixels text takes at 12 pixels' font size, rather too many than too few.
struct Pixels {
    static constexpr double ellipsis = 7;
    static constexpr double space = 7;
    static double of(char32_t value) {
        const bool broad = (value >= 'A' && value <= 'Z') || value == 'm' || value == 'w' || value == '%';
        return value >= 0x1100 && value != 0x2026 && value != 0xFFFD ? 12.5 : broad ? 9 : 6.5;
    }
};
inline double text_width(std::string_view text) { return timeline_text::width_by<Pixels>(text); }

/// `text`, or as much of its beginning as fits into `pixels` with an ellipsis behind it.
inline std::string shortened(const std::string& text, double pixels) {
    return timeline_text::cut<Pixels>(text, pixels);
}

/// ` name="value"`, with at most two decimals.
inline std::string attribute(const char* name, double value) {
    return std::string(" ") + name + "=\"" + trimmed(value) + '"';
}
inline std::string attribute(const char* name, const std::string& value) {
    return std::string(" ") + name + "=\"" + escape_xml(value) + '"';
}

/// A rectangle of SVG, with a text for the pointer where there is to be one.
inline std::string svg_rect(double x, double y, double width, double height, const std::string& css,
                            const std::string& title = {}) {
    return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + attribute("class", css) +
           (title.empty() ? "/>\n" : "><title>" + escape_xml(title) + "</title></rect>\n");
}
inline std::string svg_line(double x1, double y1, double x2, double y2, const char* css) {
    return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
           attribute("class", css) + "/>\n";
}

/// Text that is shortened to `room` pixels, and then whole for the pointer.
inline std::string svg_text(double x, double y, const std::string& css, const std::string& words,
                            double room) {
    const std::string shown = shortened(words, room);
    return "<text" + attribute("x", x) + attribute("y", y) + (css.empty() ? "" : attribute("class", css)) +
           '>' + (shown == words ? "" : "<title>" + escape_xml(words) + "</title>") + escape_xml(shown) +
           "</text>\n";
}

} // namespace sluice::detail::drawing
