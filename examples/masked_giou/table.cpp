#include <masked_giou/table.hpp>

#include <array>
#include <cstdio>
#include <ostream>

namespace masked_giou {

Table::Table(std::ostream& out, const std::vector<std::string>& heading, int first, int other)
    : out_(&out), first_(first), other_(other) {
    row(heading);
}

void Table::row(const std::vector<std::string>& cells) {
    std::array<char, 256> text{};
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        std::snprintf(text.data(), text.size(), "%*s", i == 0 ? -first_ : other_, cells[i].c_str());
        line += text.data();
    }
    *out_ << line << std::endl;
}

std::string cell(std::optional<double> number, const char* format) {
    if (!number)
        return "-";
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, *number);
    return text.data();
}

std::string yes_no(std::optional<bool> answer) { return answer ? (*answer ? "yes" : "no") : "-"; }

} // namespace masked_giou
