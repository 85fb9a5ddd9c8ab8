/// \file
/// What the experiment shows to people.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

namespace graph_replay {

/// One step, run both ways, or the one that was asked for.
struct Row {
    std::string part;
    std::optional<double> one_by_one; ///< microseconds a step
    std::optional<double> as_graph;   ///< microseconds a step
    std::optional<bool> same_bits;
    std::size_t nodes = 0;
    std::size_t captures = 0;
    std::size_t replays = 0;
    std::string refusal; ///< why the graph was not one; empty where it was
};

/// Prints the line that says what the columns are.
void print_heading(std::ostream& out);

/// Prints a line of the table, at once, and below it why there was no graph.
void print_row(const Row& row, std::ostream& out);

} // namespace graph_replay
