/// \file
/// The experiment from beginning to end.
#pragma once

#include <iosfwd>

#include <common/report.hpp>
#include <graph_replay/options.hpp>
#include <sluice/backend/default.hpp>

namespace graph_replay {

/// Runs each step that was asked for one by one and as a graph, from the same state, and compares what comes out bit by
/// bit. Tells the story on `out`, and returns what the JSON file holds.
///
/// Throws `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out);

} // namespace graph_replay
