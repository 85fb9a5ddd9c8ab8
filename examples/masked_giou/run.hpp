/// \file
/// The experiment from beginning to end.
#pragma once

#include <iosfwd>

#include <common/report.hpp>
#include <masked_giou/options.hpp>
#include <sluice/backend/default.hpp>

namespace masked_giou {

/// Runs the parts that were asked for. Tells the story on `out`, and returns what the JSON file holds: a run
/// for each thing measured, named by its members `part`, `variant` and `pass`.
///
/// Throws `examples::BadInput` for data that cannot be read, `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out);

} // namespace masked_giou
