/// \file
/// What devices did, kernel by kernel, as tables of a page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/device_activity.hpp>
#include <sluice/report/html.hpp>

namespace sluice {

/// Two tables for `HtmlOptions::tables`: what the wall time went into, and all kernels, copies and fills with their stage,
/// number, time, share, bytes, and whether they have instructions of Tensor Cores ("-": not known). Titles begin with the
/// report's. Of a name, what a compiler puts round it is left out.
inline std::vector<HtmlTable> tables_of(const ActivityReport& report) {
    using detail::numbers::percent;
    const auto number = detail::numbers::number_text;
    const std::string before = report.title.empty() ? "" : report.title + ": ";

    HtmlTable causes{before + "time by cause", {"cause", "ms", "% of the time"}, {}};
    for (const auto& [name, time] : detail::device_activity_text::named(report.causes))
        causes.rows.push_back({std::string_view(name) == "set" ? "fill" : name, number(time / 1e3),
                               percent(report.wall > 0 ? time / report.wall : 0)});

    HtmlTable kernels{
        before + "kernels",
        {"kernel", "stage", "count", "total ms", "mean us", "% of the time", "bytes", "Tensor Cores"},
        {}};
    for (const KernelTotal& kernel : report.kernels) {
        kernels.rows.push_back({detail::device_activity_text::short_name(kernel.name),
                                kernel.stage.empty() ? "-" : kernel.stage, std::to_string(kernel.count),
                                number(kernel.total / 1e3), number(kernel.mean), percent(kernel.share),
                                kernel.bytes > 0 ? std::to_string(kernel.bytes) : "-",
                                detail::device_activity_text::text_of(kernel.tensor_cores)});
    }
    return {std::move(causes), std::move(kernels)};
}

} // namespace sluice
