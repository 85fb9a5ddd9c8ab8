// How wide a report's table is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>

#include <sluice/report/timeline.hpp>

namespace sluice::test {

/// In columns.
inline std::size_t widest_line(const std::string& text) {
    std::size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, detail::timeline_text::width_of(line));
    return widest;
}

} // namespace sluice::test
