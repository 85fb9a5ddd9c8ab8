// Colours and fonts of a timeline's picture.
#pragma once

namespace sluice::detail::drawing {

/// Colours and fonts. No custom properties: renderers other than browsers do not know them.
inline constexpr const char* svg_style =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#24292f}"
    ".bg{fill:#fff}.stripe{fill:#f4f6f8}.grid{stroke:#d8dee4}.title{font-weight:600;font-size:14px}"
    ".unit{font-weight:600;font-size:11px;fill:#57606a}.muted{fill:#57606a}.axis{stroke:#8c959f}"
    ".merged{fill:#8c959f}.n{font-size:11px;text-anchor:middle;pointer-events:none;paint-order:stroke}"
    ".line{fill:none;stroke:#0072b2;stroke-width:1.5}.area{fill:#0072b2;fill-opacity:.15}.hit{fill-opacity:0}"
    ".on{fill:#111}.on5{fill:#fff}.tick{text-anchor:middle;fill:#57606a;font-size:11px}"
    ".edge{fill:none;stroke:#cf222e;stroke-width:1.5;stroke-dasharray:5 3}.head{fill:#cf222e}"
    ".wide{fill:none;stroke:#fff;stroke-opacity:.75;stroke-width:6}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.stripe{fill:#171d25}"
    ".grid{stroke:#30363d}.unit,.muted,.tick{fill:#9198a1}.axis{stroke:#6e7681}.merged{fill:#6e7681}"
    ".wide{stroke:#0d1117}.edge{stroke:#ff7b72}.head{fill:#ff7b72}.line{stroke:#56b4e9}.area{fill:#56b4e9}}";

} // namespace sluice::detail::drawing
