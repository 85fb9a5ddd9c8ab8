// The ticks of a time axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/report/detail/drawing_text.hpp>

namespace sluice::detail::drawing {

/// A part of time, in microseconds, `begin` before `end`.
struct TimeRange {
    double begin = 0;
    double end = 1;
};

/// A place on the axis.
struct Tick {
    double at = 0; ///< Microseconds.
    std::string text;
};

/// Ticks at round times, and what their numbers are in.
struct Axis {
    std::vector<Tick> ticks;
    const char* unit = "";
};

/// The least of 1, 2 and 5 x 10^k that is not below `least`, which is above 0.
inline double round_step(double least) {
    double power = 1;
    while (power > least)
        power /= 10;
    while (power * 10 <= least)
        power *= 10;
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (power * factor >= least * (1 - 1e-9))
            return power * factor;
    }
    return power * 10;
}

/// Ticks of `range` at least `apart` microseconds from each other. The unit is the largest in which the
/// numbers need at most three decimals.
inline Axis axis_of(TimeRange range, double apart) {
    const double step = round_step(apart);
    struct Scale {
        double microseconds;
        const char* name;
    };
    constexpr Scale scales[] = {{1e6, "s"}, {1e3, "ms"}, {1, "\u00b5s"}};
    const double largest = -range.begin > range.end ? -range.begin : range.end;
    std::size_t scale = 0;
    while (scale < 2 && (scales[scale].microseconds > largest || scales[scale].microseconds > step * 1001))
        ++scale;

    Axis axis;
    axis.unit = scales[scale].name;
    auto index = static_cast<std::int64_t>(range.begin / step);
    while (static_cast<double>(index) * step < range.begin - step * 1e-9)
        ++index;
    int decimals = 0;
    for (double size = step / scales[scale].microseconds; size < 0.999999 && decimals < 9; size *= 10)
        ++decimals;
    // The bound holds for ranges too far from zero for a double to tell ticks apart.
    for (; axis.ticks.size() < 1000; ++index) {
        const double at = static_cast<double>(index) * step;
        if (at > range.end + step * 1e-9)
            break;
        axis.ticks.push_back({at, trimmed(at / scales[scale].microseconds, decimals)});
    }
    return axis;
}

} // namespace sluice::detail::drawing
