/// \file
/// Tables for people, line by line, as figures come in.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace masked_giou {

/// A table whose first column is text; the others line up on the right.
class Table {
public:
    /// Prints the line that says what the columns are. `first` and `other` are widths in characters.
    Table(std::ostream& out, const std::vector<std::string>& heading, int first = 22, int other = 13);

    /// Prints a line at once.
    void row(const std::vector<std::string>& cells);

private:
    std::ostream* out_;
    int first_;
    int other_;
};

/// "12.3" for a number, "-" for none.
std::string cell(std::optional<double> number, const char* format = "%.1f");
/// "yes", "no", or "-".
std::string yes_no(std::optional<bool> answer);

} // namespace masked_giou
