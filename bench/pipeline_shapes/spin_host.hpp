/// \file
/// CPU work that takes a given time.
#pragma once

#include <chrono>

namespace bench {

inline void spin_on_cpu(std::chrono::duration<double, std::micro> time) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < time) {
    }
}

} // namespace bench
