/// \file
/// How often this program has asked for heap memory. heap_count.cpp replaces the global `operator new` for
/// it.
#pragma once

#include <cstddef>

namespace bench {

/// Calls of any `operator new`, by any thread, since the program began.
std::size_t heap_allocations() noexcept;

} // namespace bench
