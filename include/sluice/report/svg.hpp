/// \file
/// Timelines as SVG pictures, for a README, a report or a browser.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sluice/report/timeline.hpp>

namespace sluice {

/// What `to_svg` draws, and how large.
struct SvgOptions {
    double width = 960;          ///< Pixels, 240 to 20000; the height follows from the rows.
    std::optional<double> begin; ///< Microseconds where the axis begins; without it, at the first span.
    std::optional<double>
        end;             ///< Likewise where it ends; without it, at the last span's end. Values count where
                         ///< there are no spans.
    std::string caption; ///< Shown below, wrapped; UTF-8.
    std::size_t merge_above = 20'000; ///< With more spans in view, neighbours too narrow to see become one.
};

/// A picture of `timeline`: one self-contained SVG document without scripts or external fonts, with colours
/// for light and dark backgrounds.
///
/// Rows stand in the order of their units, each unit where its first row is. Spans of one row that overlap
/// are drawn in lanes below each other; a row has at most 100 lanes, and what else overlaps is drawn as blocks
/// in the last of them, with a note. Spans are coloured by batch; a span's kind is its pattern. Each has a
/// `<title>`, which browsers show beside the pointer, with its row, batch, kind, begin and duration.
///
/// A missing edge is a dashed red arrow from the end of one span to the begin of the other, with its sentence as `<title>`.
/// Where a span is not in view, or not drawn by itself, a note says so.
///
/// A note below says how long batches took, see `Timeline::set_latencies`.
///
/// Counters stand below the rows as step lines, each on a scale from 0, or from the lowest value that is seen where it is
/// negative, to the highest. Up to 400 steps in view have a `<title>` each.
///
/// With more than `SvgOptions::merge_above` spans in view, spans narrower than a quarter of a pixel that stand
/// less than that apart become one grey block, and a note says so. In the text, bytes that are not UTF-8 and
/// control characters become U+FFFD.
///
/// \throws Error for options out of range, an axis that does not end after it begins, and times beyond 1e15 us.
std::string to_svg(const Timeline& timeline, const SvgOptions& options = {});

/// Several timelines below each other on one time axis, such as `to_svg({&serial, &overlapped})`, each with
/// its title above. Without timelines, an empty axis. \throws Error as above, and for a null pointer.
std::string to_svg(const std::vector<const Timeline*>& timelines, const SvgOptions& options = {});

/// Writes `to_svg(timeline, options)` to the file `path`, by way of `path` + ".part", so that a file that was
/// there is replaced whole or not at all, also where `path` is a link to it. A device or a pipe is written as it is.
/// \throws Error as `to_svg` does, and with the path and the reason where the file cannot be written; then
/// nothing new is left on the disk.
void write_svg(const Timeline& timeline, const std::string& path, const SvgOptions& options = {});

/// Likewise for several timelines.
void write_svg(const std::vector<const Timeline*>& timelines, const std::string& path,
               const SvgOptions& options = {});

} // namespace sluice

#include <sluice/report/detail/svg.inl>
