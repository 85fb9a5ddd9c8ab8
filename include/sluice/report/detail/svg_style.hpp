// Colours and fonts of a timeline, in pictures and on pages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice::detail::drawing {

/// Colours and fonts. No custom properties: renderers other than browsers do not know them.
inline constexpr const char* svg_style =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#24292f}"
    ".bg{fill:#fff}.stripe{fill:#f4f6f8}.grid{stroke:#d8dee4}.title{font-weight:600;font-size:14px}"
    ".unit{font-weight:600;font-size:11px;fill:#57606a}.muted{fill:#57606a}.axis{stroke:#8c959f}"
    ".merged{fill:#8c959f}.no{font-size:11px;text-anchor:middle;pointer-events:none;paint-order:stroke}"
    ".line{fill:none;stroke:#0072b2;stroke-width:1.5}.area{fill:#0072b2;fill-opacity:.15}.hit{fill-opacity:0}"
    ".on{fill:#111}.on5{fill:#fff}.tick{text-anchor:middle;fill:#57606a;font-size:11px}"
    ".edge{fill:none;stroke:#cf222e;stroke-width:1.5;stroke-dasharray:5 3}.head{fill:#cf222e}"
    ".wide{fill:none;stroke:#fff;stroke-opacity:.75;stroke-width:6}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.stripe{fill:#171d25}"
    ".grid{stroke:#30363d}.unit,.muted,.tick{fill:#9198a1}.axis{stroke:#6e7681}.merged{fill:#6e7681}"
    ".wide{stroke:#0d1117}.edge{stroke:#ff7b72}.head{fill:#ff7b72}.line{stroke:#56b4e9}.area{fill:#56b4e9}}";

/// Colours of batches, told apart by colour-blind readers too: Okabe and Ito's palette with a grey instead of
/// black. On the sixth only, text is white: `.on5`.
inline constexpr const char* palette[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                          "#f0e442", "#0072b2", "#d55e00", "#a0a0a0"};
inline constexpr std::size_t palette_size = 8;

/// Which looks of spans occur, and the rules for them. The script of a page makes the same names of classes.
class SpanStyles {
public:
    static std::size_t number_of(SpanKind kind) { return static_cast<std::size_t>(kind) & 3; }

    /// The class of a span's rectangle. An outline is drawn half outside: a narrow one would cover the neighbour.
    static std::string css(SpanKind kind, std::size_t batch, bool narrow) {
        return "cpsw"[number_of(kind)] + std::to_string(batch % palette_size) +
               (kind == SpanKind::wait && !narrow ? " dash" : "");
    }
    /// The class of a batch's number on it. On a hatch it has a halo in the batch's colour.
    static std::string number_css(SpanKind kind, std::size_t batch) {
        const std::string colour = std::to_string(batch % palette_size);
        return number_of(kind) > 1 ? "no"
                                   : "no on on" + colour + (kind == SpanKind::copy ? " halo" + colour : "");
    }

    void note(const TimelineSpan& span) { used_[number_of(span.kind)][span.batch % palette_size] = true; }

    /// A style for the spans that were noted, and the patterns that it needs.
    std::string text() const {
        std::string rules;
        std::string patterns;
        for (std::size_t colour = 0; colour < palette_size; ++colour) {
            const auto add = [&](std::string& to, std::string_view form) { // % is its number, @ is the colour
                for (const char c : form)
                    to += c == '%' ? std::to_string(colour) : c == '@' ? palette[colour] : std::string(1, c);
            };
            if (used_[0][colour])
                add(rules, ".c%{fill:@}");
            if (used_[1][colour]) {
                add(rules, ".p%{fill:url(#sluice-copy-%)}.halo%{stroke:@;stroke-width:4}");
                add(patterns,
                    "<pattern id=\"sluice-copy-%\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"@\"/>"
                    "<rect width=\"2.5\" height=\"6\" fill=\"#fff\" fill-opacity=\".6\"/></pattern>\n");
            }
            if (used_[2][colour])
                add(rules, ".s%{fill:@;fill-opacity:.4}");
            if (used_[3][colour])
                add(rules,
                    ".w%{fill:@;fill-opacity:.3}.w%.dash{fill-opacity:.12;stroke:@;stroke-dasharray:3 2}");
        }
        return "<style>" + (svg_style + rules) + "</style>\n" +
               (patterns.empty() ? "" : "<defs>\n" + patterns + "</defs>\n");
    }

    /// What a legend says: words, and the class of a box before them, or none.
    struct LegendItem {
        std::string words;
        std::string css;
    };
    std::vector<LegendItem> legend(bool merged, bool edges) const {
        std::vector<LegendItem> items;
        for (std::size_t kind = 0; kind < 4; ++kind) {
            std::size_t colour = 0;
            while (colour < palette_size && !used_[kind][colour])
                ++colour;
            const auto named = static_cast<SpanKind>(kind);
            if (colour < palette_size)
                items.push_back({kind_text(named), css(named, colour, false)});
        }
        if (merged)
            items.push_back({"several spans", "merged"});
        if (edges)
            items.push_back({"nothing orders the two", "edge"});
        if (!items.empty())
            items.push_back({"number and colour: batch", ""});
        return items;
    }

private:
    bool used_[4][palette_size] = {}; ///< By kind: the colours that occur.
};

} // namespace sluice::detail::drawing
