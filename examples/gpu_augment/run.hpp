/// \file
/// The experiment from beginning to end.
#pragma once

#include <iosfwd>

#include <common/report.hpp>
#include <gpu_augment/options.hpp>
#include <sluice/backend/default.hpp>

namespace gpu_augment {

/// Trains a classifier from the same first weights on the same images once for each place where they may be augmented
/// and each schedule, and compares time and results; on digits, also how well the classifiers do on held-out ones.
/// Or draws the contact sheet, if that is what is asked for. Tells the story on `out`, and returns what the JSON file
/// holds.
///
/// Throws `examples::BadInput` for files that cannot be used, and `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out);

} // namespace gpu_augment
