// Tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/detail/timeline_text.hpp>

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
