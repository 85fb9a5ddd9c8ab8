// UTF-8: what may be shown, how wide it is, lines of it, and tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::detail::timeline_text {

inline constexpr char32_t replacement = 0xFFFD;                      // what stands for what cannot be shown
inline constexpr std::string_view replacement_text = "\xEF\xBF\xBD"; // the same in UTF-8

/// One code point, or what is shown in its place.
struct CodePoint {
    char32_t value = replacement;
    std::size_t bytes = 1;
    bool valid = false;
};

/// The code point at byte `at`, which is inside `text`. Bytes that are no UTF-8 are taken as far as they could begin a
/// code point, as Unicode recommends.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(at);
    if (lead < 0x80)
        return {lead, 1, true};
    const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4)
        return {};
    // The second byte's range keeps out overlong forms, surrogates, and what is above U+10FFFF.
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    char32_t value = lead & (0x7Fu >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high)
            return {replacement, i, false};
        value = value << 6 | (byte(at + i) & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return {value, bytes, true};
}

/// Whether a terminal would do something else than to show it: controls, and marks that turn the direction of text.
inline bool is_control(char32_t value) {
    return value < 0x20 || (value >= 0x7F && value < 0xA0) || value == 0x061C || value == 0x200E ||
           value == 0x200F || (value >= 0x2028 && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069);
}

/// How many columns of a terminal it takes: 0 for marks on others, 2 for East Asian wide characters and pictures.
inline std::size_t columns_of(char32_t value) {
    struct Range {
        char32_t first;
        char32_t last;
    };
    constexpr Range none[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
                              {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200D},
                              {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
    constexpr Range two[] = {{0x1100, 0x115F},  {0x231A, 0x231B},   {0x23E9, 0x23F3},   {0x25FD, 0x25FE},
                             {0x2614, 0x2615},  {0x2648, 0x2653},   {0x267F, 0x27BF},   {0x2B1B, 0x2B55},
                             {0x2E80, 0x303E},  {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF},  {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                             {0xFFE0, 0xFFE6},  {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1FAFF},
                             {0x20000, 0x3FFFD}};
    for (const Range& range : none) {
        if (value >= range.first && value <= range.last)
            return 0;
    }
    for (const Range& range : two) {
        if (value >= range.first && value <= range.last)
            return 2;
    }
    return 1;
}

/// `text` with U+FFFD for bytes that are not UTF-8, and for what `hidden` holds of.
template <class Hidden>
std::string replaced(std::string_view text, Hidden hidden) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = code_point_at(text, at);
        result += point.valid && !hidden(point.value) ? text.substr(at, point.bytes) : replacement_text;
        at += point.bytes;
    }
    return result;
}

/// `text` with U+FFFD for controls and for bytes that are not UTF-8.
inline std::string printable(std::string_view text) { return replaced(text, is_control); }

/// How a text is measured: in columns of a terminal, or in pixels.
struct Columns {
    static constexpr std::size_t ellipsis = 1;
    static constexpr std::size_t space = 1;
    static std::size_t of(char32_t value) { return columns_of(value); }
};

/// How wide `text` is, which is UTF-8 without controls.
template <class Measure>
auto width_by(std::string_view text) {
    auto width = Measure::of(U' ') - Measure::of(U' ');
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = code_point_at(text, at);
        width += Measure::of(point.value);
        at += point.bytes;
    }
    return width;
}

/// `text`, or as much of its beginning as fits into `room` with "…" behind it.
template <class Measure>
std::string cut(const std::string& text, decltype(Measure::of(U' ')) room) {
    if (width_by<Measure>(text) <= room)
        return text;
    auto width = Measure::ellipsis;
    std::size_t at = 0;
    while (at < text.size()) {
        const CodePoint point = code_point_at(text, at);
        width += Measure::of(point.value);
        if (width > room)
            break;
        at += point.bytes;
    }
    return text.substr(0, at) + "\u2026";
}

/// Lines of whole words, none wider than `room`; a word that is wider is cut.
template <class Measure>
std::vector<std::string> lines_of(const std::string& words, decltype(Measure::of(U' ')) room) {
    std::vector<std::string> lines;
    std::string row;
    const auto flush = [&] {
        lines.push_back(cut<Measure>(row, room));
        row.clear();
    };
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t stop = words.find_first_of(" \t\r\n", at);
        const std::size_t end = stop == std::string::npos ? words.size() : stop;
        const std::string word = words.substr(at, end - at);
        if (!row.empty() && width_by<Measure>(row) + Measure::space + width_by<Measure>(word) > room)
            flush();
        row += row.empty() || word.empty() ? word : " " + word;
        if (end < words.size() && words[end] == '\n')
            flush();
        at = end + 1;
    }
    flush();
    return lines;
}

/// How many columns `text` takes, which is UTF-8 without controls.
inline std::size_t width_of(std::string_view text) { return width_by<Columns>(text); }

/// `text`, or as much of its beginning as `columns` hold with "…" behind it; `columns` is 1 or more. It is printable.
inline std::string shortened(std::string_view text, std::size_t columns) {
    return cut<Columns>(printable(text), columns);
}

} // namespace sluice::detail::timeline_text

namespace sluice::detail {

/// Lines of cells: names at the left, which are cut to their width, then numbers at the right.
class TextTable {
public:
    /// How wide columns are. Those of numbers have the space before them.
    TextTable(std::vector<std::size_t> names, std::vector<std::size_t> numbers)
        : names_(std::move(names)), numbers_(std::move(numbers)) {}

    /// A line; further cells are left out.
    void add(const std::vector<std::string>& cells) {
        for (std::size_t i = 0; i < cells.size() && i < names_.size() + numbers_.size(); ++i) {
            const bool name = i < names_.size();
            const std::string cell = name ? timeline_text::shortened(cells[i], names_[i]) : cells[i];
            const std::size_t wanted = name ? names_[i] : numbers_[i - names_.size()];
            const std::size_t width = timeline_text::width_of(cell);
            const std::string space(width < wanted ? wanted - width : name ? 0 : 1, ' ');
            text_ += name && i > 0 ? " " : "";
            text_ += name ? cell + space : space + cell;
        }
        text_ += '\n';
    }

    const std::string& text() const { return text_; }

private:
    std::vector<std::size_t> names_;
    std::vector<std::size_t> numbers_;
    std::string text_;
};

} // namespace sluice::detail
