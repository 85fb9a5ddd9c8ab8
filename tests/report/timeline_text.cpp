// Text in reports: UTF-8 read back against every code point that there is, and how texts are measured and cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_text.hpp>

#include "support/doctest.hpp"

namespace report_timeline_text {

using namespace sluice::detail;
using timeline_text::code_point_at;
using timeline_text::columns_of;

namespace {

const std::string replacement = "\xEF\xBF\xBD";

bool is_scalar(char32_t value) { return value < 0xD800 || (value > 0xDFFF && value <= 0x10FFFF); }

/// As RFC 3629 writes a code point.
std::string encoded(char32_t value) {
    const auto six = [&](int from) { return static_cast<char>(0x80 + (value >> from) % 64); };
    const auto lead = [&](unsigned mark, int from) { return static_cast<char>(mark + (value >> from)); };
    if (value < 0x80)
        return {lead(0, 0)};
    if (value < 0x800)
        return {lead(0xC0, 6), six(0)};
    if (value < 0x10000)
        return {lead(0xE0, 12), six(6), six(0)};
    return {lead(0xF0, 18), six(12), six(6), six(0)};
}

std::size_t packed(std::string_view bytes) {
    std::size_t value = 0;
    for (const char byte : bytes)
        value = value * 256 + static_cast<unsigned char>(byte);
    return value;
}

} // namespace

TEST_CASE("timeline text: each code point is read back, and broken bytes are taken as far as they could "
          "begin one") {
    // What begins a code point, by length: found by writing all of them.
    std::vector<std::vector<bool>> begins(4);
    for (std::size_t bytes = 1; bytes < 4; ++bytes)
        begins[bytes].resize(std::size_t{1} << (8 * bytes));
    for (char32_t value = 0; value <= 0x10FFFF; ++value) {
        if (!is_scalar(value))
            continue;
        const std::string text = encoded(value);
        for (std::size_t bytes = 1; bytes < text.size(); ++bytes)
            begins[bytes][packed(std::string_view(text).substr(0, bytes))] = true;
        const auto point = code_point_at(text, 0);
        if (!point.valid || point.value != value || point.bytes != text.size())
            FAIL("U+", static_cast<unsigned long>(value), " is read as U+",
                 static_cast<unsigned long>(point.value));
    }
    // Bytes at both ends of each range that UTF-8 knows.
    const unsigned bytes[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                              0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    constexpr std::size_t count = std::size(bytes);
    for (std::size_t number = 0; number < count * count * count * count; ++number) {
        std::string text;
        for (std::size_t rest = number, i = 0; i < 4; ++i, rest /= count)
            text += static_cast<char>(bytes[rest % count]);
        std::size_t broken = 0;
        while (broken < 3 && begins[broken + 1][packed(std::string_view(text).substr(0, broken + 1))])
            ++broken;
        const auto point = code_point_at(text, 0);
        if (point.valid ? encoded(point.value) != text.substr(0, point.bytes)
                        : point.bytes != (broken == 0 ? 1 : broken) || point.value != 0xFFFD)
            FAIL("bytes ", number, " are taken wrong");
        // The same where the text ends within.
        for (std::size_t end = 1; end < point.bytes; ++end) {
            const auto cut = code_point_at(std::string_view(text).substr(0, end), 0);
            if (cut.valid || cut.bytes != end)
                FAIL("the first ", end, " bytes of ", number, " are taken wrong");
        }
    }
}

TEST_CASE("timeline text: what a terminal would obey, and what XML has no room for, is replaced") {
    // Controls (Cc), line and paragraph separators, and Unicode's Bidi_Control.
    const auto obeyed = [](char32_t value) {
        for (const char32_t mark : {0x2028u, 0x2029u, 0x061Cu, 0x200Eu, 0x200Fu, 0x202Au, 0x202Bu, 0x202Cu,
                                    0x202Du, 0x202Eu, 0x2066u, 0x2067u, 0x2068u, 0x2069u}) {
            if (value == mark)
                return true;
        }
        return value <= 0x1F || (value >= 0x7F && value <= 0x9F);
    };
    const auto no_room = [](char32_t value) { // XML 1.0, Char; and what is deleted
        return !(value == 0x9 || value == 0xA || value == 0xD || (value >= 0x20 && value <= 0xFFFD) ||
                 value > 0xFFFF) ||
               value == 0x7F;
    };
    for (char32_t value = 0; value <= 0x10FFFF; value += value < 0x11000 ? 1 : 0xFFF) {
        if (!is_scalar(value))
            continue;
        const std::string text = encoded(value);
        if (timeline_text::printable(text) != (obeyed(value) ? replacement : text))
            FAIL("a terminal is given U+", static_cast<unsigned long>(value));
        if (drawing::clean_text(text) != (no_room(value) ? replacement : text))
            FAIL("XML is given U+", static_cast<unsigned long>(value));
    }
    CHECK(drawing::escape_xml("<a b='c' d=\"e\">&\x01</a>") ==
          "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;" + replacement + "&lt;/a&gt;");
}

TEST_CASE("timeline text: marks take no column, wide characters two, all others one") {
    // The first and the last one of blocks whose width everyone agrees on, and their neighbours.
    for (const char32_t none : {0x0300u, 0x036Fu, 0x0483u, 0x0489u, 0x1AB0u, 0x1DC0u, 0x200Bu, 0x200Du,
                                0x20D0u, 0xFE00u, 0xFE0Fu, 0xFE20u, 0xFEFFu})
        CHECK(columns_of(none) == 0);
    for (const char32_t two :
         {0x1100u, 0x115Fu, 0x231Au, 0x231Bu, 0x2E80u, 0x3041u, 0x4E00u, 0x9FFFu, 0xAC00u, 0xD7A3u, 0xF900u,
          0xFF01u, 0xFF60u, 0xFFE0u, 0xFFE6u, 0x1F600u, 0x20000u, 0x3FFFDu})
        CHECK(columns_of(two) == 2);
    for (const char32_t one :
         {0x20u,   0x7Eu,   0xE9u,   0x02FFu, 0x0370u, 0x0482u, 0x048Au, 0x0416u, 0x10FFu, 0x1160u, 0x200Au,
          0x2026u, 0x2319u, 0x231Cu, 0xABFFu, 0xD7A4u, 0xFEFEu, 0xFF61u, 0xFFDFu, 0xFFE7u, 0xFFFDu, 0x3FFFEu})
        CHECK(columns_of(one) == 1);
}

TEST_CASE("timeline text: what fits is whole, and what doesn't ends in an ellipsis within its room") {
    using timeline_text::shortened;
    CHECK(shortened("abcdef", 6) == "abcdef");
    CHECK(shortened("abcdef", 5) == "abcd\u2026");
    CHECK(shortened("abcdef", 1) == "\u2026");
    CHECK(shortened("\u4E00\u4E00\u4E00", 6) == "\u4E00\u4E00\u4E00");
    CHECK(shortened("\u4E00\u4E00\u4E00", 5) == "\u4E00\u4E00\u2026");
    CHECK(shortened("\u4E00\u4E00\u4E00", 4) == "\u4E00\u2026");
    CHECK(shortened("a\x01z", 2) == "a\u2026");
    CHECK(shortened("a\x01z", 3) == "a" + replacement + "z");
    CHECK(timeline_text::width_of("a\u0301\u4E00b") == 4);

    using Lines = std::vector<std::string>;
    const auto lines = [](const std::string& words, std::size_t room) {
        return timeline_text::lines_of<timeline_text::Columns>(words, room);
    };
    CHECK(lines("", 5) == Lines{""});
    CHECK(lines("one two", 7) == Lines{"one two"});
    CHECK(lines("one two", 6) == Lines{"one", "two"});
    CHECK(lines("one\ttwo\r\nthree", 20) == Lines{"one two", "three"});
    CHECK(lines("  one   two  ", 20) == Lines{"one two"});
    CHECK(lines("one\n\ntwo\n", 20) == Lines{"one", "", "two", ""});
    CHECK(lines("a longerthan b", 6) == Lines{"a", "longe\u2026", "b"});
}

TEST_CASE("timeline text: times in pictures have the unit that suits them, and no zeros at their end") {
    using drawing::time_text;
    CHECK(time_text(0) == "0 \u00b5s");
    CHECK(time_text(12.5) == "12.5 \u00b5s");
    CHECK(time_text(999.99) == "999.99 \u00b5s");
    CHECK(time_text(1000) == "1 ms");
    CHECK(time_text(-1250) == "-1.25 ms");
    CHECK(time_text(-3) == "-3 \u00b5s");
    CHECK(time_text(999'990) == "999.99 ms");
    CHECK(time_text(1'000'000) == "1 s");
    CHECK(time_text(61'250'000) == "61.25 s");
    using sluice::SpanKind;
    CHECK(std::string(drawing::kind_text(SpanKind::compute)) == "compute");
    CHECK(std::string(drawing::kind_text(SpanKind::copy)) == "copy");
    CHECK(std::string(drawing::kind_text(SpanKind::source)) == "source");
    CHECK(std::string(drawing::kind_text(SpanKind::wait)) == "wait");
    CHECK(std::string(drawing::kind_text(static_cast<SpanKind>(4))) == "other");
    CHECK(drawing::attribute("x", 1.5) == " x=\"1.5\"");
    CHECK(drawing::attribute("class", std::string("a\"b")) == " class=\"a&quot;b\"");
}

} // namespace report_timeline_text
