/// \file
/// The experiment from beginning to end.
#pragma once

#include <iosfwd>

#include <common/report.hpp>
#include <frozen_encoder/options.hpp>
#include <sluice/backend/default.hpp>

namespace frozen_encoder {

/// Trains the encoder if it is to be trained, then the decoder once under each schedule, from the same first weights on
/// the same batches; compares what comes out; on digits, also measures the decoder on held-out ones. Tells the story
/// on `out`, and returns what the JSON file holds.
///
/// Throws `examples::BadInput` for files that cannot be used and batches that do not fit into memory, and
/// `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out);

} // namespace frozen_encoder
