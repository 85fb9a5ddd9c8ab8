#include <graph_replay/table.hpp>

#include <array>
#include <cstdio>
#include <ostream>

namespace graph_replay {
namespace {

std::string number(const char* format, std::optional<double> value) {
    if (!value)
        return "-";
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, *value);
    return text.data();
}

void print_line(std::ostream& out, const std::array<std::string, 8>& cells) {
    constexpr std::array<int, 8> widths{-14, 12, 12, 10, 7, 10, 9, 11};
    std::array<char, 128> text{};
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        std::snprintf(text.data(), text.size(), "%*s", widths[i], cells[i].c_str());
        line += text.data();
    }
    out << line << std::endl;
}

} // namespace

void print_heading(std::ostream& out) {
    print_line(out, {"us a step", "one by one", "as a graph", "speed-up", "nodes", "captures", "replays",
                     "same bits"});
}

void print_row(const Row& row, std::ostream& out) {
    std::optional<double> speed_up;
    if (row.one_by_one && row.as_graph)
        speed_up = *row.one_by_one / *row.as_graph;
    const bool graph = row.as_graph.has_value();
    print_line(out, {row.part, number("%.1f", row.one_by_one), number("%.1f", row.as_graph),
                     number("%.2fx", speed_up), graph ? std::to_string(row.nodes) : "-",
                     graph ? std::to_string(row.captures) : "-", graph ? std::to_string(row.replays) : "-",
                     row.same_bits ? (*row.same_bits ? "yes" : "no") : "-"});
    if (!row.refusal.empty())
        out << "    " << row.part << " ran one by one: " << row.refusal << std::endl;
}

} // namespace graph_replay
