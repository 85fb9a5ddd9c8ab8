/// \file
/// Timelines as a page to zoom and pan in.
#pragma once

#include <string>
#include <vector>

#include <sluice/report/timeline.hpp>

namespace sluice {

/// A table of your own, such as one of kernels.
struct HtmlTable {
    std::string title;              ///< Stands above it; UTF-8, as all of its text.
    std::vector<std::string> heads; ///< One for each column.
    std::vector<std::vector<std::string>>
        rows; ///< Cells; those that are missing at the end of a row are empty.
};

/// What stands on the page of `to_html` besides the timelines.
struct HtmlOptions {
    std::string title; ///< The page's heading; without it, the timelines' titles.
    std::string text;  ///< A report, shown below as it is, in a fixed-width font; none if empty. UTF-8.
    /// Shown below the timelines. A reader sorts a table by pressing a column's head: by number where all its cells begin with
    /// one ("-" and empty cells aside), and then the largest first. A column's numbers are to be in one unit.
    std::vector<HtmlTable> tables;
};

/// One self-contained HTML page that shows `timeline` in a browser. It loads nothing, and needs JavaScript.
///
/// Above it stands `report_of(timeline)`: what set the pace, and the numbers of each row. The timeline is laid out as `to_svg`
/// lays it out, with the same rows, lanes, counters, colours and legend; the page's script draws the part of the time that is
/// looked at, for the width of the window. In the last of 100 lanes spans may cover each other.
///
/// The wheel zooms round the pointer, dragging pans (two fingers zoom), a double click shows all, and so do
/// the keys + - 0 and the arrows to the left and right. A tooltip has a span's row, batch, kind, begin and
/// duration, or a counter's value. Times are kept to the nanosecond; the page's size is about 30 bytes a span.
///
/// Missing edges are dashed red arrows, with their sentences as tooltips.
///
/// Names, titles, tables and `HtmlOptions::text` are shown as they are: nothing in them is taken for HTML.
/// \throws Error for times beyond 1e15 us, and for a row of a table with more cells than the table has columns.
std::string to_html(const Timeline& timeline, const HtmlOptions& options = {});

/// Several timelines below each other on one time axis, such as `to_html({&before, &after})`. Of two there is also a
/// comparison, `compare` of `comparison.hpp`; their reports stand side by side where there is room.
/// \throws Error as above, and for a null pointer.
std::string to_html(const std::vector<const Timeline*>& timelines, const HtmlOptions& options = {});

/// Writes `to_html(timeline, options)` to the file `path`, by way of `path` + ".part", so that a file that was
/// there is replaced whole or not at all, also where `path` is a link to it. A device or a pipe is written as it is.
/// \throws Error as `to_html` does, and with the path and the reason where the file cannot be written; then
/// nothing new is left on the disk.
void write_html(const Timeline& timeline, const std::string& path, const HtmlOptions& options = {});

/// Likewise for several timelines.
void write_html(const std::vector<const Timeline*>& timelines, const std::string& path,
                const HtmlOptions& options = {});

} // namespace sluice

#include <sluice/report/detail/html.inl>
