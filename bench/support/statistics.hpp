/// \file
/// The few statistics that the tables show.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

struct Spread {
    double min = 0;
    double median = 0;
    double max = 0;
};

/// Of at least one value; all 0 for none.
inline Spread spread_of(std::vector<double> values) {
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    return {values.front(), median, values.back()};
}

} // namespace bench
