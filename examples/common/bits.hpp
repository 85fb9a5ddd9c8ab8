/// \file
/// Results compared bit by bit.
#pragma once

#include <cstring>
#include <vector>

namespace examples {

/// Whether two lists have the same bits: a NaN equals itself, and 0 is not -0.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

} // namespace examples
