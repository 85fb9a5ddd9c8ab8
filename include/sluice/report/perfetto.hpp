/// \file
/// Timelines as traces for Perfetto (https://ui.perfetto.dev).
#pragma once

#include <string>

#include <sluice/report/timeline.hpp>

namespace sluice {

/// `timeline` in Perfetto's own format, the bytes of a protobuf message `Trace`, which https://ui.perfetto.dev
/// and `trace_processor` open.
///
/// A named unit is a track, and its rows are tracks below it in their order; a title is a track above all. A
/// span is a slice of its row's track, named "batch 3", or "batch 3 copy" where its kind is not `compute`,
/// with the kind as its category and the batch as its correlation id and as the argument "batch". Slices of a
/// track never overlap: a row whose spans do has further tracks below it, "encode (2)" and so on, each for the
/// spans that found no room on the tracks before. None is lost.
///
/// Counters are counter tracks behind the others, with their units. How long batches took, see `Timeline::set_latencies`, is the name of
/// an instant at the beginning of a track "latency".
///
/// A missing edge is a flow from one slice to the other, an arrow, with its sentence as the argument "missing edge" of both.
///
/// Timestamps are nanoseconds since the timeline's zero, rounded; if a span or a value comes before it, since the
/// first one. In the text, bytes that are not UTF-8 and control characters become U+FFFD.
/// \throws Error for times beyond 1e15 us.
std::string to_perfetto(const Timeline& timeline);

/// Writes `to_perfetto(timeline)` to the file `path` (".pftrace" is usual), by way of `path` + ".part", so that
/// a file that was there is replaced whole or not at all, also where `path` is a link to it. A device or a pipe is written
/// as it is.
/// \throws Error as `to_perfetto` does, and with the path and the reason where the file cannot be written; then
/// nothing new is left on the disk.
void write_perfetto(const Timeline& timeline, const std::string& path);

} // namespace sluice

#include <sluice/report/detail/perfetto.inl>
